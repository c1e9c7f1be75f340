//! The processes of a demonstration cluster, from its founding to its end.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};

use super::plan::{NodePlan, Plan};
use super::process::Process;
use crate::cli::Failure;
use crate::cli::output::note;
use crate::probe;

/// A cluster that is not ready by then will not be.
const READY_MAX: Duration = Duration::from_secs(120);
/// How long nodes whose folders are kept may take to end in good order: they lose nothing if they
/// are killed, as what they have answered is on their disks.
const STOP_MAX: Duration = Duration::from_millis(1_500);
/// The pause between two looks at a node that is not ready.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Some nodes of a cluster, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of a region.
    Region(String),
    /// One.
    Node(String),
    /// All.
    All,
}

impl Which {
    /// What a person calls them.
    pub(crate) fn name(&self) -> &str {
        match self {
            Which::Region(name) | Which::Node(name) => name,
            Which::All => "all nodes",
        }
    }

    fn names(&self, node: &NodePlan) -> bool {
        match self {
            Which::Region(region) => node.region == region,
            Which::Node(name) => node.name == *name,
            Which::All => true,
        }
    }
}

/// A cluster of processes. It ends when this is dropped.
pub(crate) struct Cluster {
    // They end before their folders go.
    processes: Vec<Process>,
    plan: Plan,
}

impl Cluster {
    /// A cluster that does not run yet.
    pub(crate) fn new(plan: Plan) -> Self {
        let processes = plan.nodes().cloned().map(Process::new).collect();
        Cluster { processes, plan }
    }

    /// Founds it, starts every node and waits until all are ready. Says how far it is.
    ///
    /// # Errors
    /// [`Failure`] when a node does not start.
    pub(crate) async fn start(&mut self) -> Result<(), Failure> {
        let mut founded = false;
        for node in self.plan.nodes() {
            founded |= node.data().exists();
            self.plan.write_config(node)?;
        }
        if !founded {
            self.processes[0].init().await?;
        }
        self.start_missing()?;
        self.wait_until_ready().await
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Waits until every node that runs is ready, and all groups stand where they should.
    ///
    /// # Errors
    /// [`Failure`] when a node stops, or is not ready in time.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            for process in &mut self.processes {
                process.check()?;
            }
            let running: Vec<u16> = self
                .processes
                .iter()
                .filter(|process| process.runs())
                .map(|process| process.plan.port)
                .collect();
            let ready = join_all(running.iter().map(|port| is_settled(*port))).await;
            let count = ready.iter().filter(|ready| **ready).count();
            progress(count, running.len());
            if count == running.len() {
                return Ok(());
            }
            if start.elapsed() > READY_MAX {
                return Err(Failure::Check(format!(
                    "only {count} of {} nodes are ready after {READY_MAX:?}: see their logs",
                    running.len()
                )));
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    /// Kills these nodes at once.
    ///
    /// # Errors
    /// [`Failure`] when a process can't be killed.
    pub(crate) fn kill(&mut self, which: &Which) -> Result<(), Failure> {
        self.chosen(which).try_for_each(Process::kill)
    }

    /// Stops these nodes where they are: they keep what they have, and say nothing.
    ///
    /// # Errors
    /// [`Failure`] when a process can't be stopped.
    pub(crate) fn pause(&mut self, which: &Which) -> Result<(), Failure> {
        self.chosen(which).try_for_each(Process::pause)
    }

    /// Lets these nodes go on.
    ///
    /// # Errors
    /// [`Failure`] when a process can't go on.
    pub(crate) fn resume(&mut self, which: &Which) -> Result<(), Failure> {
        self.chosen(which).try_for_each(Process::resume)
    }

    /// Asks these nodes to end, and waits until they have.
    pub(crate) async fn drain(&mut self, which: &Which) {
        join_all(self.chosen(which).map(Process::stop)).await;
    }

    /// Asks each node in turn to end, starts it again, and waits until all are ready.
    ///
    /// # Errors
    /// [`Failure`] when a node does not start, or stops by itself.
    pub(crate) async fn restart_each(&mut self) -> Result<(), Failure> {
        for number in 0..self.processes.len() {
            self.processes[number].stop().await;
            self.start_missing()?;
            self.wait_until_ready().await?;
        }
        Ok(())
    }

    fn chosen(&mut self, which: &Which) -> impl Iterator<Item = &mut Process> {
        let processes = self.processes.iter_mut();
        processes.filter(|process| which.names(&process.plan))
    }

    /// Starts every node that does not run.
    ///
    /// # Errors
    /// [`Failure`] when a process does not start.
    pub(crate) fn start_missing(&mut self) -> Result<(), Failure> {
        let missing = self.processes.iter_mut().filter(|process| !process.runs());
        for process in missing {
            process.start()?;
        }
        Ok(())
    }

    /// Ends all nodes, soon, and passes on how that for which they ran has ended. When something
    /// has failed their logs stay, and it is said where.
    ///
    /// # Errors
    /// The failure that was given.
    pub(crate) async fn end<T>(mut self, ended: Result<T, Failure>) -> Result<T, Failure> {
        let patience = match self.plan.is_temporary() {
            // They would only pass around what goes.
            true => Duration::ZERO,
            false => STOP_MAX,
        };
        let stopping = self.processes.iter_mut();
        join_all(stopping.map(|process| process.stop_within(patience))).await;
        if !matches!(ended, Ok(_) | Err(Failure::Interrupted)) {
            note(&format!("the nodes' logs are {}", self.plan.keep_logs()));
        }
        ended
    }
}

/// Whether a node takes calls, and the groups that it leads stand where they should.
async fn is_settled(port: u16) -> bool {
    probe::is_ready(port).await && probe::is_placed(port).await
}

/// One line that counts up, where a person watches.
fn progress(ready: usize, all: usize) {
    let mut out = std::io::stderr();
    if !out.is_terminal() {
        return;
    }
    let end = if ready == all { "\n" } else { "" };
    // A terminal that is gone needs no progress.
    let _ = write!(out, "\r{ready} of {all} nodes are ready{end}");
    let _ = out.flush();
}
