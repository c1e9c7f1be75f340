//! What a move takes along of a sealed strand: messages, and for each subscription how far it is.
//!
//! Settled-ack records stay: an ack is asked for again where its message has its id from.

use model::limits::{MOVE_BYTES_MAX, MOVE_ITEMS_MAX};
use model::{Incarnation, MessageId};

use super::read::{self, LAST_INCARNATION};
use super::{Backlog, backlog};
use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::delivery::Delivery;
use crate::table::holes::Holes;
use crate::table::run::{Run, RunKey};
use crate::table::staged::{CopyHead, StagedItem};
use crate::table::strand::StrandKey;

/// A copy of a strand, without the payloads of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandCopy {
    /// Its items, in the order in which they are sent.
    pub items: Vec<StagedItem>,
    /// What the whole of it is like.
    pub head: CopyHead,
}

/// The copy of a strand as it is now; `None` if there is no strand, or too much of it to be moved.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn of_strand(view: &dyn View, key: &StrandKey) -> Result<Option<StrandCopy>, Fault> {
    let Some(strand) = read::strand(view, key.topic, key.strand)? else {
        return Ok(None);
    };
    let Some(runs) = runs(view, key)? else {
        return Ok(None);
    };
    let mut items: Vec<_> = runs
        .iter()
        .map(|(first, run)| StagedItem::Run {
            first: *first,
            run: run.clone(),
        })
        .collect();
    let mut subscriptions = Vec::new();
    for (subscription, attachment) in attachments(view, key.topic)? {
        let Some(backlog) = Backlog::open(view, key.topic, subscription)? else {
            continue;
        };
        subscriptions.push(subscription);
        match attachment.settings.ordered {
            true => items.push(StagedItem::Lane {
                subscription,
                lane: backlog.lane(key.strand)?,
            }),
            false => items.extend(holes(&backlog, key.topic, subscription, &runs)?),
        }
        items.extend(deliveries(view, subscription, &runs)?);
        if items.len() > MOVE_ITEMS_MAX {
            return Ok(None);
        }
    }
    let head = CopyHead {
        items: items.len() as u64,
        last: strand.last,
        published: strand.published,
        subscriptions,
    };
    Ok(Some(StrandCopy { items, head }))
}

/// The stored runs of a strand; `None` if they are too many.
fn runs(view: &dyn View, key: &StrandKey) -> Result<Option<Vec<(MessageId, Run)>>, Fault> {
    let (mut runs, mut bytes) = (Vec::new(), 0);
    for row in read::strand_runs(view, key.topic, key.strand, MessageId::ZERO) {
        let (found, _) = row?;
        let (topic, first) = (key.topic, found.first);
        let run = view.row::<Run>(&RunKey { topic, first })?;
        let run = run.ok_or_else(|| Fault::Missing(format!("run {first} of {key:?}")))?;
        bytes += run.bytes;
        runs.push((first, run));
        if runs.len() > MOVE_ITEMS_MAX || bytes > MOVE_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(runs))
}

/// The subscriptions that take part in a topic.
pub(super) fn attachments(
    view: &dyn View,
    topic: Incarnation,
) -> Result<Vec<(Incarnation, Attachment)>, Fault> {
    let key = |subscription| AttachmentKey {
        topic,
        subscription,
    };
    let rows = view.rows::<Attachment>(&key(Incarnation(0)), &key(LAST_INCARNATION));
    rows.map(|row| row.map(|(key, attachment)| (key.subscription, attachment)))
        .collect()
}

fn holes(
    backlog: &Backlog<'_>,
    topic: Incarnation,
    subscription: Incarnation,
    runs: &[(MessageId, Run)],
) -> Result<Vec<StagedItem>, Fault> {
    let holes = |(first, _): &(MessageId, Run)| {
        let first = *first;
        let holes = backlog.holes(RunKey { topic, first })?;
        let holes = holes.unwrap_or_else(|| match backlog.precedes(first) {
            true => Holes::All,
            false => Holes::Some(Vec::new()),
        });
        Ok(StagedItem::Holes {
            subscription,
            first,
            holes,
        })
    };
    runs.iter().map(holes).collect()
}

fn deliveries(
    view: &dyn View,
    subscription: Incarnation,
    runs: &[(MessageId, Run)],
) -> Result<Vec<StagedItem>, Fault> {
    let mut items = Vec::new();
    if backlog::deliveries(view, subscription).next().is_none() {
        return Ok(items);
    }
    for (first, run) in runs {
        for number in 0..run.count {
            let message = first.plus(number);
            if let Some(mut delivery) = delivery(view, subscription, message)? {
                // The stream that has the message is open at this shard, and never comes back at
                // another one: its lease runs in full there.
                if let Some(lease) = &mut delivery.lease {
                    lease.stream = None;
                }
                items.push(StagedItem::Delivery {
                    subscription,
                    message,
                    delivery,
                });
            }
        }
    }
    Ok(items)
}

fn delivery(
    view: &dyn View,
    subscription: Incarnation,
    message: MessageId,
) -> Result<Option<Delivery>, Fault> {
    view.row(&crate::table::delivery::DeliveryKey {
        subscription,
        message,
    })
}
