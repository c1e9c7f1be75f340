//! Why an operator is refused, as a gRPC status.

use engine::Fault;
use engine::control::{NodeState, Rejected};
use engine::route::Misplaced;
use model::GroupId;
use replica::Unavailable;
use thiserror::Error;
use tonic::Status;

/// Why an operator is refused. All but `Unavailable` and `Fault` are *refused*: nothing was done.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    /// The request does not make sense.
    #[error("{0}")]
    Invalid(String),
    /// There is no such topic.
    #[error("topic \"{0}\" not found")]
    NoSuchTopic(String),
    /// There is no such shard.
    #[error("shard \"{asked}\" not found: the shards are {known}")]
    NoSuchShard {
        /// The name that was given.
        asked: String,
        /// The names of those that there are.
        known: String,
    },
    /// There is no such region.
    #[error("region \"{asked}\" not found: the regions are {known}")]
    NoSuchRegion {
        /// The name that was given.
        asked: String,
        /// The names of those that there are.
        known: String,
    },
    /// The key can't be pinned: it is. The text says where, and what to do.
    #[error("{0}")]
    Pinned(String),
    /// Keys of the topic may not live there.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// No node is called so.
    #[error("node \"{asked}\" not found: the nodes are {known}")]
    NoSuchNode {
        /// The name or number that was given.
        asked: String,
        /// The names of those that there are.
        known: String,
    },
    /// Two nodes are called so: one comes while the other leaves.
    #[error("{count} nodes are called \"{asked}\": name one by its number, {numbers}")]
    Ambiguous {
        /// The name that was given.
        asked: String,
        /// How many.
        count: usize,
        /// Their numbers.
        numbers: String,
    },
    /// From its present state the node does not go where it was asked to.
    #[error("node \"{node}\" is {state}: {next}")]
    State {
        /// The name of the node.
        node: String,
        /// How it takes part now.
        state: NodeState,
        /// What can be done.
        next: &'static str,
    },
    /// What it would do is worse than the operator may know; the text says what, and what to do.
    #[error("{0}")]
    Harm(String),
    /// The cluster says no.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// *Retry*, or *unknown*.
    #[error(
        "the group that knows does not answer{}: most of its voters must run and reach each other",
        if .0.unknown { ", and what was asked may yet be done" } else { "" }
    )]
    Unavailable(#[from] Unavailable),
    /// The catalogue can't be read. *Unknown*.
    #[error("the catalogue can't be read: {0}")]
    Fault(#[from] Fault),
    /// A replica on this node can't be read. *Refused*: nothing was to be done.
    #[error("the replica of {group} can't be read: {fault}")]
    Unreadable {
        /// Whose.
        group: GroupId,
        /// Why.
        fault: Fault,
    },
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::Invalid(_) => Status::invalid_argument(text),
            Refusal::NoSuchTopic(_)
            | Refusal::NoSuchShard { .. }
            | Refusal::NoSuchRegion { .. }
            | Refusal::NoSuchNode { .. } => Status::not_found(text),
            Refusal::Pinned(_) => Status::already_exists(text),
            Refusal::Ambiguous { .. }
            | Refusal::State { .. }
            | Refusal::Harm(_)
            | Refusal::Misplaced(_)
            | Refusal::Rejected(_) => Status::failed_precondition(text),
            Refusal::Unavailable(_) => Status::unavailable(text),
            Refusal::Fault(_) | Refusal::Unreadable { .. } => Status::internal(text),
        }
    }
}
