//! What goes into a shard's leader, and what comes out.

use std::time::Duration;

use bytes::Bytes;
use model::run::RunPayload;
use model::{
    AckId, ClientId, Epoch, Generation, Incarnation, KeyHash, MessageId, NodeId, RegistryNumber,
    SessionId, ShardNumber, Timestamp, TopicName,
};
use serde::{Deserialize, Serialize};

use super::TransferMessage;
use crate::table::staged::StagedKey;
use crate::table::strand::StrandKey;
use crate::{registry, shard};

/// Names a call of the shell until its reply. Never reused within one leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a proposal until its outcome; counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalId(pub u64);

/// Names a question to a registry group until its answer. Never reused within one leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// Names a dead letter until it is stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForwardId(pub u64);

/// Messages and bytes that a session may have outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// Messages.
    pub messages: u32,
    /// Bytes. The message that reaches or crosses this bound is still sent, the next one is not.
    pub bytes: u64,
}

/// Something that happened. The shell hands them over one at a time.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frontend publishes. Answered by [`Output::Published`].
    Publish(PublishRequest),
    /// Deliveries of one subscription are acknowledged. Answered by [`Output::Acknowledged`], one
    /// reply for each id in order.
    Acknowledge {
        /// Names the call.
        request: RequestId,
        /// Decoded ids, all of `subscription`, and of messages of this shard.
        ids: Vec<AckId>,
        /// The subscription.
        subscription: Incarnation,
    },
    /// Leases end after the given time from now; zero is a nack. Answered by [`Output::Modified`].
    ModifyDeadline {
        /// Names the call.
        request: RequestId,
        /// The subscription.
        subscription: Incarnation,
        /// Decoded ids, all of `subscription`, each with its new time.
        ids: Vec<(AckId, Duration)>,
    },
    /// The catalogue has changed: propose this (Attach, Detach or CloseTopic). Answered by
    /// [`Output::CatalogueLogged`] once it is applied.
    Catalogue {
        /// Names the call.
        request: RequestId,
        /// The command.
        command: shard::Command,
    },
    /// A client pulls. Answered by [`Output::Ended`] if the subscription is not attached here.
    OpenSession(OpenSession),
    /// A session answers an [`Output::Offer`] with credit: at least one message, and no more than
    /// was offered.
    Grant {
        /// The session.
        session: SessionId,
        /// What may be sent.
        credit: Credit,
    },
    /// A stream changes the deadline of its later deliveries.
    SessionDeadline {
        /// The session.
        session: SessionId,
        /// The new deadline.
        ack_deadline: Duration,
    },
    /// A session has ended. Its leases live on until they run out (see
    /// [`model::limits::ENDED_SESSION_RELEASE`] for the exception).
    CloseSession {
        /// The session.
        session: SessionId,
        /// Deliveries that never reached the client: released at once, without an attempt.
        returned: Vec<AckId>,
    },
    /// The way to a session's frontend is lost, and with it the session here. Its client may have it
    /// still, and it may be opened again: what has a logged lease is kept for it in full, and the
    /// rest for as long as a frontend takes that is well.
    LoseSession {
        /// The session.
        session: SessionId,
        /// Deliveries that never left: released at once, without an attempt.
        returned: Vec<AckId>,
        /// How long a frontend that is well takes to open the session again, at most.
        back_within: Duration,
    },
    /// A process of a node has ended, and every session that was opened by it: also those of
    /// which this leader knows nothing but what is in the log.
    SessionsEnded {
        /// The node.
        node: NodeId,
        /// The first number of sessions that have not ended with it.
        before: u64,
    },
    /// A proposal is applied. Comes in the order of the proposals.
    Applied {
        /// The proposal.
        proposal: ProposalId,
        /// One for each of its commands.
        outcomes: Vec<shard::Outcome>,
    },
    /// A registry group has answered an [`Output::AskRegistry`], or can't be reached.
    RegistryAnswered {
        /// The question.
        question: QuestionId,
        /// What the group's command answered. `None` when that is not known, also where it may
        /// have been carried out: the leader will ask again.
        reply: Option<registry::Reply>,
    },
    /// An operator wants a key to live in another shard. Answered by [`Output::KeyMoved`].
    MoveKey {
        /// Names the call.
        request: RequestId,
        /// The key.
        key: StrandKey,
        /// The other shard.
        to: ShardNumber,
    },
    /// The leader of another shard says something about a key that moves.
    Told(TransferMessage),
    /// An [`Output::CompareCatalogue`] is done.
    CatalogueCompared {
        /// The copy that waits for it.
        copy: StagedKey,
    },
    /// A dead letter is stored in its topic, or can't be.
    Forwarded {
        /// The dead letter.
        forward: ForwardId,
        /// What became of it.
        result: Forwarded,
    },
    /// The moment of an [`Output::WakeAt`] has come.
    Tick,
}

/// One publish request. It carries one key, or none.
#[derive(Clone, Debug)]
pub struct PublishRequest {
    /// Names the call.
    pub request: RequestId,
    /// The topic.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
    /// Whether the messages have an ordering key.
    pub keyed: bool,
    /// The messages.
    pub payload: RunPayload,
    /// A moment of the leader's clock after which nobody waits for the answer: the request is
    /// then refused, never applied later behind the caller's retry.
    pub deadline: Option<Timestamp>,
}

impl PublishRequest {
    pub(super) fn key(&self) -> StrandKey {
        StrandKey {
            topic: self.topic,
            strand: self.strand,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.payload.as_bytes().len()
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_late(&self, now: Timestamp) -> bool {
        let late = self.deadline.is_some_and(|deadline| deadline <= now);
        late && !model::sabotage!("late-publish-is-stored")
    }

    /// Answers it.
    pub(super) fn answer(&self, reply: PublishReply, out: &mut Vec<Output>) {
        let request = self.request;
        out.push(Output::Published { request, reply });
    }

    /// Answers that nothing was stored.
    pub(super) fn refuse(&self, why: Refused, out: &mut Vec<Output>) {
        self.answer(PublishReply::Refused(why), out);
    }
}

/// A client pulls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// The session.
    pub session: SessionId,
    /// The topic of the subscription.
    pub topic: Incarnation,
    /// The subscription.
    pub subscription: Incarnation,
    /// How it pulls.
    pub kind: SessionKind,
    /// The lease of its deliveries.
    pub ack_deadline: Duration,
    /// What the client calls itself.
    pub client: Option<ClientId>,
    /// What a client has open is opened at each shard, and again whenever a leader is lost, under a
    /// number of its own each time: this is the number of the very first opening.
    pub first: SessionId,
    /// The newest delivery of this shard that has arrived at an earlier opening. What was sent to
    /// one of them later, or was to be sent, is dropped there: the client never sees it.
    pub received: Option<Generation>,
}

/// How a session pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// StreamingPull: messages of a key follow each other before the first is acknowledged.
    Stream,
    /// Pull: one batch; nothing more of its keys goes out until all of the batch is settled.
    Pull,
}

/// What became of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// It is stored.
    Stored,
    /// Its topic is gone: the message stays and is delivered on.
    NoTopic,
    /// It may or may not be stored: try again.
    Unknown,
}

/// Something to do. The shell carries them out in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Stamp the commands with the time and propose them as one entry. Answered by
    /// [`Input::Applied`], in order; if leadership is lost instead, the whole leader is dropped.
    Propose {
        /// Names the proposal.
        proposal: ProposalId,
        /// The commands.
        commands: Vec<shard::Command>,
    },
    /// Answers [`Input::Publish`].
    Published {
        /// The call.
        request: RequestId,
        /// The answer.
        reply: PublishReply,
    },
    /// Answers [`Input::Acknowledge`].
    Acknowledged {
        /// The call.
        request: RequestId,
        /// One for each id, in order.
        replies: Vec<AckReply>,
    },
    /// Answers [`Input::ModifyDeadline`].
    Modified {
        /// The call.
        request: RequestId,
        /// One for each id, in order.
        replies: Vec<ModifyReply>,
    },
    /// Answers [`Input::Catalogue`].
    CatalogueLogged {
        /// The call.
        request: RequestId,
    },
    /// There is something to deliver to the session. At most one offer of a shard to a session is
    /// open at a time: the next comes after the [`Output::Deliver`] that used the grant.
    Offer {
        /// The session.
        session: SessionId,
        /// What waits, within reason (not more than one response).
        waiting: Credit,
    },
    /// Deliveries for a session, at most what it granted. It ends the grant: what is left of it
    /// goes back to the session.
    Deliver {
        /// The session.
        session: SessionId,
        /// In the order in which the client must see them. May be empty.
        deliveries: Vec<Delivered>,
        /// The grant that this uses up.
        granted: Credit,
    },
    /// Deliveries are settled, or their lease is over: the session has this credit back. Also for
    /// sessions that have ended, which ignore it.
    Release {
        /// The session.
        session: SessionId,
        /// What was outstanding.
        credit: Credit,
    },
    /// A session is open: the first thing that it hears.
    Opened {
        /// The session.
        session: SessionId,
        /// What the stream has of earlier openings, as far as its leases are in the log. It counts as
        /// if it had been delivered to this session.
        outstanding: Credit,
    },
    /// The session's subscription is now like this.
    Properties {
        /// The session.
        session: SessionId,
        /// Whether delivery is exactly-once.
        exactly_once: bool,
        /// Whether delivery is ordered.
        ordered: bool,
    },
    /// The session is over here.
    Ended {
        /// The session.
        session: SessionId,
        /// Why.
        why: Ended,
    },
    /// Propose this to a registry group. Answered by [`Input::RegistryAnswered`], in any order.
    AskRegistry {
        /// Names the question.
        question: QuestionId,
        /// The group.
        registry: RegistryNumber,
        /// The command.
        command: registry::Command,
    },
    /// Answers [`Input::MoveKey`].
    KeyMoved {
        /// The call.
        request: RequestId,
        /// The answer.
        reply: MoveReply,
    },
    /// Tell the leader of another shard something, which may be lost on its way.
    Tell {
        /// The shard.
        to: ShardNumber,
        /// What.
        message: TransferMessage,
    },
    /// Read the catalogue as it is now, and propose whatever of it the shard lacks. Answered by
    /// [`Input::CatalogueCompared`] once that is applied; may never be.
    CompareCatalogue {
        /// The copy that waits for it.
        copy: StagedKey,
    },
    /// Publish a dead letter. Answered by [`Input::Forwarded`].
    Forward {
        /// Names the dead letter.
        forward: ForwardId,
        /// Where to.
        topic: TopicName,
        /// The encoded message, with the attributes that say where it came from.
        message: Bytes,
        /// Its ordering key; empty for none.
        ordering_key: String,
    },
    /// Hand over an [`Input::Tick`] at this moment; replaces the one before.
    WakeAt(Timestamp),
}

/// One delivery on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// What the client acknowledges with.
    pub ack: AckId,
    /// When the message was published.
    pub published: Timestamp,
    /// The encoded message as the publisher sent it. It travels beside what is encoded.
    #[serde(skip)]
    pub message: Bytes,
    /// One more than its failed attempts; zero without a dead-letter policy.
    pub delivery_attempt: u32,
}

/// The answer to a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishReply {
    /// Stored on the disks of a majority; ids count up from `first`.
    Stored {
        /// The first message's id.
        first: MessageId,
    },
    /// Nothing was stored: another shard owns the key.
    Moved {
        /// The owner.
        shard: ShardNumber,
        /// The epoch of the pin that says so: what was learnt at a lower one is out of date.
        epoch: Epoch,
    },
    /// Nothing was stored.
    Refused(Refused),
}

/// What became of the wish to move a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MoveReply {
    /// The key lives elsewhere now.
    Moved,
    /// The key stays: its copy was not whole in time.
    Undone,
    /// The key stays: it is not here, or is being moved or released already. If it is pinned here
    /// and nothing of it is stored, its pin goes soon.
    NotHere,
    /// The key stays: it has too large a backlog. See [`model::limits::MOVE_BYTES_MAX`].
    TooLarge,
}

/// Why a publish stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refused {
    /// The topic was deleted.
    TopicClosed,
    /// Its deadline had passed before it was proposed.
    DeadlinePassed,
    /// Too much waits already: slow down.
    Overloaded,
    /// This shard has lost the key, and does not know to whom: look its pin up again.
    NotOwner,
    /// The disk is nearly full; acks and deletes still work, and make room.
    DiskFull,
}

/// What became of one ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AckReply {
    /// It is durable (or, at least once, comes from a delivery that was superseded: no effect).
    Acknowledged,
    /// Exactly-once: the id has no live lease. Permanent.
    Stale,
    /// Exactly-once and ordered: an earlier message of the key is not acknowledged. Try again.
    Unordered,
    /// At least once: the message is being sent again, and this ack does not count. Try again soon,
    /// or acknowledge the next delivery.
    Superseded,
    /// At least once: this ack does not count, and the message is sent again once a session has
    /// room for it, which may need other acks of the same client. Acknowledge the next delivery.
    Void,
    /// Nothing was done: the shard does not own the key, or not now. Ask whoever the key is pinned
    /// to.
    Elsewhere,
}

/// What became of one change of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModifyReply {
    /// Done; or, at least once, the lease was over and nothing happened.
    Modified,
    /// Exactly-once: the id has no live lease. Permanent.
    Stale,
    /// Nothing was done: the shard does not own the key, or not now. Ask whoever the key is pinned
    /// to.
    Elsewhere,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// The subscription was deleted or detached, or never was attached here.
    NotAttached,
    /// The leader steps down: open it again.
    Reopen,
    /// A stream with the same client id has taken over.
    TakenOver,
}
