//! The read position of one subscription: its topic's runs, in publish order, each read once.
//!
//! Runs of lanes are only noted. Other runs wait here, a bounded number, until sessions take them.

use std::collections::VecDeque;

use model::MessageId;
use model::limits::RESPONSE_MESSAGES_MAX;

use super::Credit;
use crate::table::holes::Holes;
use crate::table::run::Run;

/// Runs that one step reads: it must not hold up the others.
const STEP_RUNS_MAX: usize = 1_000;
/// Runs that wait here for sessions.
const AHEAD_RUNS_MAX: usize = 1_000;

/// The position, and what was read ahead of the sessions.
#[derive(Debug)]
pub(super) struct Reader {
    /// Runs that begin here or later have not been read.
    pub(super) next: MessageId,
    /// Whether there was nothing more to read.
    pub(super) at_end: bool,
    /// How many more runs this step may read.
    budget: usize,
    ahead: VecDeque<Ahead>,
    waiting: Credit,
}

/// A run whose messages wait for sessions.
#[derive(Debug)]
pub(super) struct Ahead {
    pub(super) first: MessageId,
    pub(super) count: u32,
    bytes: u64,
    /// Which message of the run is next.
    pub(super) at: u32,
    /// Bit `n` of the words is message `n` of the run: it is settled, or not wanted.
    settled: Vec<u64>,
}

impl Reader {
    /// A reader of the runs that begin at `next` or later.
    pub(super) fn new(next: MessageId) -> Self {
        Reader {
            next,
            at_end: false,
            budget: STEP_RUNS_MAX,
            ahead: VecDeque::new(),
            waiting: Credit::default(),
        }
    }

    /// A new step begins.
    pub(super) fn refill_budget(&mut self) {
        self.budget = STEP_RUNS_MAX;
    }

    /// Whether this step may read on, if there is anything.
    pub(super) fn may_read(&self) -> bool {
        !self.at_end && self.budget > 0
    }

    /// Whether enough waits for sessions.
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead.len() >= AHEAD_RUNS_MAX
            || self.waiting.messages as usize >= RESPONSE_MESSAGES_MAX
    }

    /// A run has been read.
    pub(super) fn pass(&mut self, first: MessageId) {
        self.next = MessageId(first.0 + 1);
        self.budget -= 1;
    }

    /// Puts a run behind those that wait.
    pub(super) fn push(&mut self, ahead: Ahead) {
        self.waiting.add(ahead.waiting());
        self.ahead.push_back(ahead);
    }

    /// Puts a run that the reader has passed among those that wait, unless it does already.
    pub(super) fn insert(&mut self, ahead: Ahead) {
        let place = self
            .ahead
            .partition_point(|other| other.first < ahead.first);
        let other = self.ahead.get(place);
        if other.is_none_or(|other| other.first != ahead.first) {
            self.waiting.add(ahead.waiting());
            self.ahead.insert(place, ahead);
        }
    }

    /// Takes the run whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Ahead> {
        let ahead = self.ahead.pop_front()?;
        self.waiting.subtract(ahead.waiting());
        Some(ahead)
    }

    /// Puts back what is left of the run whose turn it is.
    pub(super) fn put_back(&mut self, ahead: Ahead) {
        if ahead.at < ahead.count {
            self.waiting.add(ahead.waiting());
            self.ahead.push_front(ahead);
        }
    }

    /// A message is settled before it was sent: a delivery of an earlier leader was acknowledged.
    pub(super) fn settle(&mut self, message: MessageId) {
        let after = self.ahead.partition_point(|ahead| ahead.first <= message);
        let before = after.checked_sub(1).map(|at| &mut self.ahead[at]);
        if let Some(ahead) = before
            && message <= ahead.first.plus(ahead.count - 1)
        {
            ahead.settle((message.counter() - ahead.first.counter()) as u32);
        }
    }

    /// About what waits.
    pub(super) fn waiting(&self) -> Credit {
        self.waiting
    }
}

impl Ahead {
    pub(super) fn new(first: MessageId, run: &Run, holes: Option<Holes>) -> Option<Self> {
        let settled = match holes {
            None => Vec::new(),
            Some(Holes::Some(words)) => words,
            Some(Holes::All) => return None,
        };
        Some(Ahead {
            first,
            count: run.count,
            bytes: run.bytes,
            at: 0,
            settled,
        })
    }

    pub(super) fn settle(&mut self, number: u32) {
        let word = (number / 64) as usize;
        if self.settled.len() <= word {
            self.settled.resize(word + 1, 0);
        }
        self.settled[word] |= 1 << (number % 64);
    }

    pub(super) fn is_settled(&self, number: u32) -> bool {
        let word = self.settled.get((number / 64) as usize);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// About what is left of the run.
    fn waiting(&self) -> Credit {
        let messages = self.count - self.at;
        let bytes = self.bytes * u64::from(messages) / u64::from(self.count);
        Credit { messages, bytes }
    }
}
