//! What an open pull hears from a shard.

use engine::dispatch::{Credit, Delivered, Ended};
use model::ShardNumber;

/// Something happened to a session in one of its shards.
#[derive(Clone, Debug)]
pub struct SessionEvent {
    /// Where.
    pub shard: ShardNumber,
    /// What.
    pub what: SessionChange,
}

/// What happened; the same as the outputs of [`engine::dispatch::Output`] that name a session.
#[derive(Clone, Debug)]
pub enum SessionChange {
    /// So much waits: grant some of it.
    Offer {
        /// What waits, within reason.
        waiting: Credit,
    },
    /// Deliveries, in the order in which the client must see them.
    Deliver {
        /// The deliveries; perhaps none.
        deliveries: Vec<Delivered>,
        /// The grant that is used up by this.
        granted: Credit,
    },
    /// So much is not outstanding any more.
    Release {
        /// Messages and bytes.
        credit: Credit,
    },
    /// The subscription is now like this.
    Properties {
        /// Whether delivery is exactly-once.
        exactly_once: bool,
        /// Whether delivery is ordered.
        ordered: bool,
    },
    /// The session is over in this shard. The last event.
    Ended {
        /// Why.
        why: Ended,
    },
}
