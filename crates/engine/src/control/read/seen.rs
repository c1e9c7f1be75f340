//! What the catalogue says of one name, and since when: whoever has applied a change that others
//! have not must not answer from it yet, but may answer from everything else.

use std::collections::BTreeMap;

use model::{Boot, NodeId, SubscriptionName, TopicName};

use crate::Fault;
use crate::control::table::awake_node::AwakeNode;
use crate::control::table::changes::{Changes, ChangesKey};
use crate::control::table::node::NodeKey;
use crate::control::{At, Subscription, Topic, read};
use crate::kv::{View, ViewExt};

/// What was seen of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<T> {
    /// What bears the name, if anything does.
    pub found: Option<T>,
    /// The index of an entry that made it so, or of a later one; zero where none was needed.
    pub since: u64,
}

/// The topic of a name, and the entry that changed it last.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn seen_topic(view: &dyn View, name: &TopicName) -> Result<Seen<Topic>, Fault> {
    let found = read::topic(view, name)?;
    let version = found.as_ref().map(|topic| topic.version);
    let since = since(view, version)?;
    Ok(Seen { found, since })
}

/// The subscription of a name, and the entry that changed it last.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn seen_subscription(
    view: &dyn View,
    name: &SubscriptionName,
) -> Result<Seen<Subscription>, Fault> {
    let found = read::subscription(view, name)?;
    let version = found.as_ref().map(|subscription| subscription.version);
    let since = since(view, version)?;
    Ok(Seen { found, since })
}

/// The topic of a name, and the entry that created it: what it is by now does not matter.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn living_topic(view: &dyn View, name: &TopicName) -> Result<Seen<Topic>, Fault> {
    let found = read::topic(view, name)?;
    let created = found.as_ref().map(|topic| topic.incarnation.0);
    let since = since(view, created)?;
    Ok(Seen { found, since })
}

/// The subscription of a name, and the entry that created it, or that detached it: what else it is
/// by now does not matter.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn living_subscription(
    view: &dyn View,
    name: &SubscriptionName,
) -> Result<Seen<Subscription>, Fault> {
    let found = read::subscription(view, name)?;
    let created = found.as_ref().map(|found| match found.detached {
        true => found.version,
        false => found.incarnation.0,
    });
    let since = since(view, created)?;
    Ok(Seen { found, since })
}

/// The index of the last entry that changed a topic or a subscription; zero before the first.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn last_change(view: &dyn View) -> Result<u64, Fault> {
    Ok(changes(view)?.last)
}

/// The nodes that may hold a catalogue lease, and the life of each that may.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn awake(view: &dyn View) -> Result<BTreeMap<NodeId, Boot>, Fault> {
    let (from, to) = NodeKey::all();
    view.rows::<AwakeNode>(&from, &to)
        .map(|row| row.map(|(key, awake)| (key.node, awake.boot)))
        .collect()
}

/// To be asked after the row was: a state that moves on in between then only looks newer.
fn since(view: &dyn View, number: Option<u64>) -> Result<u64, Fault> {
    match number {
        Some(number) => Ok(At::index_of(number)),
        None => Ok(changes(view)?.last_deletion),
    }
}

fn changes(view: &dyn View) -> Result<Changes, Fault> {
    Ok(view.row(&ChangesKey)?.unwrap_or_default())
}
