//! What an operator types, against one node.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval};

use crate::member::Member;

/// How long an operator waits for the cluster to come to a state.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl Member {
    /// Runs a command against this node: what it prints as JSON, or what it complains of, with what
    /// it prints all the same.
    pub(crate) async fn operate(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orderly"));
        command
            .args(["--endpoint", &self.endpoint(), "-o", "json"])
            .args(arguments)
            .stdin(Stdio::null());
        let ended = spawn_blocking(move || command.output()).await;
        let Output {
            status,
            stdout,
            stderr,
        } = ended.expect("waiting does not panic").expect("it runs");
        match status.success() {
            true => Ok(serde_json::from_slice(&stdout).expect("it prints JSON")),
            false => {
                let said = [stderr, stdout].map(|said| String::from_utf8_lossy(&said).into_owned());
                Err(said.concat())
            }
        }
    }

    /// Looks at the nodes of the cluster, removed ones too, until they are as expected.
    pub(crate) async fn sees(&self, state: &str, is_so: impl Fn(&[Value]) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        let mut look = interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let seen = self.operate(&["nodes", "list", "--all"]).await;
            if let Ok(Value::Array(nodes)) = &seen
                && is_so(nodes)
            {
                return;
            }
            assert!(Instant::now() < give_up, "not in time: {state}: {seen:?}");
        }
    }
}
