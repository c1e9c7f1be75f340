//! How the clients of one run use what they are given. Each run has its own mixture, since a mixture
//! of everything at once hides what only shows in quiet.

use std::time::Duration;

use crate::chance::Chance;

/// Makes a stream of chance of its own of a seed, so that what a seed chooses else stays.
const HABITS: u64 = 0x6861_6269_7473;

/// What a stream may have outstanding where nothing is said of it.
pub(super) const OUTSTANDING_USUAL: u32 = 200;

/// How the clients of one run behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// How many of a hundred messages are given back.
    pub(super) nack: u64,
    /// How many are not answered at all.
    pub(super) forget: u64,
    /// How many are given another deadline first, which may be a shorter one.
    pub(super) extend: u64,
    /// How many of a hundred sessions are unary pulls.
    pub(super) pull: u64,
    /// After about so long a client closes its stream, and opens another one.
    pub(super) close_after: Option<Duration>,
    /// What a stream may have outstanding.
    pub(super) outstanding_max: u32,
    /// Consumers of each subscription.
    pub(super) consumers: usize,
    /// Messages that one publish has at most.
    pub(super) batch_max: u64,
    /// Whether keys are moved by the call of operators, several at once.
    pub(super) moves_by_call: bool,
}

/// More than a stream ever has outstanding.
const OUTSTANDING_UNBOUNDED: u32 = 100_000;

impl Habits {
    /// The same, for a consumer of a subscription like this. A lease that has moved along with its key
    /// does not count against the limit of the stream that has its message.
    pub(super) fn of_consumer(mut self, exactly_once: bool, keys_move: bool) -> Self {
        if exactly_once && keys_move {
            self.outstanding_max = OUTSTANDING_UNBOUNDED;
        }
        self
    }

    pub(super) fn new(seed: u64) -> Self {
        let chance = &mut Chance::new(seed ^ HABITS);
        let rare = |chance: &mut Chance, most: u64| match chance.percent(50) {
            true => chance.below(most),
            false => 0,
        };
        Habits {
            nack: rare(chance, 20),
            forget: rare(chance, 8),
            extend: rare(chance, 30),
            pull: match chance.percent(30) {
                true => 50,
                false => 0,
            },
            close_after: match chance.percent(30) {
                true => Some(chance.between(Duration::from_secs(1), Duration::from_secs(10))),
                false => None,
            },
            outstanding_max: match chance.percent(40) {
                true => 1 + chance.below(20) as u32,
                false => OUTSTANDING_USUAL,
            },
            consumers: 1 + chance.below(2) as usize,
            batch_max: 3 + rare(chance, 40),
            moves_by_call: chance.percent(50),
        }
    }

    /// Whether clients leave without a word what they were sent: it comes again only when its lease
    /// has run out.
    pub(super) fn leave_messages(&self) -> bool {
        self.pull > 0 || self.close_after.is_some()
    }

    /// Whether they do so once, when everything is to be acknowledged: for that they take more.
    pub(super) fn leave_for_more(&self) -> bool {
        self.outstanding_max < OUTSTANDING_USUAL
    }
}
