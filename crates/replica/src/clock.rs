//! The only place that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use tokio::time::Instant;

/// Two kinds of time: wall time stamps what is stored, monotonic time runs leases and timeouts.
/// The two are never compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The zero of monotonic time.
    origin: Instant,
    wall: Wall,
}

#[derive(Clone, Copy, Debug)]
enum Wall {
    /// The machine's clock.
    Machine,
    /// So late at the origin, and from there in step with monotonic time.
    From(Timestamp),
}

impl Clock {
    /// The machine's clocks. Must be called within a tokio runtime.
    #[must_use]
    pub fn machine() -> Self {
        Clock {
            origin: Instant::now(),
            wall: Wall::Machine,
        }
    }

    /// A clock whose wall shows `now` at this moment and then goes with tokio's time, which a
    /// simulation controls.
    #[must_use]
    pub fn starting_at(now: Timestamp) -> Self {
        Clock {
            origin: Instant::now(),
            wall: Wall::From(now),
        }
    }

    /// Wall time. It may jump, and go back.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self.wall {
            Wall::Machine => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                // A machine whose clock stands before 1970 has no idea of the time.
                Timestamp::ZERO.plus(now.unwrap_or(Duration::ZERO))
            }
            Wall::From(start) => start.plus(self.origin.elapsed()),
        }
    }

    /// Monotonic time.
    #[must_use]
    pub fn monotonic(&self) -> Timestamp {
        self.moment(Instant::now())
    }

    /// The monotonic time of an instant; zero for one before the clock was made.
    #[must_use]
    pub fn moment(&self, instant: Instant) -> Timestamp {
        Timestamp::ZERO.plus(instant.saturating_duration_since(self.origin))
    }

    /// The instant of a monotonic time.
    #[must_use]
    pub fn instant(&self, moment: Timestamp) -> Instant {
        self.origin + moment.since(Timestamp::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_wall_goes_with_tokio_time() {
        let clock = Clock::starting_at(Timestamp(1_000));
        let before = clock.monotonic();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.wall(), Timestamp(1_000).plus(Duration::from_secs(3)));
        assert_eq!(clock.monotonic().since(before), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn instants_and_moments_are_one_scale() {
        let clock = Clock::machine();
        let later = Instant::now() + Duration::from_millis(250);
        assert_eq!(clock.instant(clock.moment(later)), later);
    }
}
