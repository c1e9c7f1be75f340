//! Counts and latencies of one direction, publishing or consuming.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The longest latency that is told apart: an hour, in microseconds.
const LATENCY_MAX: u64 = 3_600_000_000;
/// Latencies are kept to three digits.
const DIGITS: u8 = 3;

/// The meter of one direction.
pub(crate) struct Meter {
    total: AtomicU64,
    window: Mutex<Window>,
}

struct Window {
    /// What happens before this is not measured.
    from: Instant,
    messages: u64,
    last: Instant,
    latencies: Histogram<u64>,
}

/// What a meter measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Messages measured.
    pub(crate) messages: u64,
    /// From the beginning of the measurement to the last message.
    pub(crate) elapsed: Duration,
    /// p50, p90, p99, p99.9 and the maximum.
    pub(crate) latencies: [Duration; 5],
}

impl Meter {
    /// Measures from some time on.
    pub(crate) fn new(from: Instant) -> Self {
        let latencies = Histogram::new_with_bounds(1, LATENCY_MAX, DIGITS)
            .expect("the bounds are constants that fit");
        let window = Window {
            from,
            messages: 0,
            last: from,
            latencies,
        };
        Meter {
            total: AtomicU64::new(0),
            window: Mutex::new(window),
        }
    }

    /// Moves the beginning of the measurement; nothing was measured yet.
    pub(crate) fn begin(&self, from: Instant) {
        let mut window = self.window();
        assert_eq!(window.messages, 0, "a measurement begins once");
        window.from = from;
        window.last = from;
    }

    /// So many messages were answered, or arrived, at `now`. Each of `intended` is a time at which
    /// some of them should have been sent, and how many.
    pub(crate) fn record(
        &self,
        now: Instant,
        messages: u64,
        intended: impl Iterator<Item = (Instant, u64)>,
    ) {
        self.total.fetch_add(messages, Ordering::Relaxed);
        let mut window = self.window();
        let from = window.from;
        if now < from {
            return;
        }
        window.messages += messages;
        window.last = window.last.max(now);
        // A message of the warm-up belongs to the throughput, but not to the latencies.
        for (intended, count) in intended.filter(|(intended, _)| *intended >= from) {
            let latency = now.saturating_duration_since(intended).as_micros();
            let latency = u64::try_from(latency)
                .unwrap_or(u64::MAX)
                .clamp(1, LATENCY_MAX);
            window
                .latencies
                .record_n(latency, count)
                .expect("clamped into the bounds");
        }
    }

    /// Messages since the beginning of the run.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// What was measured.
    pub(crate) fn reading(&self) -> Reading {
        let window = self.window();
        let at = |quantile| Duration::from_micros(window.latencies.value_at_quantile(quantile));
        Reading {
            messages: window.messages,
            elapsed: window.last - window.from,
            latencies: [0.5, 0.9, 0.99, 0.999, 1.0].map(at),
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// Messages a second.
    pub(crate) fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.messages as f64 / seconds
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_is_not_measured() {
        let start = Instant::now();
        let from = start + Duration::from_secs(1);
        let meter = Meter::new(from);
        meter.record(start, 5, [(start, 5)].into_iter());
        let now = from + Duration::from_millis(500);
        // Sent before, answered within: counted without its latency.
        meter.record(now, 10, [(start, 10)].into_iter());
        meter.record(now, 40, [(now - Duration::from_millis(20), 40)].into_iter());
        let reading = meter.reading();
        assert_eq!((meter.total(), reading.messages), (55, 50));
        assert_eq!(reading.rate().round() as u64, 100);
        let within = |latency: Duration| (19.9..20.1).contains(&(latency.as_secs_f64() * 1e3));
        assert!(
            reading.latencies.iter().copied().all(within),
            "{:?}",
            reading.latencies
        );
    }
}
