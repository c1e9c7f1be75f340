//! Tasks that begin and end together.

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::raft::{Core, Stopped};
use crate::stopping::{Stop, Stopping};

/// Tasks of a node, and how they are told to end.
pub(crate) struct Work {
    stop: Stop,
    tasks: JoinSet<Result<(), Stopped>>,
}

impl Work {
    pub(crate) fn new() -> Self {
        Work {
            stop: Stop::new(),
            tasks: JoinSet::new(),
        }
    }

    /// An ear for one more task.
    pub(crate) fn ear(&self) -> Stopping {
        self.stop.ear()
    }

    /// Begins a task, which ends when its ear hears of it; or earlier, when a replica must stop.
    pub(crate) fn spawn(
        &mut self,
        task: impl Future<Output = Result<(), Stopped>> + Send + 'static,
    ) {
        self.tasks.spawn(task);
    }

    /// Waits until one of the tasks finds that a replica must stop, and says why; one that panics
    /// stops that of `control`.
    pub(crate) async fn stopped(&mut self, control: &Core) -> Stopped {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(Err(stopped))) => return stopped,
                Some(Err(panic)) => return control.stopped(panic),
                // A task that has nothing to do any more. Its group's Raft says why.
                Some(Ok(Ok(()))) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Tells the tasks to end, and waits for them; after `until` they are ended.
    pub(crate) async fn end(&mut self, until: Instant) {
        self.stop.begin();
        let tasks = &mut self.tasks;
        let ended = async { while tasks.join_next().await.is_some() {} };
        if timeout_at(until, ended).await.is_err() {
            warn!("calls were left unanswered: they took too long");
            self.tasks.shutdown().await;
        }
    }
}
