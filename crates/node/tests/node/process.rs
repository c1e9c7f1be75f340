//! The process of a node: how it is run, what it says, and how it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a node may take to start or to end.
const DEADLINE: Duration = Duration::from_secs(30);
/// What a node says when it serves; its port follows.
const STARTED: &str = "Server started, listening on ";
/// What Rust says when a thread panics. No node may, whatever a test does to it.
const PANICKED: &str = "panicked at";
/// What a node says that ends in good order, and leaves others without a leader all the same.
const LEADS: &str = "stops while it leads";

/// A node's process.
pub(crate) struct Process {
    child: Child,
    /// What it prints.
    lines: Receiver<String>,
    /// Reads its error output to the end; answers what is worth remembering of it.
    complaints: JoinHandle<Complaints>,
}

/// What a node said on its error output that tests judge.
#[derive(Default)]
struct Complaints {
    panics: Vec<String>,
    leads: Vec<String>,
}

impl Process {
    /// Runs a node. Its outputs are pipes.
    pub(crate) fn run(mut command: Command) -> Process {
        let mut child = command.spawn().expect("the binary runs");
        Process {
            complaints: complaints(&mut child),
            lines: lines(&mut child),
            child,
        }
    }

    /// Waits until it serves; the port on which it does.
    pub(crate) fn serves(&self) -> u16 {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .expect("a node says in time that it serves");
            if let Some(port) = line.strip_prefix(STARTED) {
                return port.trim().parse().expect("the port follows");
            }
        }
    }

    /// Sends it a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let (signal, process) = (format!("-{name}"), self.child.id().to_string());
        let sent = Command::new("kill").args([&signal, &process]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Ends it as `kill -9` does. It must still have run, and without a panic.
    pub(crate) fn kill(mut self) {
        let status = self.child.try_wait().expect("the node is our child");
        self.child.kill().expect("the node is our child");
        self.child.wait().expect("the node is our child");
        let panics = self.complaints().panics;
        assert!(
            status.is_none(),
            "the node ended by itself: {status:?} {panics:?}"
        );
        assert!(panics.is_empty(), "the node panicked: {panics:?}");
    }

    /// The same for one that may have ended by itself, which then says so by its exit code.
    pub(crate) fn kill_or_ended(mut self) {
        // It fails only if it has ended.
        let _ = self.child.kill();
        let status = self.child.wait().expect("the node is our child");
        let panics = self.complaints().panics;
        assert!(panics.is_empty(), "the node panicked: {panics:?}");
        assert!(matches!(status.code(), None | Some(1)), "{status:?}");
    }

    /// Asks it to end, as an operator does, and waits until it has, without a panic. It leads no
    /// group any more that another node could lead.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.ends()
    }

    /// Waits until it has ended by itself and in good order.
    pub(crate) fn ends(mut self) -> ExitStatus {
        let status = wait(&mut self.child);
        let Complaints { panics, leads } = self.complaints();
        assert!(panics.is_empty(), "the node panicked: {panics:?}");
        assert!(leads.is_empty(), "the node led to its end: {leads:?}");
        status
    }

    /// Ends it while its test fails already: nothing more is asserted.
    pub(crate) fn abandon(mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What a process that has ended has said.
    fn complaints(self) -> Complaints {
        self.complaints.join().expect("reading does not panic")
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
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(folder)
        .env("ORDERLY_LOG", "warn,openraft=error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
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

/// Passes on what a process says on its error output, and remembers what tests judge.
fn complaints(child: &mut Child) -> JoinHandle<Complaints> {
    let stderr = BufReader::new(child.stderr.take().expect("its error output is a pipe"));
    thread::spawn(move || {
        let mut said = Complaints::default();
        for line in stderr.lines().map_while(Result::ok) {
            eprintln!("{line}");
            if line.contains(PANICKED) {
                said.panics.push(line);
            } else if line.contains(LEADS) {
                said.leads.push(line);
            }
        }
        said
    })
}
