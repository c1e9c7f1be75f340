//! `orderly drill`, as operators run it: it starts a cluster of its own, loses a region, and says
//! whether the promises held.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cluster;

#[test]
fn a_region_is_lost_in_a_drill_and_no_promise_is_broken() {
    let _turn = cluster::turn();
    // Other processes run tests too: a drill takes ports up to 2,030 above this one.
    let port = 12_000 + std::process::id() % 180 * 100;
    let output = Command::new(env!("CARGO_BIN_EXE_orderly"))
        .args(["drill", "region-loss", "--demo", "--live", "-o", "json"])
        .args(["--nodes", "1", "--port", &port.to_string()])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict = serde_json::from_slice::<Value>(&output.stdout);
    let verdict = verdict.unwrap_or_else(|error| panic!("it prints no JSON: {error}: {said}"));
    for zero in ["lost", "order_violations", "exactly_once_violations"] {
        assert_eq!(verdict[zero], 0, "{zero}: {verdict:#} {said}");
    }
    for number in ["duplicates", "rto_publish_ms", "rto_delivery_ms"] {
        assert!(verdict[number].is_u64(), "{number}: {verdict:#} {said}");
    }
    assert_eq!(verdict["verdict"], "pass", "{verdict:#} {said}");
    assert!(output.status.success(), "{said}");
}
