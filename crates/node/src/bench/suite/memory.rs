//! Rows about how much memory one of many small things costs.
//!
//! Where they are keys, the node first does other work, until its caches and buffers are as large as
//! they get, and the same work once. Then it is looked at what the node gains: the first keys after
//! the start fill RocksDB's buffers, and thousands of them would show nothing else. Subscriptions are
//! created on a new node: they fill no buffers, and a project has no room for them twice.

use super::lab::Lab;
use super::outcome::Outcome;
use super::row::Line;
use crate::cli::Failure;

/// Keys of which all messages were acknowledged.
pub(crate) fn idle_keys(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let keys = lab.scale.keys;
    let arguments = format!("--unique-keys --count {keys} --in-flight 256 --size 32");
    gained(lab, "memory of an idle key", &arguments, keys, true)
}

/// Subscriptions from which nobody pulls.
pub(crate) fn idle_subscriptions(lab: &Lab) -> Result<Vec<Line>, Failure> {
    // A project has no more than these with the two that are not idle.
    let subscriptions = lab.scale.subscriptions - 1;
    let arguments = format!("--no-consume --count 1 --idle-subscriptions {subscriptions}");
    gained(
        lab,
        "memory of an idle subscription",
        &arguments,
        subscriptions,
        false,
    )
}

/// Keys of which a consumer holds the first message.
pub(crate) fn stuck_keys(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let keys = lab.scale.keys;
    let arguments = format!(
        "--unique-keys --count {keys} --in-flight 256 --size 32 --no-ack --outstanding {keys}"
    );
    gained(lab, "memory of a stuck key", &arguments, keys, true)
}

/// Looks at what a load costs, for each of `count` things. `twice`: after other work and the same.
fn gained(
    lab: &Lab,
    work: &str,
    arguments: &str,
    count: u64,
    twice: bool,
) -> Result<Vec<Line>, Failure> {
    let node = lab.node()?;
    let messages = lab.scale.messages;
    if twice {
        lab.load(&node, &format!("--batch 100 --count {messages} --keep"))?;
        lab.load(&node, &format!("{arguments} --keep"))?;
    }
    let process = node.process();
    let watched = lab.load(
        &node,
        &format!("{arguments} --keep --watch-process {process}"),
    )?;
    let mut line = watched.line(work, |_: &Outcome| String::new());
    line.orderly = format!("{}{}", watched.memory_each(count), line.orderly);
    Ok(vec![line])
}
