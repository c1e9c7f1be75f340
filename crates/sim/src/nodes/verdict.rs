//! What is to be said of a simulation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::time::Duration;

use engine::table::run::referred_payload;
use siphasher::sip::SipHasher13;

use super::faults::Tally;
use super::member::Member;
use crate::history::{History, What};
use crate::invariants::check;

/// What came out of a seed.
#[derive(Debug)]
pub struct Verdict {
    /// How long it took in virtual time.
    pub elapsed: Duration,
    /// Messages whose publish was answered OK.
    pub stored: usize,
    /// Deliveries.
    pub delivered: usize,
    /// What went wrong on purpose.
    pub faults: Tally,
    /// What is wrong; nothing in a good run.
    pub wrong: Vec<String>,
    /// Everything that clients did and saw, and what became of nodes: the same bytes for the same
    /// seed, always.
    pub trace: String,
}

impl Verdict {
    pub(super) fn new(
        elapsed: Duration,
        history: &History,
        said: Vec<(usize, String)>,
        faults: Tally,
        mut wrong: Vec<String>,
    ) -> Self {
        wrong.extend(check(history).iter().map(ToString::to_string));
        let count = |of: fn(&What) -> usize| {
            let events = history.events.iter();
            events.map(|event| of(&event.what)).sum()
        };
        Verdict {
            elapsed,
            stored: count(|what| match what {
                What::PublishOk { ids, .. } => ids.len(),
                _ => 0,
            }),
            delivered: count(|what| usize::from(matches!(what, What::Delivered(_)))),
            faults,
            wrong,
            trace: trace(history, said),
        }
    }

    /// The trace as one number.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write(self.trace.as_bytes());
        hasher.finish()
    }
}

fn trace(history: &History, said: Vec<(usize, String)>) -> String {
    let mut trace = String::new();
    let mut said = said.into_iter().peekable();
    for (number, event) in history.events.iter().enumerate() {
        while let Some((_, what)) = said.next_if(|(before, _)| *before <= number) {
            let _ = writeln!(trace, "# {what}");
        }
        let (at, what) = (Duration::from_nanos(event.at.0), &event.what);
        let _ = writeln!(trace, "{number} {at:?} {what:?}");
    }
    for (_, what) in said {
        let _ = writeln!(trace, "# {what}");
    }
    trace
}

/// The groups of which not all replicas have come to the same state, as lines.
pub(super) fn digests(members: &[Member]) -> Vec<String> {
    let mut groups: BTreeMap<_, BTreeMap<_, Vec<&str>>> = BTreeMap::new();
    for member in members {
        let Some(store) = member.disk().store() else {
            return vec![format!("{} is down", member.name())];
        };
        for group in store.groups().unwrap_or_default() {
            let digest = match store.digest(group, referred_payload) {
                Ok(Some(digest)) => format!("{digest:?}"),
                Ok(None) => continue,
                Err(fault) => return vec![format!("{group} of {}: {fault}", member.name())],
            };
            let replicas = groups.entry(group).or_default();
            replicas.entry(digest).or_default().push(member.name());
        }
    }
    groups.retain(|_, digests| digests.len() > 1);
    let differ = groups.iter();
    differ
        .map(|(group, digests)| format!("replicas of {group} differ: {digests:?}"))
        .collect()
}
