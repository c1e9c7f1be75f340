//! A node in a process of its own.

pub(crate) mod process;

use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;

use tempfile::TempDir;

use process::{Process, serve};

/// A node. While it runs it may not panic, nor end but by its test: both fail the test, at the
/// latest when this is dropped and the process is killed.
pub(crate) struct Node {
    /// `None` between an end and the next start.
    process: Option<Process>,
    port: u16,
    /// Where its data is.
    pub(crate) folder: PathBuf,
    /// Deletes its folder, if it is the node's own.
    _temporary: Option<TempDir>,
}

impl Node {
    /// Starts a node with an empty folder, on any free port.
    pub(crate) fn start() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let mut node = Node::start_in(temporary.path().to_owned());
        node._temporary = Some(temporary);
        node
    }

    /// Starts a node with a folder, on any free port.
    pub(crate) fn start_in(folder: PathBuf) -> Self {
        let process = Process::run(serve(&folder, 0));
        Node {
            port: process.serves(),
            process: Some(process),
            folder,
            _temporary: None,
        }
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.running().kill();
    }

    /// The same where the test takes away what it needs, so that it may have ended by itself.
    pub(crate) fn kill_or_ended(&mut self) {
        self.running().kill_or_ended();
    }

    /// Starts it again, on the same port, with what is in its folder.
    pub(crate) fn restart(&mut self) {
        let process = Process::run(serve(&self.folder, self.port));
        process.serves();
        self.process = Some(process);
    }

    /// Asks it to end, as an operator does, and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.running().terminate()
    }

    fn running(&mut self) -> Process {
        self.process.take().expect("the node runs")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        match self.process.take() {
            Some(process) if thread::panicking() => process.abandon(),
            Some(process) => process.kill(),
            None => {}
        }
    }
}
