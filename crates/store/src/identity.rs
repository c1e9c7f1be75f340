//! Whose data a folder holds.

/// Whose data a folder holds. Written once, at the first start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, as `init` named it: every call between nodes carries it.
    pub cluster: String,
    /// The node. Never reused: an emptied folder comes back as a new node.
    pub node: model::NodeId,
}
