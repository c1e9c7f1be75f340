//! Everything that is on its way: between shards and the registry, and into a shard's own log.
//!
//! Messages arrive in any order, after any delay. Within bounds some arrive twice or never.

use super::registry::{Answer, Move, Release};
use super::strand::Strand;
use super::words::{Epoch, Key, MessageId, ShardNumber};

/// What is on its way. A message that is sent again while it is on its way is not there twice: that
/// it may arrive twice says this already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Network(Vec<Envelope>);

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Envelope {
    pub(crate) to: Address,
    pub(crate) key: Key,
    pub(crate) message: Message,
}

/// Who receives a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Address {
    Registry,
    Shard(ShardNumber),
}

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    /// To the registry, which answers each of these four with the pin as it then is.
    Claim(ShardNumber),
    Look(ShardNumber),
    Move(Move),
    Release(Release),
    /// From the registry.
    Answer(Answer),
    /// To a shard: freeze the strand that is open at this epoch.
    Seal {
        epoch: Epoch,
        purpose: Purpose,
    },
    /// To the target of a move: a copy to stage.
    Copy(Copy),
    /// To the source of a move: the copy of the strand sealed at this epoch is staged, whole.
    Whole(Epoch),
    /// To the target of a move that the registry has answered.
    Activate(Activate),
    /// To a shard: the strand sealed at exactly this epoch is not needed any more.
    Drop(Epoch),
    /// To a shard that is thought to have no strand for its pin.
    SealAbsent(Epoch),
}

/// Why a strand is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Purpose {
    Move,
    Release,
}

/// A strand as its source had it when it was sealed at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Copy {
    pub(crate) epoch: Epoch,
    pub(crate) strand: Strand,
    /// Whether the source knew the late subscription.
    pub(crate) knows_late: bool,
}

/// Which copy to open, and at which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Activate {
    pub(crate) epoch: Epoch,
    pub(crate) copy: Epoch,
    pub(crate) id_floor: MessageId,
}

impl Network {
    pub(crate) fn send(&mut self, envelope: Envelope) {
        if let Err(place) = self.0.binary_search(&envelope) {
            self.0.insert(place, envelope);
        }
    }

    pub(crate) fn take(&mut self, place: usize) -> Envelope {
        self.0.remove(place)
    }

    pub(crate) fn get(&self, place: usize) -> Envelope {
        self.0[place]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing about a key is on its way.
    pub(crate) fn is_quiet(&self, key: Key) -> bool {
        self.0.iter().all(|envelope| envelope.key != key)
    }

    /// A shard has asked to own a key, and the answer is yet to come.
    pub(crate) fn is_claiming(&self, key: Key, shard: ShardNumber) -> bool {
        self.about(key).any(|envelope| match envelope.message {
            Message::Claim(by) => by == shard,
            Message::Answer(_) => envelope.to == Address::Shard(shard),
            _ => false,
        })
    }

    /// A pin without a strand is being removed.
    pub(crate) fn is_sweeping(&self, key: Key) -> bool {
        self.about(key).any(|envelope| match envelope.message {
            Message::SealAbsent(_) => true,
            Message::Release(release) => release.last.is_none(),
            _ => false,
        })
    }

    fn about(&self, key: Key) -> impl Iterator<Item = &Envelope> {
        self.0.iter().filter(move |envelope| envelope.key == key)
    }
}
