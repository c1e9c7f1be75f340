//! `orderly demo`: it ends soon when it is asked to, and leaves nothing, unless something failed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cluster;
use crate::process::wait;

/// How long the first files may take.
const BEGINS_MAX: Duration = Duration::from_secs(20);
/// How long the end may take, on a machine that does other things too.
const END_MAX: Duration = Duration::from_secs(5);

/// A demonstration that runs, and the only place for its files.
struct Demo {
    child: Child,
    output: BufReader<ChildStdout>,
    temporary: TempDir,
}

impl Demo {
    fn start(more: &[&str]) -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_orderly"))
            .args(["demo", "--regions", "1", "--nodes", "2"])
            .args(["--port", &port().to_string()])
            .args(more)
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Demo {
            child,
            output,
            temporary,
        }
    }

    /// Reads what it prints until it says this.
    fn says(&mut self, expected: &str) {
        let mut line = String::new();
        while !line.contains(expected) {
            line.clear();
            let read = self.output.read_line(&mut line).expect("it can be read");
            assert!(read > 0, "it ended before it said \"{expected}\"");
        }
    }

    /// Waits until it has written something.
    fn begins(&self) {
        let give_up = Instant::now() + BEGINS_MAX;
        while !has_file(self.temporary.path(), "log") {
            assert!(Instant::now() < give_up, "it begins");
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Asks it to end, and sees that it does so soon and leaves nothing.
    fn ends(mut self, signal: &str) -> Option<i32> {
        let kill = format!("kill -{signal} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("a shell is there").success());
        let asked = Instant::now();
        let status = wait(&mut self.child);
        let took = asked.elapsed();
        assert!(took < END_MAX, "it ended only after {took:?}");
        let left = fs::read_dir(self.temporary.path()).expect("it can be read");
        assert_eq!(left.count(), 0, "it leaves nothing");
        status.code()
    }
}

#[test]
fn it_leaves_nothing_whenever_it_is_ended() {
    let _turn = cluster::turn();
    let starting = Demo::start(&[]);
    starting.begins();
    assert_eq!(starting.ends("TERM"), Some(1));

    let mut telling = Demo::start(&["--show"]);
    telling.says("took");
    assert_eq!(telling.ends("INT"), Some(1));

    let mut serving = Demo::start(&[]);
    serving.says("Ctrl-C stops the cluster");
    assert_eq!(serving.ends("TERM"), Some(0));
}

#[test]
fn the_logs_of_what_failed_stay() {
    let _turn = cluster::turn();
    let _taken = TcpListener::bind(("127.0.0.1", port())).expect("a free port");
    let mut demo = Demo::start(&[]);
    let status = wait(&mut demo.child);
    assert_eq!(status.code(), Some(5));
    let mut said = String::new();
    let mut stderr = demo
        .child
        .stderr
        .take()
        .expect("its error output is a pipe");
    stderr.read_to_string(&mut said).expect("it is text");
    let named = said
        .lines()
        .find_map(|line| line.split("its log is ").nth(1));
    let log = fs::read_to_string(named.expect("it names a log").trim());
    assert!(
        log.expect("it is there").contains("can't listen on"),
        "{said}"
    );
    assert!(said.contains("the nodes' logs are "), "{said}");
    assert!(!has_file(demo.temporary.path(), "data"), "the logs only");
}

/// Other processes run tests too: a demonstration takes ports up to 2,001 above this one.
fn port() -> u16 {
    let process = std::process::id() % 180;
    12_050 + u16::try_from(process).expect("below 180") * 100
}

/// Whether the folder of any node has such a file.
fn has_file(temporary: &Path, name: &str) -> bool {
    let clusters = fs::read_dir(temporary).into_iter().flatten().flatten();
    let nodes = clusters.flat_map(|it| fs::read_dir(it.path()).into_iter().flatten().flatten());
    nodes
        .into_iter()
        .any(|node| node.path().join(name).exists())
}
