//! What is to be said of a simulation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::time::Duration;

use engine::Fault;
use engine::control::read;
use engine::table::run::referred_payload;
use model::GroupId;
use siphasher::sip::SipHasher13;
use store::Store;

use super::faults::Tally;
use super::member::Member;
use super::recorder::Recorder;
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
    /// Keys that an operator moved.
    pub moved: u32,
    /// Checkpoints that nodes took in, since logs no longer had what they lacked.
    pub checkpoints: u32,
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
        recorder: &Recorder,
        history: &History,
        checkpoints: u32,
        faults: Tally,
        mut wrong: Vec<String>,
    ) -> Self {
        wrong.extend(check(history).iter().map(ToString::to_string));
        let moved = recorder.moves();
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
            moved,
            checkpoints,
            trace: trace(
                history,
                recorder.said(),
                &effects(&faults, moved, checkpoints),
            ),
            faults,
            wrong,
        }
    }

    /// What was brought about on purpose, as lines, each with a number first: `2 Kill felt`.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        effects(&self.faults, self.moved, self.checkpoints)
    }

    /// The trace as one number.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write(self.trace.as_bytes());
        hasher.finish()
    }
}

fn effects(faults: &Tally, moved: u32, checkpoints: u32) -> Vec<String> {
    let faults = faults.iter().flat_map(|(kind, count)| {
        [
            format!("{} {kind:?} begun", count.begun),
            format!("{} {kind:?} felt", count.felt),
        ]
    });
    let more = [(moved, "keys moved"), (checkpoints, "checkpoints taken in")];
    let more = more.map(|(count, what)| format!("{count} {what}"));
    faults.chain(more).collect()
}

fn trace(history: &History, said: Vec<(usize, String)>, effects: &[String]) -> String {
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
    for effect in effects {
        let _ = writeln!(trace, "# effect: {effect}");
    }
    trace
}

/// How many checkpoints these nodes have taken in.
pub(super) fn checkpoints<'m>(members: impl Iterator<Item = &'m Member>) -> u32 {
    let stores = members.filter_map(|member| member.disk().store());
    let installs = stores.flat_map(|store| {
        let groups = store.groups().unwrap_or_default();
        groups
            .into_iter()
            .map(move |group| store.installs(group).unwrap_or_default())
    });
    installs.sum()
}

/// The groups of which not all replicas have come to the same state, as lines. What a node keeps of
/// groups that it has no part in any more does not count.
pub(super) fn digests<'m>(members: impl Iterator<Item = &'m Member>) -> Vec<String> {
    let mut replicas: BTreeMap<GroupId, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for member in members {
        let Some(store) = member.disk().store() else {
            return vec![format!("{} is down", member.name())];
        };
        let digests = match digests_of(&store) {
            Ok(digests) => digests,
            Err(fault) => return vec![format!("{}: {fault}", member.name())],
        };
        for (group, digest) in digests {
            let replicas = replicas.entry(group).or_default();
            replicas.entry(digest).or_default().push(member.name());
        }
    }
    replicas.retain(|_, digests| digests.len() > 1);
    let differ = replicas.iter();
    differ
        .map(|(group, digests)| format!("replicas of {group} differ: {digests:?}"))
        .collect()
}

/// The states of the groups in which a node has a part, as far as it knows.
fn digests_of(store: &Store) -> Result<Vec<(GroupId, String)>, Fault> {
    let node = store.identity().node;
    let control = store.view(GroupId::Control)?;
    let mut digests = Vec::new();
    for placement in read::placements(&control)? {
        let has_part = placement.voters.contains(&node) || placement.learners.contains(&node);
        if has_part && let Some(digest) = store.digest(placement.group, referred_payload)? {
            digests.push((placement.group, format!("{digest:?}")));
        }
    }
    Ok(digests)
}
