//! Rows about how long a node takes until it answers.

use std::time::Instant;

use super::lab::Lab;
use super::row::Line;
use crate::cli::Failure;

/// An empty folder.
pub(crate) fn start(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let start = Instant::now();
    lab.node()?;
    let orderly = format!("{} ms", start.elapsed().as_millis());
    let command = "orderly serve".to_owned();
    Ok(vec![Line {
        work: "start with an empty folder".into(),
        orderly,
        emulator: None,
        command,
    }])
}

/// A folder full of messages, after kill -9.
pub(crate) fn recover(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let mut node = lab.node()?;
    let messages = lab.scale.messages;
    let arguments = format!("--batch 100 --count {messages} --no-consume --keep");
    let filled = lab.load(&node, &arguments)?;
    let megabytes = node.data_bytes() / 1_000_000;
    let took = node.kill_and_restart()?;

    let work = format!("start after kill -9 with {megabytes} MB of data");
    let mut line = filled.line(&work, |_| String::new());
    line.orderly = format!("{} ms{}", took.as_millis(), line.orderly);
    line.command = format!("{}; kill -9; orderly serve", line.command);
    Ok(vec![line])
}
