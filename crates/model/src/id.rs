//! Identifiers. Each is its own type, so that two of them are never swapped in a call.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                $name(number)
            }
        }
    };
}

number! {
    /// A process of the cluster. Given out by the log, never reused: an emptied disk is a new node.
    NodeId(u64)
}
number! {
    /// One life of a node's process. A later one of the same node has a greater number.
    Boot(u64)
}
number! {
    /// What nodes write in logs, rows and calls to each other. The whole cluster has one level, and
    /// rises by one when each of its nodes knows the next.
    FormatLevel(u32)
}
number! {
    /// One life of a topic or subscription. A re-created name is a new incarnation; never reused.
    Incarnation(u64)
}
number! {
    /// The number of a shard, never reused: it is part of every message id.
    ShardNumber(u16)
}
number! {
    /// The number of a registry group, from one; the pins are spread over these groups.
    RegistryNumber(u16)
}
number! {
    /// How often a pin was written: a higher epoch of a key fences all lower ones.
    Epoch(u64)
}
number! {
    /// A Raft term.
    Term(u64)
}
impl FormatLevel {
    /// The level of a cluster that was never raised.
    pub const FIRST: FormatLevel = FormatLevel(1);
    /// The highest that this program reads and writes.
    pub const KNOWN: FormatLevel = FormatLevel(1);

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        FormatLevel(self.0 + 1)
    }
}

/// One open pull of one client: the node that holds the client's connection, and a number that it
/// never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId {
    /// The node that the client is connected to.
    pub node: NodeId,
    /// That node's count of sessions, over all of its restarts.
    pub number: u64,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.node, self.number)
    }
}

/// One Raft group: the control group, a registry group, or a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GroupId {
    /// Topics, subscriptions, nodes, regions, the shard map.
    Control,
    /// Pins, partitioned by key hash.
    Registry(RegistryNumber),
    /// Messages.
    Shard(ShardNumber),
}

impl GroupId {
    /// The number that prefixes this group's rows on disk: kind in bits 16.., number below.
    #[must_use]
    pub fn to_number(self) -> u32 {
        match self {
            GroupId::Control => 1 << 16,
            GroupId::Registry(RegistryNumber(number)) => 2 << 16 | u32::from(number),
            GroupId::Shard(ShardNumber(number)) => 3 << 16 | u32::from(number),
        }
    }

    /// The group of a number made by [`GroupId::to_number`], or `None` for any other number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        let low = (number & 0xffff) as u16;
        match number >> 16 {
            1 if low == 0 => Some(GroupId::Control),
            2 => Some(GroupId::Registry(RegistryNumber(low))),
            3 => Some(GroupId::Shard(ShardNumber(low))),
            _ => None,
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupId::Control => f.write_str("control"),
            GroupId::Registry(number) => write!(f, "registry-{number}"),
            GroupId::Shard(number) => write!(f, "shard-{number}"),
        }
    }
}

/// The id of a message: a counter of its shard times 2^16, plus the shard's number.
///
/// Clients see it as a decimal string. It grows strictly within a key, for ever: when a key moves,
/// the new shard goes on above the old one's counter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MessageId(pub u64);

impl MessageId {
    /// Below every id that is given to a message.
    pub const ZERO: MessageId = MessageId(0);
    /// Above every id.
    pub const MAX: MessageId = MessageId(u64::MAX);

    /// The id of the `counter`-th message of a shard. Counters start at 1.
    ///
    /// # Panics
    /// When the counter needs more than 48 bits: at a million messages a second, in nine years.
    #[must_use]
    pub fn new(counter: u64, shard: ShardNumber) -> Self {
        assert!(
            counter < 1 << 48,
            "message counter {counter} of shard {shard} is used up"
        );
        MessageId(counter << 16 | u64::from(shard.0))
    }

    /// The shard that gave the id out.
    #[must_use]
    pub fn shard(self) -> ShardNumber {
        ShardNumber((self.0 & 0xffff) as u16)
    }

    /// The shard's counter when it gave the id out.
    #[must_use]
    pub fn counter(self) -> u64 {
        self.0 >> 16
    }

    /// The id `steps` messages later in the same run.
    #[must_use]
    pub fn plus(self, steps: u32) -> Self {
        MessageId::new(self.counter() + u64::from(steps), self.shard())
    }
}

impl From<u64> for MessageId {
    fn from(number: u64) -> Self {
        MessageId(number)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names an ordering key of one incarnation of a topic: a keyed 128-bit hash, so that a client
/// can't make two keys meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyHash(pub [u8; 16]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Which delivery of a message this is. Later deliveries compare greater, across restarts,
/// leader changes (term) and moves of the key (epoch).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Generation {
    /// The epoch of the key's pin; zero for messages without a key.
    pub epoch: Epoch,
    /// The term of the leader that sent the delivery.
    pub term: Term,
    /// That leader's count of deliveries, over all of the subscription's lanes; starts at 1.
    pub counter: u64,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.term, self.counter)
    }
}

/// What a client calls itself in StreamingPull: a stream that reconnects with the same id takes
/// over the lanes that its predecessor held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub std::sync::Arc<str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_holds_its_counter_and_shard() {
        let id = MessageId::new(7, ShardNumber(3));
        assert_eq!((id.counter(), id.shard()), (7, ShardNumber(3)));
        assert_eq!(id.plus(2), MessageId::new(9, ShardNumber(3)));
        assert!(id < MessageId::new(8, ShardNumber(0)));
    }

    #[test]
    fn group_numbers_round_trip() {
        for group in [
            GroupId::Control,
            GroupId::Registry(RegistryNumber(9)),
            GroupId::Shard(ShardNumber(65_535)),
        ] {
            assert_eq!(GroupId::from_number(group.to_number()), Some(group));
        }
        assert_eq!(GroupId::from_number(0), None);
        assert_eq!(GroupId::from_number(1 << 16 | 1), None);
    }

    #[test]
    fn generations_order_by_epoch_then_term_then_counter() {
        let at = |epoch, term, counter| Generation {
            epoch: Epoch(epoch),
            term: Term(term),
            counter,
        };
        assert!(at(1, 9, 9) < at(2, 1, 1));
        assert!(at(2, 1, 9) < at(2, 2, 1));
    }
}
