//! `orderly drill` on a cluster that is not its own: what it does to it is undone, however it ends.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::node::Node;
use crate::node::process::wait;

/// How long the event may take to begin.
const BEGINS_MAX: Duration = Duration::from_secs(30);

/// A node, and where the hooks of drills leave their traces.
struct Stage {
    node: Node,
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        Stage {
            node: Node::start(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A drill with such a hook, which leaves a trace of each thing that it does.
    fn drill(&self, hook: &str, more: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_orderly"))
            .args(["drill", "node-loss", "--node", "local", "--keys", "3"])
            .args(["--before", "0", "-o", "json"])
            .args(["--hook", hook])
            .args([
                "--undo-hook",
                "echo noise; echo $ORDERLY_DRILL_TARGET > undone",
            ])
            .args(more)
            .env("PUBSUB_EMULATOR_HOST", self.node.endpoint())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs")
    }

    /// What a drill has said that ends, and has left nothing behind.
    fn clears_up(&self, mut drill: Child) -> Output {
        wait(&mut drill);
        let output = drill.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stderr);
        let undone = std::fs::read_to_string(self.trace("undone"));
        assert_eq!(undone.expect("the undo hook ran"), "local\n", "{said}");
        for noun in ["topics", "subscriptions"] {
            assert_eq!(self.node.orderly_ok(&[noun, "list"]), "", "{said}");
        }
        output
    }
}

#[test]
fn an_interrupted_drill_undoes_what_it_did() {
    for signal in ["TERM", "INT"] {
        let stage = Stage::new();
        let drill = stage.drill("touch caused", &["--live", "--after", "600"]);
        let give_up = Instant::now() + BEGINS_MAX;
        while !stage.trace("caused").exists() {
            assert!(Instant::now() < give_up, "the event begins");
            thread::park_timeout(Duration::from_millis(10));
        }
        let kill = format!("kill -{signal} {}", drill.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("a shell is there").success());
        let output = stage.clears_up(drill);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        for word in ["interrupted", "everything is back", "are deleted"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[test]
fn a_drill_whose_hook_fails_undoes_what_it_did() {
    let stage = Stage::new();
    let output = stage.clears_up(stage.drill("exit 3", &["--live", "--after", "600"]));
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the hook \"exit 3\" failed"), "{said}");
}

#[test]
fn only_the_verdict_is_on_the_standard_output() {
    let stage = Stage::new();
    let drill = stage.drill("echo noise", &["--live", "--after", "2"]);
    let output = stage.clears_up(drill);
    let verdict = serde_json::from_slice::<Value>(&output.stdout).expect("it prints JSON");
    assert_eq!(verdict["drill"], "node-loss of local");
    assert_eq!(verdict["verdict"], "pass", "{verdict:#}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("noise").count(), 2, "{said}");
}

#[test]
fn a_dry_run_says_as_json_what_would_be_done() {
    let stage = Stage::new();
    let mut drill = stage.drill("touch caused", &["--dry-run", "--repeat", "2"]);
    wait(&mut drill);
    let output = drill.wait_with_output().expect("it is our child");
    let plan = serde_json::from_slice::<Value>(&output.stdout).expect("it prints JSON");
    assert_eq!(plan["event"], "node-loss");
    assert_eq!(plan["target"], "local");
    assert_eq!(plan["hook"], "touch caused");
    assert_eq!(plan["rounds"], 2);
    assert_eq!(plan["endpoints"][0], stage.node.endpoint());
    assert!(!stage.trace("caused").exists() && !stage.trace("undone").exists());
}
