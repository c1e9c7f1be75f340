//! `orderly config check` and `orderly serve --config`: certificates that can't be used are refused
//! before anything is started, by the name of their key.

use std::fs;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder with two authorities, `ours` and `theirs`, and certificates of both for two nodes.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        for authority in ["ours", "theirs"] {
            let made = folder.orderly(&["certificates", "authority", "--folder", authority]);
            assert!(made.status.success());
            for node in ["north-1", "south-1"] {
                let certify = ["certificates", "node", node, "--cluster", "c1"];
                let made = folder.orderly(&[&certify[..], &["--folder", authority]].concat());
                assert!(made.status.success());
            }
        }
        let text = "nothing of the kind";
        fs::write(folder.0.path().join("text"), text).expect("it can be written");
        folder
    }

    fn orderly(&self, words: &[&str]) -> Output {
        let ended = Command::new(env!("CARGO_BIN_EXE_orderly"))
            .args(words)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output();
        ended.expect("the binary runs")
    }

    /// What is wrong with these files in the configuration of node north-1, as two commands say;
    /// nothing if nothing is.
    fn complaint(&self, ca: &str, certificate: &str, key: &str) -> String {
        let text = format!(
            "node = \"north-1\"\nregion = \"north\"\nzone = \"a\"\ndata_dir = \"data\"\n\
             listen = \"127.0.0.1:8085\"\npeer_listen = \"127.0.0.1:8086\"\n\
             [tls]\nca = \"{ca}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n"
        );
        fs::write(self.0.path().join("node.toml"), text).expect("it can be written");
        let checked = self.orderly(&["config", "check", "node.toml"]);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        if !checked.status.success() {
            let served = self.orderly(&["serve", "--config", "node.toml"]);
            assert_eq!(String::from_utf8_lossy(&served.stderr), said);
            assert_eq!(
                (checked.status.code(), served.status.code()),
                (Some(2), Some(2))
            );
            assert!(!self.0.path().join("data").exists());
        }
        said
    }
}

#[test]
fn certificates_that_cannot_be_used_are_refused() {
    let folder = Folder::new();
    let (ca, certificate, key) = ("ours/ca.pem", "ours/north-1.pem", "ours/north-1.key");
    assert_eq!(folder.complaint(ca, certificate, key), "");
    let wrong = [
        (
            ["nowhere", certificate, key],
            "ca \"nowhere\" can't be read",
        ),
        (
            [ca, "nowhere", key],
            "certificate \"nowhere\" can't be read",
        ),
        (
            [ca, certificate, "nowhere"],
            "key \"nowhere\" can't be read",
        ),
        (
            ["text", certificate, key],
            "ca \"text\": it has no certificate in it",
        ),
        (
            [ca, "text", key],
            "certificate \"text\": it has no certificate in it",
        ),
        (
            [ca, certificate, "text"],
            "key \"text\": it has no private key in it",
        ),
        (
            [ca, certificate, certificate],
            "key \"ours/north-1.pem\": it has no private key in it",
        ),
        (
            [ca, certificate, "ours/south-1.key"],
            "key \"ours/south-1.key\": it is not the key of the certificate",
        ),
        (
            ["theirs/ca.pem", certificate, key],
            "certificate \"ours/north-1.pem\": the authority did not sign it",
        ),
        (
            [ca, "ours/south-1.pem", "ours/south-1.key"],
            "the certificate names node \"south-1\", but this is node \"north-1\"",
        ),
        ([ca, ca, "ours/ca.key"], "it names no node"),
    ];
    for ([ca, certificate, key], expected) in wrong {
        let said = folder.complaint(ca, certificate, key);
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(said.contains("node.toml: the section [tls]: "), "{said}");
    }
}

#[test]
fn a_cluster_is_founded_with_a_word() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "node = \"north-1\"\nregion = \"north\"\nzone = \"a\"\ndata_dir = \"data\"\n\
                listen = \"127.0.0.1:8085\"\npeer_listen = \"127.0.0.1:8086\"\n";
    fs::write(folder.path().join("node.toml"), text).expect("it can be written");
    let init = || {
        Command::new(env!("CARGO_BIN_EXE_orderly"))
            .args(["init", "--config", "node.toml"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs")
    };
    let founded = init();
    assert!(founded.status.success());
    let said = [founded.stdout, founded.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    for words in ["is founded", "orderly serve --config node.toml"] {
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
    let again = init();
    assert_eq!(again.status.code(), Some(1));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("holds a node of a cluster already"), "{said}");
}
