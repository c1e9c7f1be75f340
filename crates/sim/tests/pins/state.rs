//! One state of the whole: what is committed, what leaders remember, what is on its way, and what
//! an onlooker has seen.

use super::bounds::Bounds;
use super::network::{Address, Copy, Envelope, Message, Network, Purpose};
use super::registry::Registry;
use super::strand::{Lane, Strand};
use super::witness::Witness;
use super::words::{Epoch, KEYS, Key, LATE, MessageId, Messages, SHARDS, SUBSCRIPTIONS};
use super::words::{ShardNumber, Subscription};

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) shards: [Shard; SHARDS],
    pub(crate) leaders: [Leader; SHARDS],
    pub(crate) network: Network,
    /// The catalogue has the late subscription.
    pub(crate) late_created: bool,
    pub(crate) witness: Witness,
    /// What may still happen.
    pub(crate) left: Bounds,
}

/// What a shard has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shard {
    /// Strands open above this epoch only.
    pub(crate) floor: Epoch,
    /// The counter of the newest id.
    pub(crate) counter: u8,
    pub(crate) rows: [Option<Row>; KEYS],
    /// Copies that moves have brought and nobody has opened.
    pub(crate) staged: Vec<(Key, Copy)>,
    /// Ids up to this one are of before the late subscription was attached.
    pub(crate) late_attached: Option<MessageId>,
    /// How many leaders there were before this one.
    pub(crate) term: u8,
}

/// A strand and the right to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) epoch: Epoch,
    /// Why it is sealed; none if it is open.
    pub(crate) sealed: Option<Purpose>,
    pub(crate) strand: Strand,
}

/// What a crash of a shard's leader forgets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    /// Publishes that wait for the key to be here.
    pub(crate) waiting: [u8; KEYS],
    pub(crate) lanes: [[Sent; SUBSCRIPTIONS]; KEYS],
}

/// What a leader has sent of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    /// The leader knows that nothing else of the lane was sent since it last went back.
    pub(crate) knows: bool,
    pub(crate) messages: Messages,
    pub(crate) round: u8,
}

impl State {
    /// Nothing has happened yet.
    pub(crate) fn new(left: Bounds) -> Self {
        State {
            registry: Registry::default(),
            shards: Default::default(),
            leaders: Default::default(),
            network: Network::default(),
            late_created: false,
            witness: Witness::default(),
            left,
        }
    }

    pub(crate) fn shard(&self, shard: ShardNumber) -> &Shard {
        &self.shards[shard.0]
    }

    pub(crate) fn shard_mut(&mut self, shard: ShardNumber) -> &mut Shard {
        &mut self.shards[shard.0]
    }

    pub(crate) fn row(&self, shard: ShardNumber, key: Key) -> Option<&Row> {
        self.shard(shard).rows[key.0].as_ref()
    }

    pub(crate) fn row_mut(&mut self, shard: ShardNumber, key: Key) -> Option<&mut Row> {
        self.shard_mut(shard).rows[key.0].as_mut()
    }

    pub(crate) fn tell_registry(&mut self, key: Key, message: Message) {
        let to = Address::Registry;
        self.network.send(Envelope { to, key, message });
    }

    pub(crate) fn tell_shard(&mut self, shard: ShardNumber, key: Key, message: Message) {
        let to = Address::Shard(shard);
        self.network.send(Envelope { to, key, message });
    }

    /// The lane of a subscription in a strand of a shard; none if the shard doesn't know it.
    pub(crate) fn lane(
        &self,
        shard: ShardNumber,
        key: Key,
        strand: &Strand,
        subscription: Subscription,
    ) -> Option<Lane> {
        if subscription != LATE {
            return Some(strand.lanes[subscription.0].unwrap_or_default());
        }
        let attached = self.shard(shard).late_attached?;
        let explicit = strand.lanes[subscription.0];
        let earlier = strand.messages.and(self.witness.ids_up_to(key, attached));
        Some(explicit.unwrap_or_else(|| Lane::behind(earlier)))
    }

    /// A copy waits at a shard until the shard's catalogue is as new as the source's was. To claim the
    /// key again and again meanwhile would change nothing.
    pub(crate) fn awaits_catalogue(&self, shard: ShardNumber, key: Key) -> bool {
        let shard = self.shard(shard);
        let mut staged = shard.staged.iter().filter(|(of, _)| *of == key);
        shard.late_attached.is_none() && staged.any(|(_, copy)| copy.knows_late)
    }

    /// The creation of the late subscription is answered: every shard has it.
    pub(crate) fn has_late(&self) -> bool {
        self.shards
            .iter()
            .all(|shard| shard.late_attached.is_some())
    }

    /// An open strand of which nothing is wanted any more, and nobody waits to publish.
    pub(crate) fn is_releasable(&self, shard: ShardNumber, key: Key, row: &Row) -> bool {
        let is_wanted = self.leaders[shard.0].waiting[key.0] > 0;
        row.sealed.is_none() && !is_wanted && self.is_drained(shard, key, &row.strand)
    }

    /// Every subscription of a shard has settled all of a strand.
    fn is_drained(&self, shard: ShardNumber, key: Key, strand: &Strand) -> bool {
        Subscription::all()
            .filter_map(|subscription| self.lane(shard, key, strand, subscription))
            .all(|lane| lane.position(strand.messages).is_none())
    }
}
