//! How long a failed message waits.

use std::time::Duration;

use crate::subscription::RetryPolicy;

/// The wait after failure number `failures`: the minimum, doubled with each further one, and at
/// most the maximum.
pub(super) fn wait(policy: RetryPolicy, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    policy
        .minimum
        .saturating_mul(1 << doublings)
        .min(policy.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_maximum() {
        let policy = RetryPolicy {
            minimum: Duration::from_secs(10),
            maximum: Duration::from_secs(60),
        };
        let waits = [1, 2, 3, 4, 100].map(|failures| wait(policy, failures).as_secs());
        assert_eq!(waits, [10, 20, 40, 60, 60]);
    }

    #[test]
    fn a_maximum_below_the_minimum_wins() {
        let policy = RetryPolicy {
            minimum: Duration::ZERO,
            maximum: Duration::ZERO,
        };
        assert_eq!(wait(policy, 9), Duration::ZERO);
    }
}
