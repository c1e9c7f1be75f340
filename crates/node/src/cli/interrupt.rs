//! How a command that has something to undo hears that it is to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// Ctrl-C, SIGTERM, and the end of the terminal.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    /// Hears them from now on: none ends the process any more.
    ///
    /// # Errors
    /// [`Failure::Runtime`]
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::Runtime);
        Ok(Interrupts {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Resolves at the next of them. One that comes while nobody waits is not lost.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
