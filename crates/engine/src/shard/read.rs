//! What a shard's rows say, in the words of the promises. `apply` decides by it and the leader
//! delivers by it, so the two never differ in what they call settled.

use model::limits::PUBLISH_MESSAGES_MAX;
use model::run::RunPayload;
use model::{Epoch, Incarnation, KeyHash, MessageId, RegistryNumber, Timestamp};

use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::table::arrived::Arrived;
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::detached::{Detached, DetachedKey};
use crate::table::epoch_floor::{EpochFloor, EpochFloorKey};
use crate::table::run::{Run, RunKey};
use crate::table::sealed::Sealed;
use crate::table::settled_at::{SettledAt, SettledAtKey};
use crate::table::shard::{Shard, ShardKey};
use crate::table::staged::{Staged, StagedKey};
use crate::table::strand::{Strand, StrandKey};
use crate::table::strand_run::{StrandRun, StrandRunKey};
use crate::table::topic::{Topic, TopicKey};

/// Below every strand.
pub const FIRST_STRAND: KeyHash = KeyHash([0; 16]);
/// Above every strand that a hash will ever name.
const LAST_STRAND: KeyHash = KeyHash([u8::MAX; 16]);
/// Above every incarnation that is ever given out.
pub(super) const LAST_INCARNATION: Incarnation = Incarnation(u64::MAX);

/// The counters of the shard.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn shard(view: &dyn View) -> Result<Shard, Fault> {
    Ok(view.row(&ShardKey)?.unwrap_or_default())
}

/// Whether a topic is closed, and how many subscriptions take part.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn topic(view: &dyn View, topic: Incarnation) -> Result<Topic, Fault> {
    Ok(view.row(&TopicKey { topic })?.unwrap_or_default())
}

/// The messages of a run whose row was just read; none if it is settled by now, since the state goes
/// on while it is read.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub(crate) fn payload(
    view: &dyn View,
    key: RunKey,
    run: &Run,
) -> Result<Option<RunPayload>, Fault> {
    match view.payload(run.payload) {
        Err(Fault::Missing(_)) if view.row::<Run>(&key)?.is_none() => Ok(None),
        read => read.map(Some),
    }
}

/// Every subscription that takes part in a topic of this shard, by topic.
pub fn attachments(
    view: &dyn View,
) -> impl Iterator<Item = Result<(AttachmentKey, Attachment), Fault>> {
    let from = AttachmentKey {
        topic: Incarnation(0),
        subscription: Incarnation(0),
    };
    let to = AttachmentKey {
        topic: LAST_INCARNATION,
        subscription: LAST_INCARNATION,
    };
    view.rows::<Attachment>(&from, &to)
}

/// Every subscription that is detached and not cleaned up: each is work for the leader.
pub fn detached(view: &dyn View) -> impl Iterator<Item = Result<(DetachedKey, Detached), Fault>> {
    let from = DetachedKey {
        topic: Incarnation(0),
        subscription: Incarnation(0),
    };
    let to = DetachedKey {
        topic: LAST_INCARNATION,
        subscription: LAST_INCARNATION,
    };
    view.rows::<Detached>(&from, &to)
}

/// Every topic of this shard, with or without subscriptions.
pub fn topics(view: &dyn View) -> impl Iterator<Item = Result<(TopicKey, Topic), Fault>> {
    let from = TopicKey {
        topic: Incarnation(0),
    };
    let to = TopicKey {
        topic: LAST_INCARNATION,
    };
    view.rows::<Topic>(&from, &to)
}

/// A strand of this registry group that has no row opens above this epoch only.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn epoch_floor(view: &dyn View, registry: RegistryNumber) -> Result<Epoch, Fault> {
    let floor = view.row::<EpochFloor>(&EpochFloorKey(registry))?;
    Ok(floor.unwrap_or_default().epoch)
}

/// The strand, if the shard has it.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn strand(
    view: &dyn View,
    topic: Incarnation,
    strand: KeyHash,
) -> Result<Option<Strand>, Fault> {
    view.row(&StrandKey { topic, strand })
}

/// The strands of a topic from one on.
pub fn strands(
    view: &dyn View,
    topic: Incarnation,
    from: KeyHash,
) -> impl Iterator<Item = Result<(StrandKey, Strand), Fault>> {
    let from = StrandKey {
        topic,
        strand: from,
    };
    let strand = LAST_STRAND;
    view.rows::<Strand>(&from, &StrandKey { topic, strand })
}

/// Every strand that is sealed: each is work for the leader.
pub fn sealed(view: &dyn View) -> impl Iterator<Item = Result<(StrandKey, Sealed), Fault>> {
    let from = StrandKey {
        topic: Incarnation(0),
        strand: FIRST_STRAND,
    };
    let to = StrandKey {
        topic: LAST_INCARNATION,
        strand: LAST_STRAND,
    };
    view.rows::<Sealed>(&from, &to)
}

/// The strands of a topic that moves have brought.
pub fn arrived(
    view: &dyn View,
    topic: Incarnation,
) -> impl Iterator<Item = Result<KeyHash, Fault>> {
    let key = |strand| StrandKey { topic, strand };
    let rows = view.rows::<Arrived>(&key(FIRST_STRAND), &key(LAST_STRAND));
    rows.map(|row| Ok(row?.0.strand))
}

/// Every copy that a move has brought and nobody has opened.
pub fn staged(view: &dyn View) -> impl Iterator<Item = Result<(StagedKey, Staged), Fault>> {
    let key = |topic, strand, epoch| StagedKey {
        topic,
        strand,
        epoch,
    };
    let from = key(Incarnation(0), FIRST_STRAND, Epoch(0));
    let to = key(LAST_INCARNATION, LAST_STRAND, Epoch(u64::MAX));
    view.rows::<Staged>(&from, &to)
}

/// The copies of one strand, by the epochs of their sources.
pub fn copies(
    view: &dyn View,
    of: &StrandKey,
) -> impl Iterator<Item = Result<(StagedKey, Staged), Fault>> {
    let key = |epoch| StagedKey {
        topic: of.topic,
        strand: of.strand,
        epoch,
    };
    view.rows::<Staged>(&key(Epoch(0)), &key(Epoch(u64::MAX)))
}

/// The stored runs of a topic whose first message is `from` or later, in publish order.
pub fn runs(
    view: &dyn View,
    topic: Incarnation,
    from: MessageId,
) -> impl Iterator<Item = Result<(RunKey, Run), Fault>> {
    let first = MessageId::MAX;
    view.rows::<Run>(&RunKey { topic, first: from }, &RunKey { topic, first })
}

/// The stored run that has the message. None once every subscription has finished the run.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn run_of(
    view: &dyn View,
    topic: Incarnation,
    message: MessageId,
) -> Result<Option<(RunKey, Run)>, Fault> {
    let at = RunKey {
        topic,
        first: message,
    };
    // Mostly it is the first one of its run, and to get a row costs less than to search for one.
    if let Some(run) = view.row::<Run>(&at)? {
        return Ok(Some((at, run)));
    }
    // Between the first message of a run and the last there may be runs of other shards, which
    // moves have brought.
    let furthest = message
        .counter()
        .saturating_sub(PUBLISH_MESSAGES_MAX as u64);
    let first = MessageId(furthest << 16);
    let (from, mut at) = (RunKey { topic, first }, at);
    while let Some((key, run)) = view.floor_row::<Run>(&from, &at)? {
        if key.first.shard() == message.shard() {
            return Ok((message <= run.last(key.first)).then_some((key, run)));
        }
        at.first = MessageId(key.first.0 - 1);
    }
    Ok(None)
}

/// The stored runs of a strand whose first message is `from` or later, in publish order.
pub fn strand_runs(
    view: &dyn View,
    topic: Incarnation,
    strand: KeyHash,
    from: MessageId,
) -> impl Iterator<Item = Result<(StrandRunKey, StrandRun), Fault>> {
    let key = |first| StrandRunKey {
        topic,
        strand,
        first,
    };
    view.rows::<StrandRun>(&key(from), &key(MessageId::MAX))
}

/// The last stored run of a strand whose first message is `at` or earlier.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn strand_run_floor(
    view: &dyn View,
    topic: Incarnation,
    strand: KeyHash,
    at: MessageId,
) -> Result<Option<(StrandRunKey, StrandRun)>, Fault> {
    let key = |first| StrandRunKey {
        topic,
        strand,
        first,
    };
    view.floor_row(&key(MessageId::ZERO), &key(at))
}

/// The first stored message of a strand after `after`, whoever has settled it.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn next_of_strand(
    view: &dyn View,
    topic: Incarnation,
    strand: KeyHash,
    after: MessageId,
) -> Result<Option<MessageId>, Fault> {
    if let Some((key, run)) = strand_run_floor(view, topic, strand, after)?
        && after < run.last(key.first)
    {
        // `after` need not be the id of a message.
        let step = key.first.plus(1).0 - key.first.0;
        let passed = (after.0 - key.first.0) / step + 1;
        return Ok(Some(key.first.plus(passed as u32)));
    }
    let next = strand_runs(view, topic, strand, MessageId(after.0 + 1)).next();
    Ok(next.transpose()?.map(|(key, _)| key.first))
}

/// The oldest settled-ack record.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn oldest_settled(view: &dyn View) -> Result<Option<Timestamp>, Fault> {
    let oldest = settled_until(view, Timestamp(u64::MAX)).next();
    Ok(oldest.transpose()?.map(|key| key.at))
}

/// The settled-ack records from before `until`, oldest first.
pub(super) fn settled_until(
    view: &dyn View,
    until: Timestamp,
) -> impl Iterator<Item = Result<SettledAtKey, Fault>> {
    let key = |at| SettledAtKey {
        at,
        subscription: Incarnation(0),
        message: MessageId::ZERO,
    };
    let rows = view.rows::<SettledAt>(&key(Timestamp::ZERO), &key(until));
    rows.map(|row| Ok(row?.0))
}
