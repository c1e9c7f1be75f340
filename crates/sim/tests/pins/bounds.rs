//! How much may happen. All that follows from it takes its course without bounds, and ends.

/// How often each kind of event may still happen, and how clients take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// The keys that are published: the first so many.
    pub(crate) keys: usize,
    pub(crate) clients: Clients,
    /// The late subscription is created.
    pub(crate) late: u8,
    pub(crate) publishes: u8,
    pub(crate) moves: u8,
    pub(crate) undos: u8,
    pub(crate) releases: u8,
    /// Leaders that crash.
    pub(crate) crashes: u8,
    /// Messages that arrive twice.
    pub(crate) duplicates: u8,
    /// Messages that never arrive.
    pub(crate) losses: u8,
    /// Pins that are swept while something about their key is on its way.
    pub(crate) hasty_sweeps: u8,
    /// Deliveries that fail.
    pub(crate) nacks: u8,
}

/// How subscriptions take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clients {
    /// A message is delivered and acked in one step: where only the fate of pins is looked at.
    AtOnce,
    /// Deliveries and acks are steps of their own; acks may come late, and for older deliveries.
    OneByOne,
}

const NOTHING: Bounds = Bounds {
    keys: 1,
    clients: Clients::AtOnce,
    late: 0,
    publishes: 0,
    moves: 0,
    undos: 0,
    releases: 0,
    crashes: 0,
    duplicates: 0,
    losses: 0,
    hasty_sweeps: 0,
    nacks: 0,
};

/// Two keys, which share a registry group's epochs and a shard's floor and ids; one of them moves.
pub(crate) const TWO_KEYS: Bounds = Bounds {
    keys: 2,
    publishes: 3,
    moves: 1,
    duplicates: 1,
    ..NOTHING
};

/// The same, and a leader crashes.
pub(crate) const CRASH: Bounds = Bounds {
    publishes: 2,
    crashes: 1,
    ..TWO_KEYS
};

/// A move, its undo, and a release.
pub(crate) const UNDO: Bounds = Bounds {
    publishes: 2,
    moves: 1,
    undos: 1,
    releases: 1,
    duplicates: 1,
    ..NOTHING
};

/// A key goes, and comes back.
pub(crate) const THERE_AND_BACK: Bounds = Bounds {
    publishes: 2,
    moves: 2,
    releases: 1,
    duplicates: 1,
    ..NOTHING
};

/// Answers are lost, and pins without a strand are swept at the wrong moment.
pub(crate) const SWEEP: Bounds = Bounds {
    publishes: 3,
    releases: 1,
    crashes: 1,
    losses: 1,
    hasty_sweeps: 1,
    ..NOTHING
};

/// Late acks and failed deliveries, while the key moves.
pub(crate) const ACKS: Bounds = Bounds {
    clients: Clients::OneByOne,
    publishes: 3,
    moves: 1,
    crashes: 1,
    nacks: 1,
    ..NOTHING
};

/// A subscription is created while the key moves.
pub(crate) const LATE: Bounds = Bounds {
    late: 1,
    publishes: 3,
    moves: 1,
    ..NOTHING
};

/// What is explored each time.
pub(crate) const ALL: [Bounds; 7] = [TWO_KEYS, CRASH, UNDO, THERE_AND_BACK, SWEEP, ACKS, LATE];

/// More may happen at once: it takes minutes, and 1.4 GB of memory.
pub(crate) const WIDE: [Bounds; 6] = [
    Bounds {
        crashes: 1,
        ..TWO_KEYS
    },
    Bounds {
        crashes: 1,
        hasty_sweeps: 1,
        ..UNDO
    },
    Bounds {
        undos: 1,
        ..THERE_AND_BACK
    },
    Bounds {
        moves: 2,
        nacks: 0,
        ..ACKS
    },
    Bounds {
        publishes: 2,
        late: 1,
        nacks: 0,
        ..ACKS
    },
    Bounds {
        duplicates: 1,
        ..LATE
    },
];
