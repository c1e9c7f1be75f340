//! What a node says when others do not talk to it: why it is not let in, and whom it can't reach.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cluster::{host, turn};

/// How long a node may take to say something.
const SAYS_MAX: Duration = Duration::from_secs(60);

/// Nodes with certificates, in folders of their own.
struct Nodes(TempDir);

/// A node that runs, and what it writes.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Nodes {
    fn new() -> Self {
        let nodes = Nodes(tempfile::tempdir().expect("a temporary folder"));
        for authority in ["ours", "theirs"] {
            nodes.orderly(&["certificates", "authority", "--folder", authority]);
        }
        nodes
    }

    fn orderly(&self, words: &[&str]) {
        let ended = Command::new(env!("CARGO_BIN_EXE_orderly"))
            .args(words)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output();
        let ended = ended.expect("the binary runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{words:?}: {said}");
    }

    /// Writes the configuration of a node whose certificate is of this authority.
    fn configure(&self, number: usize, authority: &str) {
        let (name, host) = (format!("node-{number}"), host(number));
        let certify = ["certificates", "node", &name, "--cluster", "c1"];
        self.orderly(&[&certify[..], &["--folder", authority]].concat());
        let join = [0, 1].map(|number| format!("{}:9085", self::host(number)));
        let text = format!(
            "node = \"{name}\"\nregion = \"north\"\nzone = \"a\"\ndata_dir = \"{name}\"\n\
             listen = \"{host}:8085\"\npeer_listen = \"{host}:9085\"\n\
             admin_listen = \"{host}:10085\"\njoin = {join:?}\n\
             [tls]\nca = \"{authority}/ca.pem\"\ncertificate = \"{authority}/{name}.pem\"\n\
             key = \"{authority}/{name}.key\"\n"
        );
        fs::write(self.config(number), text).expect("it can be written");
    }

    fn config(&self, number: usize) -> std::path::PathBuf {
        self.0.path().join(format!("{number}.toml"))
    }

    fn serve(&self, number: usize) -> Running {
        serve(self.0.path(), &self.config(number))
    }
}

fn serve(folder: &Path, config: &Path) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orderly"))
        .args(["serve", "--until-input-ends", "--config"])
        .arg(config)
        .current_dir(folder)
        .env("ORDERLY_LOG", "info,openraft=off")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let (sender, lines) = mpsc::channel();
    pass_on(child.stdout.take().expect("it is a pipe"), sender.clone());
    pass_on(child.stderr.take().expect("it is a pipe"), sender);
    Running { child, lines }
}

fn pass_on(output: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            eprintln!("{line}");
            // Nobody listens any more once it has said enough.
            let _ = lines.send(line);
        }
    });
}

impl Running {
    /// Waits until it writes a line with all of these.
    fn says(&self, words: &[&str]) {
        let give_up = Instant::now() + SAYS_MAX;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("it does not say {words:?}"));
            if words.iter().all(|word| line.contains(word)) {
                return;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn who_is_not_talked_to_says_why() {
    let _turn = turn();
    let nodes = Nodes::new();
    nodes.configure(0, "ours");
    nodes.orderly(&["init", "--config", "0.toml", "--shards-per-region", "1"]);
    let first = nodes.serve(0);

    nodes.configure(1, "theirs");
    let stranger = nodes.serve(1);
    stranger.says(&["WARN", "another authority", &format!("{}:9085", host(0))]);
    drop(stranger);

    // It trusts the others, but they do not trust it.
    let config = fs::read_to_string(nodes.config(1)).expect("it was written");
    fs::copy(
        nodes.0.path().join("ours/ca.pem"),
        nodes.0.path().join("both.pem"),
    )
    .expect("it was made");
    let theirs = fs::read_to_string(nodes.0.path().join("theirs/ca.pem")).expect("it was made");
    let ours = fs::read_to_string(nodes.0.path().join("ours/ca.pem")).expect("it was made");
    fs::write(nodes.0.path().join("both.pem"), ours + &theirs).expect("it can be written");
    let config = config.replace("theirs/ca.pem", "both.pem");
    fs::write(nodes.config(1), config).expect("it can be written");
    let stranger = nodes.serve(1);
    stranger.says(&[
        "WARN",
        "does not take the certificate",
        &format!("{}:9085", host(0)),
    ]);
    drop(stranger);

    nodes.configure(1, "ours");
    let second = nodes.serve(1);
    second.says(&["joined the cluster"]);
    second.says(&["Server started"]);
    drop(first);
    second.says(&["WARN", "none of the other nodes can be reached", "node-0"]);
    let _first = nodes.serve(0);
    second.says(&["no other node is out of reach"]);
}
