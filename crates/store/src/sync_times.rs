//! How long the disk takes to make a batch durable: a count for each span of time, of which the
//! writer keeps one, and whoever watches the node takes a copy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of the spans, in microseconds, from a fast disk to one that is broken. Longer
/// ones are counted in the total only.
const BOUNDS_MICROS: [u64; SPANS] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
];
/// How many spans there are.
const SPANS: usize = 12;

/// What was measured since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncTimes {
    /// For each span, its upper end, and how many batches took no longer than that.
    pub within: [(Duration, u64); SPANS],
    /// All batches.
    pub count: u64,
    /// How long they took together.
    pub sum: Duration,
}

/// Counts batches. Only the writer adds.
#[derive(Debug, Default)]
pub(crate) struct SyncClock {
    spans: [AtomicU64; SPANS],
    count: AtomicU64,
    micros: AtomicU64,
}

impl SyncClock {
    /// A batch took so long.
    pub(crate) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let span = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        if let Some(span) = self.spans.get(span) {
            span.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// What was counted. A batch that ends meanwhile may be in one number and not in another.
    pub(crate) fn times(&self) -> SyncTimes {
        let mut below = 0;
        let within = std::array::from_fn(|span| {
            below += self.spans[span].load(Ordering::Relaxed);
            (Duration::from_micros(BOUNDS_MICROS[span]), below)
        });
        SyncTimes {
            within,
            count: self.count.load(Ordering::Relaxed).max(below),
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_counts_in_every_span_that_is_long_enough() {
        let clock = SyncClock::default();
        for micros in [250, 251, 5_000_000, 6_000_000] {
            clock.add(Duration::from_micros(micros));
        }
        let times = clock.times();
        let counts = times.within.map(|(_, count)| count);
        assert_eq!((counts[0], counts[1], counts[SPANS - 1]), (1, 2, 3));
        assert_eq!(times.count, 4, "the longest is in the total only");
        assert_eq!(times.sum, Duration::from_micros(11_000_501));
    }
}
