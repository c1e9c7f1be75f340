//! The two threads of a store on a real disk: the writer, and the keeper that flushes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::core::Core;

/// Running threads. When this goes, they write what waits and end.
pub(crate) struct Threads {
    core: Option<Arc<Core>>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// None: callers do the work.
    pub(crate) fn none() -> Self {
        Threads {
            core: None,
            running: Vec::new(),
        }
    }

    /// Starts both.
    pub(crate) fn start(core: &Arc<Core>) -> io::Result<Self> {
        let mut threads = Threads {
            core: Some(core.clone()),
            running: Vec::new(),
        };
        core.has_keeper();
        threads.spawn("store-writer", |core| core.writer.run())?;
        threads.spawn("store-keeper", |core| core.keep())?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, work: fn(&Core)) -> io::Result<()> {
        if let Some(core) = self.core.clone() {
            let thread = thread::Builder::new().name(name.into());
            self.running.push(thread.spawn(move || work(&core))?);
        }
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else {
            return;
        };
        core.writer.close();
        core.close_keeper();
        for thread in self.running.drain(..) {
            // The last handle may go on the writer's own thread, inside of a `done`.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}
