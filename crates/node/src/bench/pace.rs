//! When requests are sent: each as soon as an answer frees its place, or by a timetable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The timetable's thread looks this often whether it should end.
const NAP_MAX: Duration = Duration::from_millis(100);

/// Hands out the turns of one load.
pub(crate) struct Pace {
    start: Instant,
    /// The time between two requests of an open loop.
    interval: Option<Duration>,
    requests_max: u64,
    /// Turns handed out.
    taken: AtomicU64,
    /// Turns of an open loop that have come and are not taken.
    due: Semaphore,
    stopped: AtomicBool,
}

/// The right to send one request.
pub(crate) struct Turn {
    /// Its number, from 0.
    pub(crate) request: u64,
    /// When it should be sent, by the timetable of an open loop.
    pub(crate) intended: Option<Instant>,
}

impl Pace {
    /// A closed loop, or an open one with a request each `interval`; up to `requests_max` requests.
    pub(crate) fn start(
        start: Instant,
        interval: Option<Duration>,
        requests_max: u64,
    ) -> Arc<Self> {
        let pace = Arc::new(Pace {
            start,
            interval,
            requests_max,
            taken: AtomicU64::new(0),
            due: Semaphore::new(0),
            stopped: AtomicBool::new(false),
        });
        if let Some(interval) = interval {
            let timetable = Arc::clone(&pace);
            // A thread of its own: the runtime's timers are good for milliseconds only.
            thread::spawn(move || timetable.release(interval));
        }
        pace
    }

    /// Waits for the next turn; none comes when the load has ended.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        if self.interval.is_some() {
            self.due.acquire().await.ok()?.forget();
        }
        let request = self.taken.fetch_add(1, Ordering::Relaxed);
        if request >= self.requests_max || self.is_stopped() {
            return None;
        }
        let intended = self
            .interval
            .map(|interval| self.start + scaled(interval, request));
        Some(Turn { request, intended })
    }

    /// Ends the load.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.due.close();
    }

    /// Whether the load was ended before all its requests were sent.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Requests of an open loop whose time had come, but which had not been sent at the end: no
    /// place was free for them. Their latency is unknown, and long.
    pub(crate) fn unsent(&self) -> u64 {
        self.due.available_permits() as u64
    }

    /// Runs the timetable until the load ends.
    fn release(&self, interval: Duration) {
        let mut released = 0;
        while released < self.requests_max && !self.is_stopped() {
            let wait = (self.start + scaled(interval, released)) - Instant::now();
            if !wait.is_zero() {
                thread::sleep(wait.min(NAP_MAX));
                continue;
            }
            self.due.add_permits(1);
            released += 1;
        }
        if released == self.requests_max {
            self.wait_until_taken();
        }
    }

    /// All have been released: those who wait for another one need not.
    fn wait_until_taken(&self) {
        while self.taken.load(Ordering::Relaxed) < self.requests_max {
            if self.is_stopped() {
                return;
            }
            thread::sleep(NAP_MAX);
        }
        self.due.close();
    }
}

/// `interval * factor`, which is longer than [`Duration`]'s own product can be.
fn scaled(interval: Duration, factor: u64) -> Duration {
    Duration::from_secs_f64(interval.as_secs_f64() * factor as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_loop_ends_after_its_requests() {
        let pace = Pace::start(Instant::now(), None, 2);
        assert_eq!(pace.turn().await.unwrap().request, 0);
        assert_eq!(pace.turn().await.unwrap().request, 1);
        assert!(pace.turn().await.is_none());
    }

    #[tokio::test]
    async fn an_open_loop_keeps_its_timetable_when_nobody_takes_turns() {
        let interval = Duration::from_millis(1);
        let pace = Pace::start(Instant::now(), Some(interval), 50);
        let first = pace.turn().await.unwrap();
        // sleep: a load that stalls is the case. Each later turn is dated as if it had not stalled.
        thread::sleep(Duration::from_millis(20));
        for request in 1..50 {
            let turn = pace.turn().await.unwrap();
            assert_eq!(turn.request, request);
            let late = turn.intended.unwrap() - first.intended.unwrap();
            assert_eq!(late, scaled(interval, request));
        }
        assert!(pace.turn().await.is_none());
    }

    #[tokio::test]
    async fn stopping_frees_those_who_wait() {
        let pace = Pace::start(Instant::now(), Some(Duration::from_secs(3_600)), u64::MAX);
        assert!(pace.turn().await.is_some());
        pace.stop();
        assert!(pace.turn().await.is_none());
    }
}
