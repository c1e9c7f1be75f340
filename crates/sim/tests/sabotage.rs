//! The simulator finds what is put in on purpose: each of these faults of one line breaks a promise
//! within a few seeds.
//!
//! `cargo test -p orderly-sim --features sabotage --test sabotage`

use std::process::{Command, ExitStatus, Stdio};

/// In the order of the promises that they break.
const FAULTS: [&str; 8] = [
    "rewind-keeps-marks",
    "lane-skips",
    "run-goes-early",
    "attach-too-late",
    "failed-lease-lives",
    "ack-without-lease",
    "stale-ack-counts",
    "ids-repeat",
];

/// What the simulator says of a few seeds with one fault, or with none.
fn simulate(fault: &str) -> ExitStatus {
    Command::new(env!("CARGO_BIN_EXE_orderly-sim"))
        .args(["--seed", "1", "--seeds", "40", "--steps", "3000"])
        .env("ORDERLY_SABOTAGE", fault)
        .stderr(Stdio::null())
        .status()
        .expect("the simulator was built for this test")
}

#[test]
fn every_fault_is_found() {
    let unnoticed = FAULTS.into_iter().filter(|fault| simulate(fault).success());
    let unnoticed: Vec<_> = unnoticed.collect();
    assert!(unnoticed.is_empty(), "nobody notices {unnoticed:?}");
}

#[test]
fn without_a_fault_nothing_is_found() {
    assert!(simulate("none").success());
}
