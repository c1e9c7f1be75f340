//! Why a command was refused.

mod node;

use std::time::Duration;

use model::limits::RESOURCES_PER_PROJECT_MAX;
use model::{ProjectId, RegionName, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::survival::{SURVIVAL_LABEL, SURVIVAL_REGIONS_MIN};
use crate::Fault;

pub use node::NodeRejected;

/// Why a command was refused. All of these are *refused*: nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Rejected {
    /// The cluster was founded before.
    #[error("the cluster is founded already")]
    AlreadyFounded,
    /// The name is taken.
    #[error("topic \"{0}\" already exists")]
    TopicExists(TopicName),
    /// The name is taken, whatever topic and settings its subscription has.
    #[error("subscription \"{0}\" already exists")]
    SubscriptionExists(SubscriptionName),
    /// There is no such topic.
    #[error("topic \"{0}\" not found")]
    TopicNotFound(TopicName),
    /// There is no such topic for dead letters.
    #[error("dead-letter topic \"{0}\" not found")]
    DeadLetterTopicNotFound(TopicName),
    /// There is no such subscription.
    #[error("subscription \"{0}\" not found")]
    SubscriptionNotFound(SubscriptionName),
    /// There are as many resources as there may be.
    #[error("{0} have reached their limit of {RESOURCES_PER_PROJECT_MAX}")]
    QuotaExceeded(Quota),
    /// Dead letters would come back.
    #[error("topic \"{0}\" can't be the dead-letter topic of a subscription of its own")]
    DeadLetterToOwnTopic(TopicName),
    /// A part of the dead-letter policy was set on a subscription without one.
    #[error("subscription \"{0}\" has no dead-letter topic")]
    NoDeadLetterTopic(SubscriptionName),
    /// A changed back-off does not go with the other one.
    #[error("the minimum back-off of {minimum:?} is above the maximum of {maximum:?}")]
    BackoffsCrossed {
        /// The minimum that would be.
        minimum: Duration,
        /// The maximum that would be.
        maximum: Duration,
    },
    /// A part of the storage policy was set on a topic without regions.
    #[error("topic \"{0}\" has no message_storage_policy.allowed_persistence_regions")]
    NoStoragePolicy(TopicName),
    /// A storage policy names a region that the cluster does not have.
    #[error("region \"{region}\" is not one of this cluster, which has: {known}")]
    UnknownRegion {
        /// The region.
        region: RegionName,
        /// The regions of the cluster.
        known: String,
    },
    /// A topic asks to survive the loss of a region in a cluster that can't.
    #[error(
        "the label {SURVIVAL_LABEL}=region needs nodes in {SURVIVAL_REGIONS_MIN} regions, and this \
         cluster has: {regions}; add nodes in other regions first, or use {SURVIVAL_LABEL}=zone"
    )]
    TooFewRegions {
        /// The regions of the cluster.
        regions: String,
    },
    /// A topic asks to survive the loss of a region, and keeps its messages out of one.
    #[error(
        "the label {SURVIVAL_LABEL}=region needs every region of the cluster, and the \
         message_storage_policy does not allow \"{0}\"; allow it, or use {SURVIVAL_LABEL}=zone"
    )]
    RegionExcluded(RegionName),
    /// A command about nodes and their groups.
    #[error(transparent)]
    Node(#[from] NodeRejected),
}

/// What is limited in number.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Quota {
    /// Topics of a project.
    #[error("the topics of project \"{}\"", .0.as_str())]
    TopicsOfProject(ProjectId),
    /// Subscriptions of a project.
    #[error("the subscriptions of project \"{}\"", .0.as_str())]
    SubscriptionsOfProject(ProjectId),
    /// Subscriptions of a topic.
    #[error("the subscriptions of topic \"{0}\"")]
    SubscriptionsOfTopic(TopicName),
}

/// Why applying a command ended early. A rejection is an answer like any other, a fault is not.
pub(super) enum Stop {
    Rejected(Rejected),
    Fault(Fault),
}

impl From<Rejected> for Stop {
    fn from(rejected: Rejected) -> Self {
        Stop::Rejected(rejected)
    }
}

impl From<NodeRejected> for Stop {
    fn from(rejected: NodeRejected) -> Self {
        Stop::Rejected(rejected.into())
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}
