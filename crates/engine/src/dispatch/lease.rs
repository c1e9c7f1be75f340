//! The leases of one subscription: which messages are outstanding, at which session, until when.

use std::collections::{BTreeMap, BTreeSet};

use model::{Generation, KeyHash, MessageId, SessionId, Timestamp};

use super::Credit;

/// The right to acknowledge one delivery.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The delivery.
    pub(super) generation: Generation,
    /// The strand of the message.
    pub(super) strand: KeyHash,
    /// Whether the message is in a lane.
    pub(super) in_lane: bool,
    /// Who got the delivery; nobody that this leader knows if an earlier leader sent it.
    pub(super) session: Option<SessionId>,
    /// The size of the message.
    pub(super) bytes: u64,
    /// The stream that got it, by the number of its first opening.
    pub(super) stream: Option<SessionId>,
    /// When it runs out. None while it must not: before it is sent, and once something that
    /// decides it is in the log.
    pub(super) deadline: Option<Timestamp>,
    /// Whether the client has ever changed its deadline: it has surely got the message.
    pub(super) extended: bool,
    /// Whether its key may have brought it from another shard, which numbers deliveries apart.
    pub(super) brought: bool,
    /// Whether the log has it, and must hear of its end.
    pub(super) logged: bool,
    /// Its session has ended before the client confirmed it: that it runs out is no failure.
    pub(super) unconfirmed: bool,
    /// When it would run out if its stream came back. Only while it is unconfirmed.
    pub(super) if_back: Option<Timestamp>,
    /// Acks of it on their way through the log: it does not run out meanwhile.
    pub(super) acks: u32,
    /// The same for changes of its deadline.
    pub(super) changes: u32,
    /// Its failure is on its way through the log.
    pub(super) failing: bool,
    /// Its time was over before something was decided that was on its way.
    pub(super) overdue: bool,
}

impl Lease {
    /// The stream that got it, if its client has never confirmed it.
    fn unconfirmed_stream(&self) -> Option<SessionId> {
        let confirmed = self.extended || self.failing;
        self.stream.filter(|_| !confirmed)
    }

    /// Its client has changed its deadline: so it has the message, and its stream matters no more.
    pub(super) fn confirm(&mut self) {
        self.extended = true;
        self.unconfirmed = false;
        self.if_back = None;
    }

    /// Whether something on its way through the log decides what becomes of it.
    pub(super) fn is_undecided(&self) -> bool {
        self.acks > 0 || self.changes > 0 || self.failing
    }
}

/// The live leases, by message: a message has one at most.
#[derive(Debug, Default)]
pub(super) struct Leases {
    live: BTreeMap<MessageId, Lease>,
    deadlines: BTreeSet<(Timestamp, MessageId)>,
    released: BTreeMap<SessionId, Credit>,
}

impl Leases {
    /// Adds a lease.
    ///
    /// # Panics
    /// When the message has one already: it would be delivered twice at once.
    pub(super) fn insert(&mut self, message: MessageId, lease: Lease) {
        if let Some(deadline) = lease.deadline {
            self.deadlines.insert((deadline, message));
        }
        let before = self.live.insert(message, lease);
        assert!(before.is_none(), "message {message} has a live lease");
    }

    /// Ends a lease; its session gets its credit back.
    pub(super) fn end(&mut self, message: MessageId) -> Option<Lease> {
        let lease = self.live.remove(&message)?;
        if let Some(deadline) = lease.deadline {
            self.deadlines.remove(&(deadline, message));
        }
        if let Some(session) = lease.session {
            let released = self.released.entry(session).or_default();
            released.add(Credit::of(lease.bytes));
            if model::sabotage!("credit-back-twice") {
                released.add(Credit::of(lease.bytes));
            }
        }
        Some(lease)
    }

    pub(super) fn get(&self, message: MessageId) -> Option<&Lease> {
        self.live.get(&message)
    }

    pub(super) fn get_mut(&mut self, message: MessageId) -> Option<&mut Lease> {
        self.live.get_mut(&message)
    }

    /// The lease of exactly this delivery.
    pub(super) fn of_delivery(
        &mut self,
        message: MessageId,
        generation: Generation,
    ) -> Option<&mut Lease> {
        let lease = self.live.get_mut(&message);
        lease.filter(|lease| lease.generation == generation)
    }

    pub(super) fn contains(&self, message: MessageId) -> bool {
        self.live.contains_key(&message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (MessageId, &Lease)> {
        self.live.iter().map(|(message, lease)| (*message, lease))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (MessageId, &mut Lease)> {
        let live = self.live.iter_mut();
        live.map(|(message, lease)| (*message, lease))
    }

    /// Streams have ended, or seem to: what a client of theirs has never confirmed is over at the
    /// moment that `release` says, unless its stream comes back or the client confirms it.
    pub(super) fn doubt(&mut self, release: impl Fn(SessionId, &Lease) -> Option<Timestamp>) {
        for (message, lease) in &mut self.live {
            if let Some(stream) = lease.unconfirmed_stream()
                && let Some(release) = release(stream, lease)
                && !std::mem::replace(&mut lease.unconfirmed, true)
            {
                lease.if_back = lease.deadline;
                if let Some(deadline) = lease.deadline.filter(|deadline| *deadline > release) {
                    self.deadlines.remove(&(deadline, *message));
                    self.deadlines.insert((release, *message));
                    lease.deadline = Some(release);
                }
            }
        }
    }

    /// The stream of a lease is back as a new session, which has it now. Answers what it counts.
    pub(super) fn trust(&mut self, message: MessageId, session: SessionId) -> Credit {
        let lease = self.live.get_mut(&message);
        let lease = lease.expect("callers have just seen the lease");
        lease.session = Some(session);
        lease.unconfirmed = false;
        let counts = Credit::of(lease.bytes);
        if let Some(deadline) = lease.if_back.take() {
            lease.overdue = false;
            self.set_deadline(message, Some(deadline));
        }
        counts
    }

    /// Lets a lease run until `deadline`, or until further notice.
    pub(super) fn set_deadline(&mut self, message: MessageId, deadline: Option<Timestamp>) {
        let lease = self.live.get_mut(&message);
        let lease = lease.expect("callers have just seen the lease");
        if let Some(before) = lease.deadline {
            self.deadlines.remove(&(before, message));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, message));
        }
        lease.deadline = deadline;
    }

    /// The next lease whose time is over.
    pub(super) fn first_due(&self, now: Timestamp) -> Option<MessageId> {
        let (deadline, message) = self.deadlines.first()?;
        (*deadline <= now && !model::sabotage!("lease-never-runs-out")).then_some(*message)
    }

    /// When the next lease runs out.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The credit of the leases that have ended since the last call, by session.
    pub(super) fn take_released(&mut self) -> BTreeMap<SessionId, Credit> {
        std::mem::take(&mut self.released)
    }
}
