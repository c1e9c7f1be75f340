//! Commands of the binary, as a user runs them.

use std::process::{Command, Output, Stdio};

use crate::node::Node;

impl Node {
    /// Runs a command of the binary against it.
    pub(crate) fn orderly(&self, arguments: &[&str]) -> Output {
        orderly(&self.endpoint(), arguments)
    }

    /// The same, which must succeed; what it printed.
    pub(crate) fn orderly_ok(&self, arguments: &[&str]) -> String {
        let output = self.orderly(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("output is text")
    }
}

/// Runs a command of the binary.
pub(crate) fn orderly(endpoint: &str, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_orderly"))
        .args(arguments)
        .env("PUBSUB_EMULATOR_HOST", endpoint)
        .env_remove("PUBSUB_PROJECT_ID")
        .stdin(Stdio::null())
        .output();
    output.expect("the binary runs")
}
