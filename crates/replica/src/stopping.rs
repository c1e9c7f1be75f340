//! How the tasks of a node hear that it shuts down.

use tokio::sync::watch;

/// The node, which tells its tasks.
pub(crate) struct Stop(watch::Sender<bool>);

/// A task's ear.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn new() -> Self {
        Stop(watch::Sender::new(false))
    }

    /// An ear for one more task.
    pub(crate) fn ear(&self) -> Stopping {
        Stopping(self.0.subscribe())
    }

    /// The node shuts down.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Stopping {
    /// Waits until the node shuts down, or is gone.
    pub(crate) async fn begun(&mut self) {
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
