//! One node as a process of its own.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::plan::NodePlan;
use crate::cli::Failure;

/// How long a node may take to drain before it is killed.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether a node has ended.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A node's process.
pub(super) struct Process {
    pub(super) plan: NodePlan,
    child: Option<Child>,
}

impl Process {
    /// A node that does not run yet.
    pub(super) fn new(plan: NodePlan) -> Self {
        Process { plan, child: None }
    }

    /// Founds the cluster with this node, whose folder is empty.
    pub(super) async fn init(&mut self) -> Result<(), Failure> {
        let mut command = self.command("init")?;
        let child = self
            .child
            .insert(command.spawn().map_err(Failure::Runtime)?);
        let status = loop {
            match child.try_wait().map_err(Failure::Runtime)? {
                Some(status) => break status,
                None => sleep(LOOK_AGAIN_AFTER).await,
            }
        };
        self.child = None;
        match status.success() {
            true => Ok(()),
            false => Err(self.failed("could not found a cluster", status)),
        }
    }

    /// Starts the node. It ends with this process at the latest: its input closes then.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        let mut command = self.command("serve")?;
        command.arg("--until-input-ends").stdin(Stdio::piped());
        self.child = Some(command.spawn().map_err(Failure::Runtime)?);
        Ok(())
    }

    /// Whether the node runs, as far as it is known.
    pub(super) fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Fails when the node has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        match child.try_wait().map_err(Failure::Runtime)? {
            None => Ok(()),
            Some(status) => Err(self.failed("has stopped", status)),
        }
    }

    /// Ends the process at once, as a power cut would.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child.kill().map_err(Failure::Runtime)?;
        child.wait().map_err(Failure::Runtime)?;
        Ok(())
    }

    /// Stops all threads of the process where they are.
    pub(super) fn pause(&mut self) -> Result<(), Failure> {
        self.signal("STOP")
    }

    /// Lets them go on.
    pub(super) fn resume(&mut self) -> Result<(), Failure> {
        self.signal("CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), Failure> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        // Every shell knows how to; not every machine has a program for it.
        let script = format!("kill -{signal} {}", child.id());
        let status = Command::new("sh").arg("-c").arg(script).status();
        let status = status.map_err(Failure::Runtime)?;
        match status.success() {
            true => Ok(()),
            false => Err(self.failed(&format!("took no {signal} signal"), status)),
        }
    }

    /// Lets the node drain, and waits for its end.
    pub(super) async fn stop(&mut self) {
        self.stop_within(STOP_MAX).await;
    }

    /// The same, for so long at most.
    pub(super) async fn stop_within(&mut self, patience: Duration) {
        let Some(child) = &mut self.child else {
            return;
        };
        drop(child.stdin.take());
        let give_up = Instant::now() + patience;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < give_up {
            sleep(LOOK_AGAIN_AFTER).await;
        }
        // It has ended, or it did not drain and is killed.
        let _ = self.kill();
    }

    fn command(&self, verb: &str) -> Result<Command, Failure> {
        let program = std::env::current_exe().map_err(Failure::Runtime)?;
        let path = self.plan.log();
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(|source| Failure::Write { path, source })?;
        let mut command = Command::new(program);
        command
            .arg(verb)
            .arg("--config")
            .arg(self.plan.config())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // What a terminal sends goes to the one that started it, which knows what to do.
            .process_group(0);
        Ok(command)
    }

    fn failed(&self, what: &str, status: ExitStatus) -> Failure {
        Failure::Check(format!(
            "node {} {what} ({status}): its log is {}",
            self.plan.name,
            self.plan.log().display()
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A node must not outlive the one that started it.
        let _ = self.kill();
    }
}
