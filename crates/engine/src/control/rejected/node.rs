//! Why a command about nodes and their groups was refused.

use model::limits::{NODES_MAX, SHARDS_PER_REGION_MAX};
use model::{FormatLevel, GroupId, NodeId, NodeName, RegionName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a command about nodes and their groups was refused. All of these are *refused*: nothing was
/// done.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum NodeRejected {
    /// There is no cluster yet.
    #[error("no cluster was founded here")]
    NotFounded,
    /// There never was such a node.
    #[error("node {0} not found")]
    NotFound(NodeId),
    /// The node is out, and its id is not given again.
    #[error("node {0} was removed from the cluster; with an empty folder it can join as a new one")]
    Removed(NodeId),
    /// A later life of the node is known.
    #[error("node {0} has started again since")]
    Restarted(NodeId),
    /// The format level rises one by one.
    #[error("the format level is {present}, and does not become {to}")]
    FormatLevel {
        /// The cluster's.
        present: FormatLevel,
        /// What was asked for.
        to: FormatLevel,
    },
    /// Two nodes can't have one name.
    #[error(
        "node {node} is called \"{name}\" already; choose another name, or, if its disk is gone, \
         make room with \"orderly nodes replace {name}\""
    )]
    NameTaken {
        /// The name.
        name: NodeName,
        /// Who has it.
        node: NodeId,
    },
    /// The cluster is as large as it can be.
    #[error("the cluster has {NODES_MAX} nodes, and takes no more")]
    TooMany,
    /// There is no such group.
    #[error("{0} not found")]
    NoSuchGroup(GroupId),
    /// No node of that region ever joined.
    #[error("region \"{0}\" not found")]
    NoSuchRegion(RegionName),
    /// The region has as many shards as it can have.
    #[error("region \"{0}\" would have more than {SHARDS_PER_REGION_MAX} shards of a class")]
    TooManyShards(RegionName),
}
