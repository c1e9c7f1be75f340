//! The only place that reads a clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use rustix::time::{DynamicClockId, clock_gettime_dynamic};
use tokio::time::Instant;

/// Three kinds of time: wall time stamps what is stored, monotonic time runs timeouts and ack
/// leases, and steady time runs what one node grants another, since it goes on while a machine is
/// suspended. No two of them are ever compared.
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
    /// So late at the origin, from there in step with monotonic time, and so many nanoseconds
    /// ahead of that.
    From(Timestamp, &'static AtomicI64),
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
        static STRAIGHT: AtomicI64 = AtomicI64::new(0);
        Clock::jumping(now, &STRAIGHT)
    }

    /// The same, but `ahead` nanoseconds ahead, or behind where it is negative. Whoever changes it
    /// makes the wall jump.
    #[must_use]
    pub fn jumping(now: Timestamp, ahead: &'static AtomicI64) -> Self {
        Clock {
            origin: Instant::now(),
            wall: Wall::From(now, ahead),
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
            Wall::From(start, ahead) => {
                let Timestamp(straight) = start.plus(self.origin.elapsed());
                Timestamp(straight.saturating_add_signed(ahead.load(Ordering::Relaxed)))
            }
        }
    }

    /// Monotonic time.
    #[must_use]
    pub fn monotonic(&self) -> Timestamp {
        self.moment(Instant::now())
    }

    /// Monotonic time that also goes on while the machine is suspended: since it was started, or,
    /// in a simulation, since this clock was made.
    #[must_use]
    pub fn steady(&self) -> Timestamp {
        match self.wall {
            Wall::Machine => {
                let now = clock_gettime_dynamic(DynamicClockId::Boottime);
                let now = now.expect("Linux has had this clock since 2.6.39");
                let elapsed = Duration::try_from(now);
                Timestamp::ZERO.plus(elapsed.expect("a machine runs since it was started"))
            }
            Wall::From(..) => self.monotonic(),
        }
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
    async fn steady_time_is_the_machines_and_not_the_runtimes() {
        let clock = Clock::machine();
        let before = clock.steady();
        // What a suspended machine does to its monotonic clock, this does the other way round.
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let passed = clock.steady().since(before);
        assert!(passed < Duration::from_secs(60), "{passed:?} have passed");
        assert!(clock.steady() >= before);
    }

    #[tokio::test(start_paused = true)]
    async fn instants_and_moments_are_one_scale() {
        let clock = Clock::machine();
        let later = Instant::now() + Duration::from_millis(250);
        assert_eq!(clock.instant(clock.moment(later)), later);
    }
}
