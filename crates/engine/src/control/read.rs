//! What the catalogue says.

mod cluster;
mod describe;
mod page;
mod seen;

use std::collections::BTreeSet;

use model::{Incarnation, ProjectId, SubscriptionName, TopicName};
use thiserror::Error;

pub use cluster::{
    cluster, format_level, node, nodes, placement, placements, present_regions, region, regions,
};
pub use describe::{
    NodeDescription, RegionDescription, ShardDescription, Survives, describe_nodes,
    describe_regions, describe_shards,
};
pub use page::{InvalidPage, Page, PageRequest};
pub use seen::{
    Seen, awake, last_change, living_subscription, living_topic, seen_subscription, seen_topic,
};

use super::table::NameKey;
use super::table::topic_subscription::{TopicSubscription, TopicSubscriptionKey};
use super::{Subscription, Topic};
use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::shard::Attach;
use crate::table::Row;

/// A list can't be given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListError {
    /// The request is not one that a client may make.
    #[error(transparent)]
    Page(#[from] InvalidPage),
    /// There is no such topic.
    #[error("topic \"{0}\" not found")]
    TopicNotFound(TopicName),
    /// The state can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The topic of a name.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn topic(view: &dyn View, name: &TopicName) -> Result<Option<Topic>, Fault> {
    view.row(&NameKey::from(name))
}

/// The subscription of a name.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn subscription(
    view: &dyn View,
    name: &SubscriptionName,
) -> Result<Option<Subscription>, Fault> {
    view.row(&NameKey::from(name))
}

/// One page of a project's topics, by name.
///
/// # Errors
/// [`ListError`]; never that a topic is missing.
pub fn topics(
    view: &dyn View,
    project: &ProjectId,
    request: &PageRequest<'_>,
) -> Result<Page<Topic>, ListError> {
    let parent = format!("projects/{}/topics/", project.as_str());
    named(view, &parent, request, |topic: &Topic| topic.name.as_str())
}

/// One page of a project's subscriptions, by name.
///
/// # Errors
/// [`ListError`]; never that a topic is missing.
pub fn subscriptions(
    view: &dyn View,
    project: &ProjectId,
    request: &PageRequest<'_>,
) -> Result<Page<Subscription>, ListError> {
    let parent = format!("projects/{}/subscriptions/", project.as_str());
    named(view, &parent, request, |subscription: &Subscription| {
        subscription.name.as_str()
    })
}

/// One page of the names of a topic's subscriptions, of whatever project, without detached ones.
///
/// # Errors
/// [`ListError`]
pub fn topic_subscriptions(
    view: &dyn View,
    name: &TopicName,
    request: &PageRequest<'_>,
) -> Result<Page<SubscriptionName>, ListError> {
    let parent = format!("{name}/subscriptions/");
    let start = request.start(&parent)?;
    let Some(topic) = topic(view, name)? else {
        return Err(ListError::TopicNotFound(name.clone()));
    };
    let (from, to) = TopicSubscriptionKey::after(topic.incarnation, start.after);
    let found = view
        .rows::<TopicSubscription>(&from, &to)
        .map(|row| row.map(|(_, entry)| entry))
        .filter(|entry| !matches!(entry, Ok(entry) if entry.detached))
        .map(|entry| entry.map(|entry| entry.name));
    Ok(start.page(found, SubscriptionName::as_str)?)
}

/// What each shard must have attached of a topic, which may be deleted: a new leader proposes
/// what its shard lacks.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn attachments(view: &dyn View, topic: Incarnation) -> Result<Vec<Attach>, Fault> {
    let (from, to) = TopicSubscriptionKey::after(topic, "");
    let mut attachments = Vec::new();
    for row in view.rows::<TopicSubscription>(&from, &to) {
        let (_, entry) = row?;
        if !entry.detached {
            attachments.push(indexed(view, &entry.name)?.attach());
        }
    }
    Ok(attachments)
}

/// What each shard must have attached, of all topics.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn all_attachments(view: &dyn View) -> Result<Vec<Attach>, Fault> {
    let attached = attached_subscriptions(view);
    attached.map(|row| Ok(row?.attach())).collect()
}

/// Every subscription that has a backlog, by name.
pub fn attached_subscriptions(
    view: &dyn View,
) -> impl Iterator<Item = Result<Subscription, Fault>> {
    let (from, to) = NameKey::below("projects/");
    let rows = view.rows::<Subscription>(&from, &to);
    rows.filter_map(|row| match row {
        Ok((_, subscription)) if subscription.detached => None,
        Ok((_, subscription)) => Some(Ok(subscription)),
        Err(fault) => Some(Err(fault)),
    })
}

/// Every topic, by name.
pub fn all_topics(view: &dyn View) -> impl Iterator<Item = Result<Topic, Fault>> {
    let (from, to) = NameKey::below("projects/");
    let rows = view.rows::<Topic>(&from, &to);
    rows.map(|row| row.map(|(_, topic)| topic))
}

/// The topics that are there: a shard must close any other that it knows.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn open_topics(view: &dyn View) -> Result<BTreeSet<Incarnation>, Fault> {
    all_topics(view)
        .map(|topic| Ok(topic?.incarnation))
        .collect()
}

/// The subscription of a name that an index has.
pub(super) fn indexed(view: &dyn View, name: &SubscriptionName) -> Result<Subscription, Fault> {
    let found = subscription(view, name)?;
    found.ok_or_else(|| Fault::Missing(format!("subscription {name}")))
}

/// One page of the rows whose names begin with `parent`.
fn named<R: Row<Key = NameKey>>(
    view: &dyn View,
    parent: &str,
    request: &PageRequest<'_>,
    name: fn(&R) -> &str,
) -> Result<Page<R>, ListError> {
    let start = request.start(parent)?;
    let (first, to) = NameKey::below(parent);
    let from = match start.after {
        "" => first,
        after => NameKey::after(after),
    };
    let rows = view
        .rows::<R>(&from, &to)
        .map(|row| row.map(|(_, row)| row));
    Ok(start.page(rows, name)?)
}
