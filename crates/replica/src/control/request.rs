//! A call on its way to the control group's leader, here or on another node.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::control::{Command, Reply};
use model::limits::CONTROL_WAITING_REQUESTS_MAX;
use model::{Boot, FormatLevel, GroupId, NodeId, Term};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::reports::Survey;
use crate::Unavailable;

/// What the leader is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Call {
    /// To carry a command out, and to answer when every node that may rely on its catalogue has it.
    Change(Command),
    /// For a catalogue lease.
    Renew(Renewal),
    /// To note that a life of a node has given its lease up.
    Release(NodeId, Boot),
    /// Up to which entry a node must have applied the catalogue to read all that was answered.
    ReadIndex,
    /// The same, as soon as every change up to it is known to every node that may have a lease.
    Barrier,
    /// What it hears from the nodes.
    Survey,
    /// To answer when every change up to this entry is.
    Settled(u64),
    /// How long the lease of the node that is asked lasts: the only call that is not for a leader.
    LeaseLeft,
}

impl Call {
    /// Whether it may be made twice: it changes nothing, or no more than once would.
    pub(super) fn may_repeat(&self) -> bool {
        match self {
            Call::Change(_) | Call::Release(..) => false,
            Call::Renew(_)
            | Call::ReadIndex
            | Call::Barrier
            | Call::Survey
            | Call::Settled(_)
            | Call::LeaseLeft => true,
        }
    }
}

/// A node asks for its lease, and tells what it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Renewal {
    pub(super) node: NodeId,
    /// Which life of the node it is: a lease ends with its process.
    pub(super) boot: Boot,
    /// The highest format level that it knows.
    pub(super) knows: FormatLevel,
    /// Up to which entry it is complete.
    pub(super) complete: u64,
    /// Who votes in the groups that it leads.
    pub(super) led: Vec<Led>,
}

/// A group, as its leader knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Led {
    pub(crate) group: GroupId,
    /// The term: what a later leader says is what counts.
    pub(crate) term: Term,
    pub(crate) voters: BTreeSet<NodeId>,
}

/// What the leader answers, to each call in its own way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The outcome of the command.
    Changed(Reply),
    /// What has become of the lease.
    Renewed(Renewed),
    /// The lease is given up.
    Released,
    /// The entry's index, and up to which one all changes are settled.
    Index { index: u64, settled: u64 },
    /// What was heard.
    Survey(Survey),
    /// How long the asked node's own lease lasts.
    LeaseLeft(Duration),
}

/// What the leader says to a node that asks for its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Renewed {
    pub(crate) granting: Granting,
    /// Up to which entry every change is known to every node that may have a lease.
    pub(crate) settled: u64,
}

/// Whether a lease is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Granting {
    /// For so long, from the moment before the call.
    Granted(Duration),
    /// Not now: the node lacks something, or must be awake first.
    NotNow,
    /// Never to this life: a later one is known.
    Superseded(Boot),
}

/// Where an answer goes.
pub(super) type AnswerTo = oneshot::Sender<Result<Answer, Unavailable>>;

/// A call and where its answer goes.
pub(super) struct Request {
    pub(super) call: Call,
    pub(super) answer: AnswerTo,
}

/// The way to the leader's task on this node.
pub(super) fn requests() -> (mpsc::Sender<Request>, mpsc::Receiver<Request>) {
    mpsc::channel(CONTROL_WAITING_REQUESTS_MAX)
}

/// The format of calls and answers between nodes.
const FORMAT: u8 = 1;

/// A call or an answer on its way to another node.
pub(super) fn encode(said: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(said, vec![FORMAT]).expect("plain data always encodes")
}

/// Reads what [`encode`] wrote. `None` for bytes that this program does not understand.
pub(super) fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    match bytes {
        [FORMAT, said @ ..] => match postcard::take_from_bytes(said) {
            Ok((said, [])) => Some(said),
            _ => None,
        },
        _ => None,
    }
}
