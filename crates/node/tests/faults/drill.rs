//! `orderly drill`, as operators run it: it starts a cluster of its own, takes something away, and
//! says whether the promises held.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cluster;

#[test]
fn a_region_is_lost_in_a_drill_and_no_promise_is_broken() {
    let verdict = drilled("region-loss", &[]);
    assert_eq!(verdict["drill"], "region-loss of north", "{verdict:#}");
    for number in ["duplicates", "rto_publish_ms", "rto_delivery_ms"] {
        assert!(verdict[number].is_u64(), "{number}: {verdict:#}");
    }
}

#[test]
fn a_leader_is_lost_in_drills_one_after_the_other() {
    let verdict = drilled("leader-loss", &["--repeat", "2"]);
    assert_eq!(verdict["rounds"], 2, "{verdict:#}");
    for rto in ["rto_publish_ms", "rto_delivery_at_least_once_ms"] {
        let spread = &verdict[rto];
        assert_eq!(spread["rounds"], 2, "{rto}: {verdict:#}");
        assert!(spread["median"].is_u64() && spread["p99"].is_u64() && spread["max"].is_u64());
    }
    for round in verdict["each"].as_array().expect("two rounds") {
        // Whoever leads most keys has led some: they could not be published to for a while.
        assert!(led_by_a_node(round), "{verdict:#}");
        assert!(round["rto_publish_ms"].as_u64() > Some(300), "{verdict:#}");
    }
}

#[test]
fn a_leader_is_paused_in_a_drill_and_goes_on_without_harm() {
    let verdict = drilled("leader-pause", &[]);
    assert!(led_by_a_node(&verdict), "{verdict:#}");
    let rto = verdict["rto_publish_ms"].as_u64();
    assert!(rto > Some(300), "nobody leads at once: {verdict:#}");
}

/// Whether the drill says which node it was.
fn led_by_a_node(verdict: &Value) -> bool {
    let what = verdict["drill"].as_str().unwrap_or_default();
    ["north-1", "south-1", "west-1"]
        .iter()
        .any(|node| what.ends_with(&format!(" of {node}")))
}

/// What a drill prints that passes.
fn drilled(drill: &str, more: &[&str]) -> Value {
    let _turn = cluster::turn();
    // Other processes run tests too: a drill takes ports up to 2,030 above this one.
    let port = 12_000 + std::process::id() % 180 * 100;
    let output = Command::new(env!("CARGO_BIN_EXE_orderly"))
        .args(["drill", drill, "--demo", "--live", "-o", "json"])
        .args(["--nodes", "1", "--port", &port.to_string()])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict = serde_json::from_slice::<Value>(&output.stdout);
    let verdict = verdict.unwrap_or_else(|error| panic!("it prints no JSON: {error}: {said}"));
    for zero in ["lost", "order_violations", "exactly_once_violations"] {
        assert_eq!(verdict[zero], 0, "{zero}: {verdict:#} {said}");
    }
    assert_eq!(verdict["verdict"], "pass", "{verdict:#} {said}");
    assert!(output.status.success(), "{said}");
    verdict
}
