//! What of the log must stay for a replica that a checkpoint is on its way to: everything behind
//! the checkpoint. openraft does not see to that, and the replica would need another checkpoint as
//! soon as it has one, for ever.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the log stays after a checkpoint has arrived: until what is behind it is on its way.
const STAYS_FOR: Duration = Duration::from_secs(30);

/// What is held of one group's log on this node. Clones are the same.
#[derive(Clone, Default)]
pub(in crate::raft) struct Holds(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    next: u64,
    /// By number of the hold: behind which index the log must stay, and until when, if the
    /// transfer has ended.
    holds: BTreeMap<u64, (u64, Option<Instant>)>,
}

/// Holds the log for one transfer, and for some time after it.
pub(super) struct Hold {
    holds: Holds,
    number: u64,
}

impl Holds {
    /// Keeps the log behind `index`.
    pub(super) fn hold(&self, index: u64) -> Hold {
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        held.holds.insert(number, (index, None));
        Hold {
            holds: self.clone(),
            number,
        }
    }

    /// Through which index the log may be cut, as far as transfers are concerned.
    pub(in crate::raft) fn lowest(&self) -> Option<u64> {
        let now = Instant::now();
        let mut held = self.held();
        held.holds
            .retain(|_, (_, until)| until.is_none_or(|until| now < until));
        held.holds.values().map(|(index, _)| *index).min()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Every change is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let until = Instant::now() + STAYS_FOR;
        if let Some((_, end)) = self.holds.held().holds.get_mut(&self.number) {
            *end = Some(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_log_stays_for_the_earliest_transfer_and_a_while_longer() {
        let holds = Holds::default();
        assert_eq!(holds.lowest(), None);
        let first = holds.hold(5);
        let second = holds.hold(9);
        tokio::time::advance(2 * STAYS_FOR).await;
        assert_eq!(holds.lowest(), Some(5));
        drop(first);
        assert_eq!(holds.lowest(), Some(5));
        tokio::time::advance(STAYS_FOR).await;
        assert_eq!(holds.lowest(), Some(9));
        drop(second);
        tokio::time::advance(STAYS_FOR).await;
        assert_eq!(holds.lowest(), None);
    }
}
