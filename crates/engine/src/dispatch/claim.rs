//! Claims: publishes of a key that has no open strand here wait, in order, until its registry group
//! has said who owns the key.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use model::limits::{
    KEY_HELD_REQUESTS_MAX, REGISTRY_KEYS_MAX, SHARD_HELD_BYTES_MAX, SHARD_HELD_REQUESTS_MAX,
};
use model::{RegistryNumber, ShardNumber, Timestamp};

use super::question::{Asked, Questions};
use super::{Output, PublishRequest, Refused};
use crate::registry::{Claim, Registries};
use crate::table::strand::StrandKey;

/// How soon a registry group is asked again that did not answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Questions of one group on their way at once. Keys that come meanwhile share the next one.
const QUESTIONS_MAX: usize = 2;

/// The keys that wait for their pin.
#[derive(Debug)]
pub(super) struct Claims {
    shard: ShardNumber,
    registries: Registries,
    /// The publishes of each key; those of one that was asked for in vain may all be gone.
    held: BTreeMap<StrandKey, VecDeque<PublishRequest>>,
    held_requests: usize,
    held_bytes: usize,
    /// Which of the keys are to be asked for next.
    wanted: BTreeMap<RegistryNumber, BTreeSet<StrandKey>>,
    /// Keys whose question had no answer, and when they are wanted again.
    unanswered: VecDeque<(Timestamp, StrandKey)>,
}

impl Claims {
    pub(super) fn new(shard: ShardNumber, registries: Registries) -> Self {
        Claims {
            shard,
            registries,
            held: BTreeMap::new(),
            held_requests: 0,
            held_bytes: 0,
            wanted: BTreeMap::new(),
            unanswered: VecDeque::new(),
        }
    }

    /// Whether publishes of the key wait for its pin.
    pub(super) fn holds(&self, key: &StrandKey) -> bool {
        self.held.contains_key(key)
    }

    /// Lets a publish wait until the key's pin is known, or refuses it because too much waits.
    pub(super) fn hold(&mut self, request: PublishRequest, out: &mut Vec<Output>) {
        let key = request.key();
        let is_new = !self.holds(&key);
        if self.keep(request, out) && is_new {
            self.ask_again(key);
        }
    }

    /// Lets a publish wait until its strand is sealed no more, or refuses it because too much
    /// waits. Whether it was taken.
    pub(super) fn keep(&mut self, request: PublishRequest, out: &mut Vec<Output>) -> bool {
        let (key, bytes) = (request.key(), request.bytes());
        let of_key = self.held.get(&key).map_or(0, VecDeque::len);
        if of_key >= KEY_HELD_REQUESTS_MAX
            || self.held_requests >= SHARD_HELD_REQUESTS_MAX
            || self.held_bytes + bytes > SHARD_HELD_BYTES_MAX
        {
            request.refuse(Refused::Overloaded, out);
            return false;
        }
        self.held_requests += 1;
        self.held_bytes += bytes;
        self.held.entry(key).or_default().push_back(request);
        true
    }

    /// Takes the publishes of a key, in order: its pin is known.
    pub(super) fn take(&mut self, key: &StrandKey) -> VecDeque<PublishRequest> {
        let taken = self.held.remove(key).unwrap_or_default();
        for request in &taken {
            self.forget(request);
        }
        taken
    }

    /// The key must be asked for again at once.
    pub(super) fn ask_again(&mut self, key: StrandKey) {
        let registry = self.registries.of(key.strand);
        self.wanted.entry(registry).or_default().insert(key);
    }

    /// A question had no answer: its keys are asked for again after a while.
    pub(super) fn unanswered(&mut self, now: Timestamp, keys: Vec<StrandKey>) {
        let at = now.plus(ASK_AGAIN_AFTER);
        self.unanswered
            .extend(keys.into_iter().map(|key| (at, key)));
    }

    /// When there is something to do though nothing happens.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.unanswered.front().map(|(at, _)| *at)
    }

    /// Asks for the keys whose turn it is.
    pub(super) fn ask(&mut self, now: Timestamp, questions: &mut Questions, out: &mut Vec<Output>) {
        while let Some((at, key)) = self.unanswered.front().copied()
            && at <= now
        {
            self.unanswered.pop_front();
            self.refuse_late(now, &key, out);
            if self.holds(&key) {
                self.ask_again(key);
            }
        }
        for (registry, wanted) in &mut self.wanted {
            while !wanted.is_empty()
                && questions.open_to(*registry, Asked::is_claim) < QUESTIONS_MAX
            {
                let strands = first_of(wanted);
                let shard = self.shard;
                questions.claim(*registry, Claim { shard, strands }, out);
            }
        }
        self.wanted.retain(|_, wanted| !wanted.is_empty());
    }

    /// Refuses the publishes of a key that nobody waits for any more.
    pub(super) fn refuse_late(&mut self, now: Timestamp, key: &StrandKey, out: &mut Vec<Output>) {
        let (late, waiting): (VecDeque<_>, VecDeque<_>) = self
            .held
            .remove(key)
            .into_iter()
            .flatten()
            .partition(|request| request.is_late(now));
        for request in &late {
            self.forget(request);
            request.refuse(Refused::DeadlinePassed, out);
        }
        if !waiting.is_empty() {
            self.held.insert(*key, waiting);
        }
    }

    fn forget(&mut self, request: &PublishRequest) {
        self.held_requests -= 1;
        self.held_bytes -= request.bytes();
    }
}

/// As many keys as fit into one question.
fn first_of(wanted: &mut BTreeSet<StrandKey>) -> Vec<StrandKey> {
    let mut first = Vec::new();
    while first.len() < REGISTRY_KEYS_MAX
        && let Some(key) = wanted.pop_first()
    {
        first.push(key);
    }
    first
}
