//! Recent payloads in memory, so that live delivery does not read the disk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use engine::table::run::PayloadAt;
use model::GroupId;
use model::run::RunPayload;

/// The newest payloads of all groups, up to a number of bytes; the oldest goes first.
pub(crate) struct PayloadCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

type Key = (GroupId, PayloadAt);

#[derive(Default)]
struct Inner {
    payloads: BTreeMap<Key, RunPayload>,
    /// In the order of their coming. Keys of payloads that were removed stay until their turn.
    order: VecDeque<Key>,
    bytes: usize,
}

impl PayloadCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        PayloadCache {
            bytes_max,
            inner: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, group: GroupId, at: PayloadAt) -> Option<RunPayload> {
        self.inner().payloads.get(&(group, at)).cloned()
    }

    pub(crate) fn insert(&self, group: GroupId, at: PayloadAt, payload: RunPayload) {
        let mut inner = self.inner();
        inner.bytes += payload.as_bytes().len();
        match inner.payloads.insert((group, at), payload) {
            Some(old) => inner.bytes -= old.as_bytes().len(),
            None => inner.order.push_back((group, at)),
        }
        while inner.bytes > self.bytes_max || inner.order.len() > 2 * inner.payloads.len() + 64 {
            let Some((group, at)) = inner.order.pop_front() else {
                return;
            };
            inner.remove(group, at);
        }
    }

    pub(crate) fn remove(&self, group: GroupId, at: PayloadAt) {
        self.inner().remove(group, at);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of the cache panics")
    }
}

impl Inner {
    fn remove(&mut self, group: GroupId, at: PayloadAt) {
        if let Some(payload) = self.payloads.remove(&(group, at)) {
            self.bytes -= payload.as_bytes().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn at(index: u64) -> PayloadAt {
        PayloadAt {
            term: 1,
            index,
            number: 0,
        }
    }

    fn payload() -> RunPayload {
        RunPayload::new(&[Bytes::from_static(&[7; 92])])
    }

    fn cached(cache: &PayloadCache, indexes: std::ops::Range<u64>) -> Vec<u64> {
        let kept = |index: &u64| cache.get(GroupId::Control, at(*index)).is_some();
        indexes.filter(kept).collect()
    }

    #[test]
    fn the_oldest_goes_first() {
        let cache = PayloadCache::new(300);
        for index in 0..5 {
            cache.insert(GroupId::Control, at(index), payload());
        }
        assert_eq!(cached(&cache, 0..5), [2, 3, 4]);
    }

    #[test]
    fn a_removed_payload_makes_room() {
        let cache = PayloadCache::new(300);
        for index in 0..3 {
            cache.insert(GroupId::Control, at(index), payload());
        }
        cache.remove(GroupId::Control, at(1));
        cache.insert(GroupId::Control, at(3), payload());
        assert_eq!(cached(&cache, 0..5), [0, 2, 3]);
    }

    #[test]
    fn what_is_removed_at_once_leaves_nothing_behind() {
        let cache = PayloadCache::new(1_000);
        for index in 0..1_000 {
            cache.insert(GroupId::Control, at(index), payload());
            cache.remove(GroupId::Control, at(index));
        }
        assert!(cache.inner().order.len() < 100);
    }
}
