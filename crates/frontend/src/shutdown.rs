//! The node's wish to stop, as every long call hears it.

use tokio::sync::watch;

/// Begins the shutdown when it is told to, or dropped.
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<bool>);

/// Hears when the shutdown begins. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// A trigger, and what hears it.
#[must_use]
pub fn shutdown() -> (ShutdownTrigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownTrigger(sender), Shutdown(receiver))
}

impl ShutdownTrigger {
    /// Begins the shutdown: streams end, new ones are refused.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Waits until the shutdown begins.
    pub async fn begun(&mut self) {
        // An error means that the trigger is dropped, which is the same.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}
