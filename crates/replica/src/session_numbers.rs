//! How the sessions of a node are numbered, over all lives of its process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Boot;

/// Gives out the numbers of sessions. They begin with the number of the node's present life, and
/// are below that of the next one: whoever hears of that knows which sessions have ended. A life
/// would have to open a session each nanosecond to break this. Clones are the same.
#[derive(Clone, Debug)]
pub struct SessionNumbers(Arc<AtomicU64>);

impl SessionNumbers {
    pub(crate) fn new(life: Boot) -> Self {
        SessionNumbers(Arc::new(AtomicU64::new(life.0)))
    }

    /// The present life, before its first session.
    pub(crate) fn life(&self) -> Boot {
        Boot(self.0.load(Ordering::Relaxed))
    }

    /// A number that no session of this node has had.
    #[must_use]
    pub fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The life has another number, which is known before it opens its first session.
    pub(crate) fn begin_at(&self, life: Boot) {
        self.0.fetch_max(life.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_belong_to_their_life() {
        let numbers = SessionNumbers::new(Boot(7));
        assert_eq!((numbers.take(), numbers.take()), (7, 8));
        numbers.begin_at(Boot(100));
        assert_eq!(numbers.take(), 100);
        numbers.begin_at(Boot(50));
        assert_eq!(numbers.take(), 101, "a number is never given out again");
    }
}
