//! A panic in one part of a node ends all of it.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::node::process::wait;

/// Tells this test that it is the process that panics.
const PANICS: &str = "ORDERLY_TEST_PANICS";
/// What `abort` ends a process with.
const SIGABRT: i32 = 6;

#[test]
fn a_task_that_panics_ends_the_process_and_says_why() {
    if std::env::var_os(PANICS).is_some() {
        return panic_in_a_task();
    }
    let this = std::env::current_exe().expect("a test is a program");
    let test = "panic::a_task_that_panics_ends_the_process_and_says_why";
    let mut child = Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env(PANICS, "yes")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program runs");
    let status = wait(&mut child);
    let output = child.wait_with_output().expect("it is our child");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status.signal(), Some(SIGABRT), "{said}");
    assert!(said.contains("a defect in one part"), "{said}");
    assert!(said.contains("the node stops"), "{said}");
}

/// Ends well, unless the panic ends everything.
fn panic_in_a_task() {
    node::panics::end_process();
    let runtime = tokio::runtime::Builder::new_multi_thread().build();
    runtime.expect("threads start").block_on(async {
        let task = tokio::spawn(async { panic!("a defect in one part") });
        assert!(task.await.is_err());
    });
}
