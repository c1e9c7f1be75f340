//! The commands of an operator that cause an event and end it.

use std::io::stderr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::sleep;

use crate::cli::Failure;

/// How often it is looked whether a command has ended.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Both commands, and the one that runs.
pub(super) struct Hooks {
    cause: String,
    undo: Option<String>,
    running: Option<Child>,
}

impl Hooks {
    pub(super) fn new(cause: String, undo: Option<String>) -> Self {
        Hooks {
            cause,
            undo,
            running: None,
        }
    }

    /// Causes the event `name` of `target`.
    ///
    /// # Errors
    /// [`Failure`] when the command fails.
    pub(super) async fn cause(&mut self, name: &str, target: &str) -> Result<(), Failure> {
        let hook = self.cause.clone();
        self.call(&hook, name, target).await
    }

    /// Ends it, once the command that causes it has ended.
    ///
    /// # Errors
    /// [`Failure`] when the command fails.
    pub(super) async fn undo(&mut self, name: &str, target: &str) -> Result<(), Failure> {
        if self.running.is_some() {
            super::tell("waits for the end of --hook");
            // However it ends, what it has done is undone.
            let _ = self.ended().await;
        }
        match self.undo.clone() {
            Some(hook) => self.call(&hook, name, target).await,
            None => Ok(()),
        }
    }

    /// The command that ends the event, if there is one.
    pub(super) fn undoing(&self) -> Option<&str> {
        self.undo.as_deref()
    }

    async fn call(&mut self, hook: &str, name: &str, target: &str) -> Result<(), Failure> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(hook)
            .env("ORDERLY_DRILL_EVENT", name)
            .env("ORDERLY_DRILL_TARGET", target)
            // Only the verdict goes to the standard output.
            .stdout(Stdio::from(stderr()));
        self.running = Some(command.spawn().map_err(Failure::Runtime)?);
        let status = self.ended().await?;
        match status {
            Some(status) if !status.success() => Err(Failure::Check(format!(
                "the hook \"{hook}\" failed: {status}"
            ))),
            _ => Ok(()),
        }
    }

    /// Waits until the command that runs has ended. It goes on where nobody waits any more.
    async fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, Failure> {
        while let Some(child) = &mut self.running {
            if let Some(status) = child.try_wait().map_err(Failure::Runtime)? {
                self.running = None;
                return Ok(Some(status));
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
        Ok(None)
    }
}
