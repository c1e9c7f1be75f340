//! Stores a run.

use model::{MessageId, sabotage};

use super::run_release::drop_payload;
use super::{At, Effect, Outcome, Publish, Rejected, Reply, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::run::{Run, RunKey};
use crate::table::shard::{Shard, ShardKey};
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
    if let Some(rejected) = refusal(publish, topic.closed, strand.as_ref()) {
        drop_payload(overlay, at.payload());
        return Ok(rejected.into());
    }
    let first = take_ids(overlay, publish.count, at)?;
    let reply = Reply::Published {
        first,
        published: at.time,
    };
    let stored = topic.attachments > 0;
    write_strand(overlay, publish, strand, first, stored, at);
    if !stored {
        drop_payload(overlay, at.payload());
        return Ok(reply.into());
    }
    let effects = vec![store(overlay, publish, first, topic.attachments, at)];
    Ok(Outcome { reply, effects })
}

fn refusal(publish: &Publish, closed: bool, strand: Option<&Strand>) -> Option<Rejected> {
    match strand {
        _ if closed && !sabotage!("closed-topic-accepts") => Some(Rejected::TopicClosed),
        Some(strand) if publish.epoch < strand.epoch && !sabotage!("old-owner-publishes") => {
            Some(Rejected::EpochFenced {
                current: strand.epoch,
            })
        }
        _ => None,
    }
}

/// The first of `count` consecutive ids that the shard has never given out.
fn take_ids(overlay: &mut Overlay<'_>, count: u32, at: At) -> Result<MessageId, Fault> {
    let shard = read::shard(overlay)?;
    let newest = at.newest(&shard);
    let taken = if sabotage!("ids-repeat") { 1 } else { count };
    let counter = shard.counter + u64::from(taken);
    overlay.put(&ShardKey, &Shard { counter, ..shard });
    Ok(newest.plus(1))
}

/// Opens the strand at the publish's epoch, or adopts it: the leader holds the key's pin at it.
fn write_strand(
    overlay: &mut Overlay<'_>,
    publish: &Publish,
    before: Option<Strand>,
    first: MessageId,
    stored: bool,
    at: At,
) {
    let last = first.plus(publish.count - 1);
    assert!(
        before.as_ref().is_none_or(|before| before.last < first),
        "ids of a strand grow"
    );
    let strand = Strand {
        epoch: publish.epoch,
        last,
        published: at.time,
        runs: before.map_or(0, |before| before.runs) + u64::from(stored),
    };
    let key = StrandKey {
        topic: publish.topic,
        strand: publish.strand,
    };
    overlay.put(&key, &strand);
}

fn store(
    overlay: &mut Overlay<'_>,
    publish: &Publish,
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
        keyed: publish.keyed,
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
