//! A node and its data folder.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::node::Node;
use crate::node::process::{serve, wait};

/// How long a node may take to answer a browser.
const ANSWER_MAX: Duration = Duration::from_secs(10);

#[test]
fn a_second_node_keeps_its_hands_off_a_folder_in_use() {
    let node = Node::start();
    let second = serve_until_end(&node.folder);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("in use"), "{said}");
    node.orderly_ok(&["topics", "create", "orders"]);
}

#[test]
fn what_was_answered_outlives_kill_9() {
    let mut node = Node::start();
    node.orderly_ok(&["topics", "create", "orders"]);
    node.orderly_ok(&["subscriptions", "create", "shipping", "--topic", "orders"]);
    node.orderly_ok(&["topics", "publish", "orders", "--message", "paid"]);
    node.kill();
    node.restart();
    let pulled = node.orderly_ok(&["subscriptions", "pull", "shipping", "--auto-ack"]);
    assert!(pulled.contains("paid"), "{pulled}");
    node.kill();
    node.restart();
    let acked = node.orderly_ok(&["subscriptions", "pull", "shipping", "--no-wait"]);
    assert_eq!(acked, "");
}

#[test]
fn a_folder_that_is_not_empty_does_not_become_a_new_node() {
    for left in ["RESERVE", "thesis.txt"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(left), "").expect("it can be written");
        let refused = serve_until_end(folder.path());
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            said.contains(left) && said.contains("empty folder"),
            "{said}"
        );
    }
}

#[test]
fn an_operator_ends_it_without_loss() {
    let mut node = Node::start();
    node.orderly_ok(&["topics", "create", "orders"]);
    assert_eq!(node.terminate().code(), Some(0));
    node.restart();
    assert!(node.orderly_ok(&["topics", "list"]).contains("orders"));
}

#[test]
fn a_browser_hears_that_it_is_well() {
    let node = Node::start();
    let mut connection = TcpStream::connect(node.endpoint()).expect("it listens");
    connection
        .set_read_timeout(Some(ANSWER_MAX))
        .expect("not zero");
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    connection
        .read_to_string(&mut answer)
        .expect("it answers, and closes");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(
        answer.rsplit("\r\n").next().map(str::trim_end),
        Some("Ok"),
        "{answer}"
    );
}

/// Runs a node that is expected to end by itself, and returns what it said.
fn serve_until_end(folder: &Path) -> Output {
    let mut child = serve(folder, 0).spawn().expect("the binary runs");
    wait(&mut child);
    child.wait_with_output().expect("the node is our child")
}
