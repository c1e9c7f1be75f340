//! The way: which shard, which node, at most two hops.
