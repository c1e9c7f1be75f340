//! A node in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a node may take to start or to end.
const DEADLINE: Duration = Duration::from_secs(30);
/// What a node says when it serves; its port follows.
const STARTED: &str = "Server started, listening on ";

/// A running node. It is killed when this is dropped.
pub(crate) struct Node {
    child: Child,
    port: u16,
    /// Where its data is; deleted at the end.
    pub(crate) folder: TempDir,
}

impl Node {
    /// Starts a node with an empty folder, on any free port.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (child, port) = spawn(folder.path(), 0);
        Node {
            child,
            port,
            folder,
        }
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the node runs");
        self.child.wait().expect("the node is our child");
    }

    /// Starts it again, on the same port, with what is in its folder.
    pub(crate) fn restart(&mut self) {
        (self.child, self.port) = spawn(self.folder.path(), self.port);
    }

    /// Asks it to end, as an operator does, and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let process = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &process]).status();
        assert!(asked.expect("kill is there").success());
        wait(&mut self.child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that runs a node; its output is to be read.
pub(crate) fn serve(folder: &Path, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orderly"));
    command
        .args([
            "serve",
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--data-dir",
        ])
        .arg(folder)
        .env("ORDERLY_LOG", "warn,openraft=error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Starts a node and waits until it serves.
fn spawn(folder: &Path, port: u16) -> (Child, u16) {
    let mut child = serve(folder, port).spawn().expect("the binary runs");
    let lines = lines(&mut child);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines
            .recv_timeout(left)
            .expect("a node says in time that it serves");
        if let Some(port) = line.strip_prefix(STARTED) {
            return (child, port.trim().parse().expect("the port follows"));
        }
    }
}

/// What a process prints, line by line. All of it is read, so that the process never blocks.
fn lines(child: &mut Child) -> Receiver<String> {
    let stdout = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            // Nobody listens any more once it serves.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Waits until the process has ended.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().expect("the node is our child") {
            return status;
        }
        assert!(Instant::now() < deadline, "a node ends in time");
        thread::park_timeout(Duration::from_millis(10));
    }
}
