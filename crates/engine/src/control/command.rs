//! The commands of the control group and their answers.

use model::limits::PROPOSAL_REQUESTS_MAX;
use model::{Incarnation, NodeId};
use serde::{Deserialize, Serialize};

use super::{
    AddShards, Asleep, Awake, CreateSubscription, CreateTopic, DeleteSubscription, DeleteTopic,
    DetachSubscription, Found, Founded, NewNode, Place, RaiseFormat, Rejected, SetNodeState,
    Subscription, Topic, UpdateNode, UpdateSubscription, UpdateTopic,
};
use crate::shard;

/// A command in the control group's log. One struct each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Founds the cluster.
    Found(Found),
    /// Lets a node in.
    Join(NewNode),
    /// Says where a node is now.
    UpdateNode(UpdateNode),
    /// Sets how a node takes part.
    SetNodeState(SetNodeState),
    /// Changes where groups are wanted.
    Place(Place),
    /// Says that a group exists.
    Founded(Founded),
    /// Wants more shards in a region.
    AddShards(AddShards),
    /// Creates a topic.
    CreateTopic(CreateTopic),
    /// Changes a topic.
    UpdateTopic(UpdateTopic),
    /// Deletes a topic.
    DeleteTopic(DeleteTopic),
    /// Creates a subscription.
    CreateSubscription(CreateSubscription),
    /// Changes a subscription.
    UpdateSubscription(UpdateSubscription),
    /// Deletes a subscription.
    DeleteSubscription(DeleteSubscription),
    /// Detaches a subscription from its topic.
    DetachSubscription(DetachSubscription),
    /// Lets a node have a catalogue lease.
    Awake(Awake),
    /// Says that a node has none any more.
    Asleep(Asleep),
    /// Raises the format level.
    RaiseFormat(RaiseFormat),
}

impl Command {
    /// What it changes of topics and subscriptions.
    pub(super) fn change(&self) -> Change {
        match self {
            Command::Found(_)
            | Command::Join(_)
            | Command::UpdateNode(_)
            | Command::SetNodeState(_)
            | Command::Place(_)
            | Command::Founded(_)
            | Command::AddShards(_)
            | Command::Awake(_)
            | Command::Asleep(_)
            | Command::RaiseFormat(_) => Change::None,
            Command::CreateTopic(_)
            | Command::UpdateTopic(_)
            | Command::CreateSubscription(_)
            | Command::UpdateSubscription(_)
            | Command::DetachSubscription(_) => Change::Written,
            Command::DeleteTopic(_) | Command::DeleteSubscription(_) => Change::Deleted,
        }
    }
}

/// What a command changes of topics and subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: it is about the cluster.
    None,
    /// One is new, or different.
    Written,
    /// A name is free again.
    Deleted,
}

/// Where in the log a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The index of its entry.
    pub index: u64,
    /// Its position among the entry's commands, from zero.
    pub position: u32,
}

/// Bits of [`At::number`] that hold the position.
const POSITION_BITS: u32 = 12;
const _: () = assert!(PROPOSAL_REQUESTS_MAX <= 1 << POSITION_BITS);

impl At {
    /// The command's own number: the index times 2^12, plus the position. No other command of
    /// the log has it, and later commands have greater ones. It is never zero, since indexes of
    /// commands start at one.
    ///
    /// # Panics
    /// When the entry has more commands than [`PROPOSAL_REQUESTS_MAX`].
    #[must_use]
    pub fn number(self) -> u64 {
        assert!(
            self.position < 1 << POSITION_BITS,
            "entry {} is too long",
            self.index
        );
        self.index << POSITION_BITS | u64::from(self.position)
    }

    /// The index of the entry of the command with this [`At::number`].
    pub(super) fn index_of(number: u64) -> u64 {
        number >> POSITION_BITS
    }

    /// The incarnation of a resource that the command creates.
    pub(super) fn incarnation(self) -> Incarnation {
        Incarnation(self.number())
    }
}

/// What a command answers, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// To the caller, once the effects are logged.
    pub reply: Reply,
    /// What every shard must log before the caller is answered, in this order.
    pub effects: Vec<shard::Command>,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The command is done, and leaves nothing to show.
    Done,
    /// The node is in, under this id.
    Joined(NodeId),
    /// The topic as it is now.
    Topic(Box<Topic>),
    /// The subscription as it is now.
    Subscription(Box<Subscription>),
    /// Nothing was done.
    Rejected(Rejected),
}

impl Outcome {
    /// An answer that no shard needs to know of.
    pub(super) fn only(reply: Reply) -> Self {
        let effects = Vec::new();
        Outcome { reply, effects }
    }
}
