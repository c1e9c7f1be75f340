//! Wall time, as an argument: nothing here reads a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment in nanoseconds since 1970 (UTC).
///
/// In the dispatcher it is the leader's monotonic time instead, whose zero means nothing: the two
/// are never mixed, since leases and timeouts never compare wall clocks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl From<u64> for Timestamp {
    fn from(nanos: u64) -> Self {
        Timestamp(nanos)
    }
}

impl Timestamp {
    /// The first moment.
    pub const ZERO: Timestamp = Timestamp(0);

    /// Whole seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> i64 {
        (self.0 / 1_000_000_000) as i64
    }

    /// Nanoseconds within the second.
    #[must_use]
    pub fn nanos(self) -> i32 {
        (self.0 % 1_000_000_000) as i32
    }

    /// This moment and `duration` more; the last moment at most.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Timestamp {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(nanos))
    }

    /// The time from `earlier` until this moment; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
