//! The copies: Raft groups on this node, and the dispatch loops of their leaders.
