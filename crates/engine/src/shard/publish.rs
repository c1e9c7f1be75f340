//! Stores a run.

use model::{Epoch, MessageId, sabotage};

use super::run_release::drop_payload;
use super::{At, Effect, Outcome, Publish, Rejected, Reply, open, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::run::{Run, RunKey};
use crate::table::sealed::Sealed;
use crate::table::shard::ShardKey;
use crate::table::strand::{Strand, StrandKey};
use crate::table::strand_run::{StrandRun, StrandRunKey};

pub(super) fn apply(
    overlay: &mut Overlay<'_>,
    publish: &Publish,
    at: At,
) -> Result<Outcome, Fault> {
    assert!(publish.count > 0, "a run has a message");
    let topic = read::topic(overlay, publish.topic)?;
    let strand = read::strand(overlay, publish.topic, publish.strand)?;
    let epoch = match topic.closed && !sabotage!("closed-topic-accepts") {
        true => Err(Rejected::TopicClosed),
        false => open::epoch_of(overlay, publish, strand.as_ref())?,
    };
    let epoch = match epoch {
        Ok(epoch) => epoch,
        Err(rejected) => {
            drop_payload(overlay, at.payload());
            return Ok(rejected.into());
        }
    };
    let first = take_ids(overlay, publish, at)?;
    let reply = Reply::Published {
        first,
        published: at.time,
    };
    let stored = topic.attachments > 0;
    let after = Strand {
        epoch,
        last: first.plus(publish.count - 1),
        published: at.time,
        runs: strand.as_ref().map_or(0, |before| before.runs) + u64::from(stored),
        sealed: false,
    };
    let reopened = write_strand(overlay, publish, strand.as_ref(), &after);
    let mut effects = Vec::from_iter(reopened);
    match stored {
        true => effects.push(store(overlay, publish, epoch, first, topic.attachments, at)),
        false => drop_payload(overlay, at.payload()),
    }
    Ok(Outcome { reply, effects })
}

/// The first of consecutive ids that the shard has never given out, above the floor of the key's
/// registry group where the publish brings one.
fn take_ids(overlay: &mut Overlay<'_>, publish: &Publish, at: At) -> Result<MessageId, Fault> {
    let mut shard = read::shard(overlay)?;
    if let Some(opening) = &publish.opening
        && !sabotage!("id-floor-is-forgotten")
    {
        shard.counter = shard.counter.max(opening.id_floor.counter());
    }
    let newest = at.newest(&shard);
    let count = u64::from(publish.count);
    shard.counter += if sabotage!("ids-repeat") { 1 } else { count };
    overlay.put(&ShardKey, &shard);
    Ok(newest.plus(1))
}

/// Writes the strand, which a publish has opened or made longer.
fn write_strand(
    overlay: &mut Overlay<'_>,
    publish: &Publish,
    before: Option<&Strand>,
    after: &Strand,
) -> Option<Effect> {
    let (topic, strand, epoch) = (publish.topic, publish.strand, after.epoch);
    assert!(
        before.is_none_or(|before| before.last.plus(publish.count) <= after.last),
        "ids of a strand grow"
    );
    let key = StrandKey { topic, strand };
    overlay.put(&key, after);
    if before.is_some_and(|before| before.sealed) {
        overlay.delete::<Sealed>(&key);
    }
    let is_reopened = before.is_some_and(|before| before.epoch < epoch);
    is_reopened.then_some(Effect::Reopened { key, epoch })
}

fn store(
    overlay: &mut Overlay<'_>,
    publish: &Publish,
    epoch: Epoch,
    first: MessageId,
    waiting: u32,
    at: At,
) -> Effect {
    let key = RunKey {
        topic: publish.topic,
        first,
    };
    let run = Run {
        strand: publish.strand,
        epoch,
        count: publish.count,
        bytes: publish.bytes,
        published: at.time,
        payload: at.payload(),
        waiting,
    };
    let strand_run = StrandRunKey {
        topic: publish.topic,
        strand: publish.strand,
        first,
    };
    overlay.put(&key, &run);
    let count = publish.count;
    overlay.put(&strand_run, &StrandRun { count });
    Effect::Published { key, run }
}
