//! The few words that all parts of the model share, each as small as it can be.

/// One of the two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub usize);

/// One of the two shards; each is all there is of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShardNumber(pub usize);

/// One of the two subscriptions. The first exists from the beginning, the second may be created
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subscription(pub usize);

/// From the registry's one counter, which never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Epoch(pub u8);

/// A shard's counter and, below it, the shard's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MessageId(pub u8);

/// A delivery's rank: later ones of a lane compare higher, also across leaders and moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Generation {
    pub(crate) epoch: Epoch,
    pub(crate) term: u8,
    /// How often this leader has moved the lane back.
    pub(crate) round: u8,
}

/// A message is named by its place among all that were ever accepted of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(pub usize);

/// A set of messages of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Messages(u8);

/// How many keys there are.
pub(crate) const KEYS: usize = 2;
/// How many shards there are.
pub(crate) const SHARDS: usize = 2;
/// How many subscriptions there are.
pub(crate) const SUBSCRIPTIONS: usize = 2;
/// How many messages a key can have at most.
pub(crate) const MESSAGES: usize = 3;

/// The subscription that is created while the model runs.
pub(crate) const LATE: Subscription = Subscription(1);

impl Key {
    pub(crate) fn all() -> impl Iterator<Item = Key> {
        (0..KEYS).map(Key)
    }
}

impl ShardNumber {
    pub(crate) fn all() -> impl Iterator<Item = ShardNumber> {
        (0..SHARDS).map(ShardNumber)
    }

    pub(crate) fn other(self) -> ShardNumber {
        ShardNumber(1 - self.0)
    }
}

impl Subscription {
    pub(crate) fn all() -> impl Iterator<Item = Subscription> {
        (0..SUBSCRIPTIONS).map(Subscription)
    }
}

impl MessageId {
    pub(crate) fn new(counter: u8, shard: ShardNumber) -> Self {
        let shard = u8::try_from(shard.0).expect("there are two shards");
        MessageId(counter << 1 | shard)
    }

    pub(crate) fn counter(self) -> u8 {
        self.0 >> 1
    }
}

impl Messages {
    /// The first `count` messages of a key.
    pub(crate) fn first(count: usize) -> Self {
        Messages((1 << count) - 1)
    }

    pub(crate) fn insert(&mut self, place: Place) {
        self.0 |= 1 << place.0;
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.0 &= !(1 << place.0);
    }

    pub(crate) fn contains(self, place: Place) -> bool {
        self.0 & 1 << place.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn union(self, other: Messages) -> Messages {
        Messages(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Messages) -> Messages {
        Messages(self.0 & !other.0)
    }

    pub(crate) fn and(self, other: Messages) -> Messages {
        Messages(self.0 & other.0)
    }

    /// Those that come before a place.
    pub(crate) fn before(self, place: Place) -> Messages {
        self.and(Messages::first(place.0))
    }

    /// Those that come after a place.
    pub(crate) fn after(self, place: Place) -> Messages {
        self.without(Messages::first(place.0 + 1))
    }

    /// In publish order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Place> {
        (0..MESSAGES)
            .map(Place)
            .filter(move |place| self.contains(*place))
    }
}
