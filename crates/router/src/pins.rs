//! Where keys were found to be pinned. Only a cache: the shards themselves refuse what is not
//! theirs, and say whose it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::limits::PIN_CACHE_MAX;
use model::{Epoch, KeyHash, ShardNumber};

/// The keys that live elsewhere than where a new key would go; those used lately are kept.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Generations>);

/// What was used lately, and what was used before. Full, the younger one becomes the older one,
/// whose keys are forgotten unless they are used again: so the cost of a look-up does not depend
/// on how many there are.
#[derive(Debug, Default)]
struct Generations {
    young: BTreeMap<KeyHash, Pin>,
    old: BTreeMap<KeyHash, Pin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pin {
    shard: ShardNumber,
    epoch: Epoch,
}

impl Pins {
    /// Where a key is pinned, as far as it is known.
    pub(crate) fn find(&self, key: KeyHash) -> Option<ShardNumber> {
        let mut pins = self.lock();
        if let Some(pin) = pins.young.get(&key) {
            return Some(pin.shard);
        }
        let pin = pins.old.remove(&key)?;
        pins.insert(key, pin);
        Some(pin.shard)
    }

    /// A shard said where a key is pinned. What another said of a higher epoch stays.
    pub(crate) fn learn(&self, key: KeyHash, shard: ShardNumber, epoch: Epoch) {
        let mut pins = self.lock();
        let old = pins.old.remove(&key);
        let known = pins.young.get(&key).copied().or(old);
        let newer = known.filter(|known| known.epoch > epoch);
        pins.insert(key, newer.unwrap_or(Pin { shard, epoch }));
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A cache that lost half a change is still a cache.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn insert(&mut self, key: KeyHash, pin: Pin) {
        if self.young.len() >= PIN_CACHE_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, pin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> KeyHash {
        KeyHash((number as u128).to_be_bytes())
    }

    #[test]
    fn the_highest_epoch_counts() {
        let pins = Pins::default();
        assert_eq!(pins.find(key(1)), None);
        pins.learn(key(1), ShardNumber(3), Epoch(7));
        pins.learn(key(1), ShardNumber(4), Epoch(6));
        assert_eq!(pins.find(key(1)), Some(ShardNumber(3)));
        pins.learn(key(1), ShardNumber(4), Epoch(8));
        assert_eq!(pins.find(key(1)), Some(ShardNumber(4)));
    }

    #[test]
    fn keys_that_are_used_stay_and_the_rest_is_bounded() {
        let pins = Pins::default();
        for number in 0..3 * PIN_CACHE_MAX {
            pins.learn(key(number), ShardNumber(1), Epoch(1));
            assert_eq!(pins.find(key(0)), Some(ShardNumber(1)), "after {number}");
        }
        let kept = pins.lock();
        assert!(kept.young.len() + kept.old.len() <= PIN_CACHE_MAX);
        assert!(!kept.young.contains_key(&key(1)) && !kept.old.contains_key(&key(1)));
    }
}
