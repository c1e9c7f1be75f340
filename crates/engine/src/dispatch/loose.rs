//! Messages that are not in lanes and must be sent again: each on its own, waiting for no other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{MessageId, Timestamp};

use super::Credit;

/// Messages of one subscription that wait to be sent again. Every one of them was outstanding
/// before, so that their number is bounded like that of leases.
#[derive(Debug, Default)]
pub(super) struct Loose {
    again: BTreeMap<MessageId, Again>,
    /// In the order in which they became ready. Messages that are not ready any more are skipped.
    queue: VecDeque<MessageId>,
    ready: Credit,
    times: BTreeSet<(Timestamp, MessageId)>,
    /// Acks on their way through the log of messages without a lease.
    acks: BTreeMap<MessageId, u32>,
}

/// A message that must be sent again.
#[derive(Clone, Copy, Debug)]
struct Again {
    bytes: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It can go.
    Ready,
    /// It waits for this moment.
    At(Timestamp),
    /// It waits for an ack that is under way.
    Acknowledging,
    /// It is on its way to the dead letters.
    Forwarding,
}

impl Loose {
    /// The message can go again, now or at a later moment.
    pub(super) fn insert(&mut self, message: MessageId, bytes: u64, at: Option<Timestamp>) {
        let state = at.map_or(State::Ready, State::At);
        self.set(message, Again { bytes, state });
    }

    /// The message can go again once the ack that is under way has turned out to be stale.
    pub(super) fn wait_for_ack(&mut self, message: MessageId, bytes: u64) {
        let state = State::Acknowledging;
        self.set(message, Again { bytes, state });
    }

    /// The message is on its way to the dead letters.
    pub(super) fn wait_for_forward(&mut self, message: MessageId, bytes: u64) {
        let state = State::Forwarding;
        self.set(message, Again { bytes, state });
    }

    fn set(&mut self, message: MessageId, again: Again) {
        self.remove(message);
        match again.state {
            State::Ready => {
                self.ready.add(Credit::of(again.bytes));
                self.queue.push_back(message);
            }
            State::At(at) => drop(self.times.insert((at, message))),
            State::Acknowledging | State::Forwarding => {}
        }
        self.again.insert(message, again);
    }

    /// The message is settled, or goes out.
    pub(super) fn remove(&mut self, message: MessageId) {
        let Some(again) = self.again.remove(&message) else {
            return;
        };
        match again.state {
            State::Ready => self.ready.subtract(Credit::of(again.bytes)),
            State::At(at) => drop(self.times.remove(&(at, message))),
            State::Acknowledging | State::Forwarding => {}
        }
    }

    /// Takes the message whose turn it is, with its size. It is the caller's now.
    pub(super) fn pop(&mut self) -> Option<(MessageId, u64)> {
        while let Some(message) = self.queue.pop_front() {
            match self.again.get(&message) {
                Some(again) if again.state == State::Ready => {
                    let bytes = again.bytes;
                    self.remove(message);
                    return Some((message, bytes));
                }
                _ => {}
            }
        }
        None
    }

    /// Lets those go whose time has come.
    pub(super) fn wake(&mut self, now: Timestamp) {
        while let Some((at, message)) = self.times.first().copied()
            && at <= now
        {
            let bytes = self.again[&message].bytes;
            self.insert(message, bytes, None);
        }
    }

    /// Lets all go that wait for a moment.
    pub(super) fn end_back_offs(&mut self) {
        while let Some((_, message)) = self.times.first().copied() {
            let bytes = self.again[&message].bytes;
            self.insert(message, bytes, None);
        }
    }

    pub(super) fn next_time(&self) -> Option<Timestamp> {
        self.times.first().map(|(at, _)| *at)
    }

    /// An ack of a message without a lease is under way: the message is not sent meanwhile.
    pub(super) fn begin_ack(&mut self, message: MessageId) {
        *self.acks.entry(message).or_default() += 1;
    }

    /// That ack is decided. A message that waited for it can go, unless it is settled.
    pub(super) fn end_ack(&mut self, message: MessageId) {
        let Some(under_way) = self.acks.get_mut(&message) else {
            return;
        };
        *under_way -= 1;
        if *under_way > 0 {
            return;
        }
        self.acks.remove(&message);
        if let Some(again) = self.again.get(&message)
            && again.state == State::Acknowledging
        {
            let bytes = again.bytes;
            self.insert(message, bytes, None);
        }
    }

    pub(super) fn is_being_acknowledged(&self, message: MessageId) -> bool {
        self.acks.contains_key(&message)
    }

    pub(super) fn contains(&self, message: MessageId) -> bool {
        self.again.contains_key(&message)
    }

    /// What can go now.
    pub(super) fn ready(&self) -> Credit {
        self.ready
    }

    /// How many messages wait, for whatever.
    pub(super) fn len(&self) -> usize {
        self.again.len()
    }

    /// Whether nothing must be remembered.
    pub(super) fn is_idle(&self) -> bool {
        self.times.is_empty() && self.acks.is_empty()
    }
}
