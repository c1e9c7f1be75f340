//! What two nodes say to each other on a link, as bytes.
//!
//! The head of a part is a format byte and a postcard encoding; messages of users ride beside it,
//! so that they are not copied.

use std::time::Duration;

use bytes::Bytes;
use engine::dispatch::{
    AckReply, Delivered, ModifyReply, MoveReply, OpenSession, Refused, TransferMessage,
};
use engine::table::strand::StrandKey;
use model::run::RunPayload;
use model::{AckId, Epoch, Incarnation, KeyHash, MessageId, NodeId, SessionId, ShardNumber};
use proto::cluster::LinkPart;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::shard::PublishError;
use crate::shard::request::{Acknowledged, KeyMoved, Modified, Published, Say, Told};
use crate::shard::session::{SessionChange, SessionEvent};

/// The format of heads that this version writes, and the only one that it reads.
const FORMAT: u8 = 2;

/// Names a call of one link until its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::shard) struct CallId(pub(in crate::shard) u64);

/// A part does not say anything that this version understands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Malformed {
    #[error("part of a link has the unknown format {0:?}")]
    Format(Option<u8>),
    #[error("head of a part can't be decoded: {0}")]
    Head(postcard::Error),
    #[error("a part of this kind does not carry {0} payloads")]
    Payloads(usize),
    #[error("payload of a publish is malformed")]
    Run,
}

/// Stands in the metadata of a refusal: the number of the newest link of the caller's node.
pub(super) const NEWEST: &str = "orderly-newest-link";

/// What the caller says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Call {
    /// The first part of all: who calls. Of two links of a node, the one with the higher number
    /// is the newer one.
    Hello { node: NodeId, number: u64 },
    /// A sign of life.
    Beat,
    /// Something that is answered.
    Ask {
        call: CallId,
        shard: ShardNumber,
        ask: Ask,
    },
    /// Nobody waits for this call any more.
    Cancel { call: CallId },
    OpenSession {
        shard: ShardNumber,
        open: OpenSession,
    },
    Session {
        shard: ShardNumber,
        session: SessionId,
        say: Say,
    },
}

/// What a caller waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Messages of one strand; the payload rides beside.
    Publish {
        topic: Incarnation,
        strand: KeyHash,
        keyed: bool,
        /// On the callee's clock, see [`Reply::Beat`].
        deadline: Duration,
    },
    Acknowledge {
        subscription: Incarnation,
        ids: Vec<AckId>,
    },
    ModifyDeadline {
        subscription: Incarnation,
        ids: Vec<(AckId, Duration)>,
    },
    MoveKey {
        key: StrandKey,
        to: ShardNumber,
    },
    /// Something that one shard's leader tells another's.
    Tell {
        message: TransferMessage,
    },
}

/// What the callee says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::shard) enum Reply {
    /// A sign of life: so much time has passed on the callee since the link began. Deadlines are
    /// given on this clock: a deadline that was reckoned from the last beat can only be too
    /// early, by as much as the beat was under way, however long a call itself is.
    Beat { elapsed: Duration },
    /// The answer to a call.
    Answer {
        call: CallId,
        shard: ShardNumber,
        what: Returned,
    },
    /// Who leads a shard that the callee does not lead, if it knows.
    Leader {
        shard: ShardNumber,
        leader: Option<NodeId>,
    },
    /// Something happened to a session.
    Event(SessionEvent),
}

/// What a call is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::shard) enum Returned {
    Published(MessageId),
    Refused(Refused),
    /// Nothing was done: another shard owns the key.
    Moved {
        shard: ShardNumber,
        epoch: Epoch,
    },
    Acknowledged(Vec<AckReply>),
    Modified(Vec<ModifyReply>),
    /// Nothing was done: the callee does not lead the shard.
    NotLeading,
    /// It may have been done.
    Unknown,
    KeyMoved(MoveReply),
    /// The leader has heard it.
    Told,
}

impl Call {
    /// As bytes; a publish with its payload.
    pub(super) fn encode(&self, payload: Option<RunPayload>) -> LinkPart {
        let payloads = payload.iter().map(|run| run.as_bytes().clone()).collect();
        part(self, payloads)
    }

    /// The reverse of [`Call::encode`].
    pub(super) fn decode(part: LinkPart) -> Result<(Call, RunPayload), Malformed> {
        let call: Call = head(&part)?;
        let is_publish = |ask: &Ask| matches!(ask, Ask::Publish { .. });
        let wanted = match &call {
            Call::Ask { ask, .. } => usize::from(is_publish(ask)),
            _ => 0,
        };
        if part.payloads.len() != wanted {
            return Err(Malformed::Payloads(part.payloads.len()));
        }
        let run = match part.payloads.into_iter().next() {
            Some(bytes) => RunPayload::from_stored(bytes).map_err(|_| Malformed::Run)?,
            None => RunPayload::default(),
        };
        Ok((call, run))
    }
}

impl Reply {
    /// As bytes.
    pub(super) fn encode(mut self) -> LinkPart {
        let deliveries = self.deliveries();
        let messages = deliveries.iter().map(|delivered| delivered.message.clone());
        let messages = messages.collect();
        part(&self, messages)
    }

    /// The reverse of [`Reply::encode`].
    pub(super) fn decode(part: LinkPart) -> Result<Reply, Malformed> {
        let mut reply: Reply = head(&part)?;
        let deliveries = reply.deliveries();
        if deliveries.len() != part.payloads.len() {
            return Err(Malformed::Payloads(part.payloads.len()));
        }
        for (delivered, message) in deliveries.iter_mut().zip(part.payloads) {
            delivered.message = message;
        }
        Ok(reply)
    }

    /// The deliveries, whose messages ride beside.
    fn deliveries(&mut self) -> &mut [Delivered] {
        match self {
            Reply::Event(SessionEvent {
                what: SessionChange::Deliver { deliveries, .. },
                ..
            }) => deliveries,
            _ => &mut [],
        }
    }
}

fn part(head: &impl Serialize, payloads: Vec<Bytes>) -> LinkPart {
    let head = postcard::to_extend(head, vec![FORMAT]);
    LinkPart {
        head: head.expect("these types have an encoding").into(),
        payloads,
    }
}

fn head<T: DeserializeOwned>(part: &LinkPart) -> Result<T, Malformed> {
    match part.head.split_first() {
        Some((&FORMAT, head)) => postcard::from_bytes(head).map_err(Malformed::Head),
        other => Err(Malformed::Format(other.map(|(format, _)| *format))),
    }
}

impl From<Published> for Returned {
    fn from(published: Published) -> Self {
        match published {
            Ok(first) => Returned::Published(first),
            Err(PublishError::Refused(why)) => Returned::Refused(why),
            Err(PublishError::Moved { shard, epoch }) => Returned::Moved { shard, epoch },
            Err(PublishError::Unavailable(why)) if why.unknown => Returned::Unknown,
            Err(PublishError::Unavailable(_)) => Returned::NotLeading,
        }
    }
}

impl From<Acknowledged> for Returned {
    fn from(acknowledged: Acknowledged) -> Self {
        match acknowledged {
            Ok(replies) => Returned::Acknowledged(replies),
            Err(why) if why.unknown => Returned::Unknown,
            Err(_) => Returned::NotLeading,
        }
    }
}

impl From<KeyMoved> for Returned {
    fn from(moved: KeyMoved) -> Self {
        match moved {
            Ok(reply) => Returned::KeyMoved(reply),
            Err(why) if why.unknown => Returned::Unknown,
            Err(_) => Returned::NotLeading,
        }
    }
}

impl From<Told> for Returned {
    fn from(told: Told) -> Self {
        match told {
            Ok(()) => Returned::Told,
            Err(why) if why.unknown => Returned::Unknown,
            Err(_) => Returned::NotLeading,
        }
    }
}

impl From<Modified> for Returned {
    fn from(modified: Modified) -> Self {
        match modified {
            Ok(replies) => Returned::Modified(replies),
            Err(why) if why.unknown => Returned::Unknown,
            Err(_) => Returned::NotLeading,
        }
    }
}

#[cfg(test)]
mod tests;
