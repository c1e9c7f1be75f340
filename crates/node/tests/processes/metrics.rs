//! `GET /metrics`, as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::node::Node;

/// The samples of a node by series, after a look at the form of the page.
fn samples(node: &Node) -> BTreeMap<String, f64> {
    let mut stream = TcpStream::connect(node.endpoint()).expect("the node listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let typed: BTreeSet<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let lines = body.lines().filter(|line| line.starts_with("orderly_"));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a name and a value");
        let name = series.split('{').next().expect("there is a first part");
        let suffixes = ["_bucket", "_sum", "_count"].map(|suffix| name.strip_suffix(suffix));
        let names = suffixes.into_iter().flatten().chain([name]);
        assert!(names.into_iter().any(|name| typed.contains(name)), "{line}");
        (series.to_owned(), value.parse().expect("a number"))
    };
    lines.map(sample).collect()
}

#[test]
fn a_backlog_shows_until_it_is_acknowledged() {
    let node = Node::start();
    node.orderly_ok(&["topics", "create", "orders"]);
    for (name, ordered) in [("shipping", true), ("billing", false)] {
        let mut create = vec!["subscriptions", "create", name, "--topic", "orders"];
        create.extend(ordered.then_some("--enable-message-ordering"));
        node.orderly_ok(&create);
    }
    for key in ["a", "a", "b"] {
        let publish = ["topics", "publish", "orders", "--message", "paid"];
        node.orderly_ok(&[&publish[..], &["--ordering-key", key]].concat());
    }
    let of = |name: &str, subscription: &str| {
        format!(
            "orderly_subscription_{name}{{project=\"orderly\",subscription=\"{subscription}\"}}"
        )
    };
    let before = samples(&node);
    for subscription in ["shipping", "billing"] {
        assert_eq!(before[&of("backlog_messages", subscription)], 3.0);
        assert!(before[&of("oldest_unacked_seconds", subscription)] > 0.0);
    }
    assert_eq!(before["orderly_publishes_total"], 3.0);
    assert_eq!(before["orderly_groups_led{kind=\"control\"}"], 1.0);
    assert!(before["orderly_catalogue_lease_seconds"] > 0.0);
    assert!(before["orderly_disk_free_bytes"] > 0.0);
    assert!(before["orderly_sync_seconds_count"] > 0.0);
    assert_eq!(
        before["orderly_sync_seconds_bucket{le=\"+Inf\"}"],
        before["orderly_sync_seconds_count"]
    );

    let pull = ["subscriptions", "pull", "shipping", "--auto-ack"];
    for _ in 0..3 {
        node.orderly_ok(&[&pull[..], &["--limit", "1"]].concat());
    }
    let after = samples(&node);
    assert_eq!(after[&of("backlog_messages", "shipping")], 0.0);
    assert_eq!(after[&of("oldest_unacked_seconds", "shipping")], 0.0);
    assert_eq!(after[&of("backlog_messages", "billing")], 3.0);
    assert_eq!(after["orderly_acks_total"], 3.0);
    assert!(after["orderly_deliveries_total"] >= 3.0);

    node.orderly_ok(&["subscriptions", "delete", "billing"]);
    assert!(!samples(&node).contains_key(&of("backlog_messages", "billing")));
}
