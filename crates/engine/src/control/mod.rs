//! Topics and subscriptions, nodes and the places of all groups: the catalogue, as the control
//! group keeps it.
//!
//! A call of a client becomes a [`request`], which is checked without any state, and then a
//! [`Command`]. [`apply`] decides it alike on every replica. What shards must know of it comes
//! back as effects: the shell has every shard log them before the client is answered, so that a
//! publish after a create is seen, and one after a delete is refused. [`read`] answers from the
//! tables.

mod add_shards;
mod apply;
mod asleep;
mod awake;
mod command;
mod create_subscription;
mod create_topic;
mod delete_subscription;
mod delete_topic;
mod detach_subscription;
mod found;
mod founded;
mod join;
mod place;
pub mod plan;
mod raise_format;
pub mod read;
mod rejected;
pub mod request;
mod set_node_state;
mod survival;
pub mod table;
mod update_node;
mod update_subscription;
mod update_topic;

pub use add_shards::AddShards;
pub use apply::apply;
pub use asleep::Asleep;
pub use awake::Awake;
pub use command::{At, Command, Outcome, Reply};
pub use create_subscription::{CreateSubscription, DeadLetter};
pub use create_topic::CreateTopic;
pub use delete_subscription::DeleteSubscription;
pub use delete_topic::DeleteTopic;
pub use detach_subscription::DetachSubscription;
pub use found::Found;
pub use founded::Founded;
pub use join::NewNode;
pub use place::Place;
pub use plan::{Health, plan};
pub use raise_format::RaiseFormat;
pub use rejected::{NodeRejected, Quota, Rejected};
pub use set_node_state::SetNodeState;
pub use survival::{SURVIVAL_LABEL, SURVIVAL_REGIONS_MIN, survival_goal};
pub use table::cluster::Cluster;
pub use table::node::{Node, NodeState};
pub use table::placement::Placement;
pub use table::region::Region;
pub use table::subscription::Subscription;
pub use table::topic::{Labels, StoragePolicy, Topic};
pub use update_node::UpdateNode;
pub use update_subscription::{SubscriptionChange, UpdateSubscription};
pub use update_topic::{StoragePolicyChange, UpdateTopic};

#[cfg(test)]
mod tests;
