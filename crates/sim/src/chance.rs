//! All chance of a simulation: one stream of numbers from one seed.

use std::time::Duration;

/// Splitmix64: small, good enough, and the same on every machine for ever.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A duration in `[from, to)`.
    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let nanos = (to - from).as_nanos() as u64;
        from + Duration::from_nanos(self.below(nanos.max(1)))
    }

    /// Up to `most`, mostly much less.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        let some = self.between(Duration::ZERO, most);
        match self.below(4) {
            0 => some,
            1 | 2 => some / 10,
            _ => some / 100,
        }
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
