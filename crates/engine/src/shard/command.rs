//! The commands of a shard and their answers.

use std::time::Duration;

use model::run::RunPayload;
use model::{
    Epoch, Generation, Incarnation, KeyHash, MessageId, RegistryNumber, SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Activate, DropSealed, Reopen, Seal, SealAbsent, Stage, Unstage};
use crate::subscription::SubscriptionSettings;
use crate::table::run::{Run, RunKey};
use crate::table::strand::StrandKey;

/// A command in a shard's log. One struct each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Stores a run.
    Publish(Publish),
    /// A subscription takes part from here on, or changes its settings.
    Attach(Attach),
    /// A subscription takes no part any more: deleted, or detached.
    Detach(Detach),
    /// A topic takes no more messages: it was deleted.
    CloseTopic(CloseTopic),
    /// Messages are settled.
    Acknowledge(Acknowledge),
    /// Lanes go back, before anything of them is sent again.
    Rewind(Rewind),
    /// Deliveries of an exactly-once subscription that are about to be sent.
    Grant(Grant),
    /// Leases of an exactly-once subscription that run longer.
    Extend(Extend),
    /// Deliveries that failed.
    Fail(Fail),
    /// A step of cleaning up.
    Sweep(Sweep),
    /// Strands are frozen.
    Seal(Seal),
    /// Strands that have no row never open at an epoch of before.
    SealAbsent(SealAbsent),
    /// Sealed strands are open again.
    Reopen(Reopen),
    /// Sealed strands go.
    DropSealed(DropSealed),
    /// A part of a copy of a strand has come.
    Stage(Stage),
    /// A copy of a strand is not wanted any more.
    Unstage(Unstage),
    /// A copy of a strand is opened.
    Activate(Activate),
}

impl Command {
    /// How many payloads the command has beside the log.
    #[must_use]
    pub fn payload_count(&self) -> u32 {
        match self {
            Command::Publish(_) => 1,
            Command::Stage(stage) => stage.payload_count(),
            _ => 0,
        }
    }

    /// Those payloads, in order.
    #[must_use]
    pub fn payloads(&self) -> &[RunPayload] {
        match self {
            Command::Publish(publish) => std::slice::from_ref(&publish.payload),
            Command::Stage(stage) => &stage.payloads,
            _ => &[],
        }
    }

    /// Puts them back; there must be as many as [`Command::payload_count`] says.
    pub(crate) fn attach_payloads(&mut self, payloads: &mut impl Iterator<Item = RunPayload>) {
        let mut next = || payloads.next().expect("each payload was stored");
        match self {
            Command::Publish(publish) => publish.payload = next(),
            Command::Stage(stage) => {
                stage.payloads = (0..stage.payload_count()).map(|_| next()).collect();
            }
            _ => {}
        }
    }
}

/// Stores the messages of one request as one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The topic.
    pub topic: Incarnation,
    /// The strand: of the ordering key, or the topic's unkeyed one.
    pub strand: KeyHash,
    /// Whether the messages have an ordering key.
    pub keyed: bool,
    /// How to open the strand, where the leader has found none open. `None` without a key.
    pub opening: Option<Opening>,
    /// How many messages; at least one.
    pub count: u32,
    /// What they weigh together, in bytes.
    pub bytes: u64,
    /// The messages; stored beside the log.
    #[serde(skip)]
    pub payload: RunPayload,
}

/// A pin as its registry group has just given it to this shard. It opens the strand, or lets it
/// adopt a newer epoch, in the same command as the publish that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The group that has the pin.
    pub registry: RegistryNumber,
    /// The pin's epoch.
    pub epoch: Epoch,
    /// As in [`crate::registry::Pin::since`].
    pub since: Epoch,
    /// The shard goes on above this id: the key may have had messages up to it elsewhere.
    pub id_floor: MessageId,
}

/// A subscription takes part in a topic, or changes its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// Which version of the settings; one that is not newer than the present one changes nothing.
    pub version: u64,
    /// The settings.
    pub settings: SubscriptionSettings,
}

/// A subscription takes no part any more; its backlog is dropped, by sweeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detach {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
}

/// A topic takes no more messages. What is stored stays until every subscription has settled it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseTopic {
    /// The topic.
    pub topic: Incarnation,
}

/// Messages of one subscription are settled: acknowledged, dead-lettered, or not wanted by the
/// filter. Answered with one [`AckOutcome`] for each, in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledge {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// The messages: strand, id, and the delivery that is acknowledged. `None` settles a message
    /// whatever its delivery: the leader has dead-lettered it, or the filter does not want it.
    pub messages: Vec<(KeyHash, MessageId, Option<Generation>)>,
}

/// Lanes of an at-least-once subscription go back: their marks from there on are erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// The lanes.
    pub lanes: Vec<LaneRewind>,
}

/// One lane goes back; nothing happens if its position has passed `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRewind {
    /// The strand.
    pub strand: KeyHash,
    /// The first message that is sent again.
    pub from: MessageId,
    /// Only acks of deliveries from this one on count for the messages from `from` on.
    pub generation: Generation,
}

/// Exactly-once deliveries about to be sent. Answered with one [`LeaseOutcome`] for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// The stream that gets them, by the number of its first opening; a later leader knows by it
    /// whether the stream is still there. `None` for a Pull, or where it is not known.
    pub stream: Option<SessionId>,
    /// The deliveries.
    pub deliveries: Vec<Granted>,
}

/// One lease. Refused if the message is settled or has a live lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The strand.
    pub strand: KeyHash,
    /// The message.
    pub message: MessageId,
    /// The delivery.
    pub generation: Generation,
    /// How long the lease runs from its sending.
    pub duration: Duration,
}

/// Exactly-once leases run for `duration` from now. Answered with one [`LeaseOutcome`] for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extend {
    /// The subscription.
    pub subscription: Incarnation,
    /// Message, delivery, and the new duration.
    pub leases: Vec<(MessageId, Generation, Duration)>,
}

/// Deliveries failed: they were nacked, or their lease ran out, or they end with the delivery in
/// front of them. Answered with one [`LeaseOutcome`] for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fail {
    /// The topic.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// The deliveries.
    pub deliveries: Vec<Failed>,
}

/// One failed delivery. On exactly-once subscriptions it counts only while its lease lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The strand.
    pub strand: KeyHash,
    /// The message.
    pub message: MessageId,
    /// The delivery.
    pub generation: Generation,
    /// Why, which also says whether it counts as an attempt.
    pub cause: FailCause,
}

/// Why a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailCause {
    /// The client said so. Counts as an attempt.
    Nack,
    /// The lease ran out. Counts as an attempt.
    Expiry,
    /// The delivery never reached the client. Does not count.
    Returned,
}

/// A bounded step of cleaning up: at most [`model::limits::SWEEP_ROWS_MAX`] rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sweep {
    /// Drops what a detached subscription has left of its topic. How far it came stands in
    /// [`crate::table::detached`].
    Detached {
        /// The topic.
        topic: Incarnation,
        /// The subscription.
        subscription: Incarnation,
    },
    /// Drops strands of `topic` that have no key, and are drained and idle, from `from` on. Those
    /// with a key have a pin, which goes first; see [`Seal`].
    IdleStrands {
        /// The topic.
        topic: Incarnation,
        /// The first strand to look at.
        from: KeyHash,
    },
    /// Drops settled-ack records that are too old to be asked for.
    Settled,
}

/// What a command answers, and what the leader must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// To the caller.
    pub reply: Reply,
    /// To the dispatchers.
    pub effects: Vec<Effect>,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command is done and there is nothing more to say.
    Done,
    /// The messages are stored; their ids count up from `first`.
    Published {
        /// The first message's id.
        first: MessageId,
        /// The publish time of all of them.
        published: Timestamp,
    },
    /// To [`Acknowledge`].
    Acknowledged(Vec<AckOutcome>),
    /// To [`Grant`], [`Extend`] and [`Fail`].
    Leases(Vec<LeaseOutcome>),
    /// To [`Sweep`].
    Swept(Swept),
    /// Nothing was done.
    Rejected(Rejected),
}

/// What became of one ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// The message is settled, or marked, or was so before by this delivery.
    Acknowledged,
    /// Exactly-once: the delivery has no live lease. At-least-once: the lane was moved back behind
    /// this delivery, so the message comes again; or the lane has all the marks that it may have.
    Stale,
    /// Exactly-once and ordered: an earlier message of the key is not acknowledged yet.
    Unordered,
    /// Nothing was done: the strand is sealed, or not here. The owner of the key must be asked.
    Elsewhere,
}

/// What became of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// Granted, extended, or ended; with the attempts that have failed so far.
    Done {
        /// Failed attempts of the message so far.
        attempts: u32,
    },
    /// There is no such live lease, or the message is settled.
    Stale,
    /// Nothing was done: the strand is sealed, or not here. The owner of the key must be asked.
    Elsewhere,
}

/// How far a step of cleaning up came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// There is nothing more.
    All,
    /// There is more: the same command again.
    More,
    /// There is more: the same command again, from this strand on.
    MoreFrom(KeyHash),
}

/// Why a command was refused. All of these are *refused*: nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The topic was deleted.
    TopicClosed,
    /// The subscription does not take part in the topic here.
    NotAttached,
    /// The strand was opened at a newer epoch.
    EpochFenced {
        /// Its epoch.
        current: Epoch,
    },
    /// The shard has no such strand: claim the key first.
    Unclaimed,
    /// The strand is sealed.
    Sealed {
        /// The epoch at which it is.
        at: Epoch,
    },
    /// The strand may have been open at this epoch before, and gone: claim the key again.
    BelowFloor {
        /// It opens above this epoch only.
        floor: Epoch,
    },
}

/// What the leader's dispatchers must know of an applied command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A run was stored.
    Published {
        /// Topic and first id.
        key: RunKey,
        /// The run.
        run: Run,
    },
    /// A strand that was there has a newer epoch.
    Reopened {
        /// The strand.
        key: StrandKey,
        /// Its epoch now.
        epoch: Epoch,
    },
    /// A strand is frozen, because its key moves away.
    Sealed {
        /// The strand.
        key: StrandKey,
    },
    /// A strand that was sealed, or has come from another shard, is open.
    Opened {
        /// The strand.
        key: StrandKey,
    },
    /// A sealed strand has gone.
    Dropped {
        /// The strand.
        key: StrandKey,
    },
    /// A subscription takes part, or has new settings.
    Attached {
        /// The topic.
        topic: Incarnation,
        /// The subscription.
        subscription: Incarnation,
    },
    /// A subscription takes no part any more.
    Detached {
        /// The topic.
        topic: Incarnation,
        /// The subscription.
        subscription: Incarnation,
    },
}
