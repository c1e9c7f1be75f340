//! The promise of order, checked from outside: after any message of a key comes the next one, or a
//! step back.

use std::sync::atomic::{AtomicU64, Ordering};

use super::payload::Stamp;

/// What was last seen of each key.
///
/// A key is delivered to one stream at a time, which hands it on only after the acks of what it has.
/// So the order in which streams report here is the order of delivery.
pub(crate) struct Order {
    /// For each key the sequence that may come at most: one more than the last.
    expected: Vec<AtomicU64>,
    gaps: AtomicU64,
}

/// A key went on without one of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The number of the key.
    pub(crate) key: u64,
    /// The sequence that should have come, at most.
    pub(crate) expected: u64,
    /// The one that came.
    pub(crate) came: u64,
}

impl Order {
    /// For keys numbered from 0.
    pub(crate) fn new(keys: usize) -> Self {
        let expected = (0..keys).map(|_| AtomicU64::new(0)).collect();
        Order {
            expected,
            gaps: AtomicU64::new(0),
        }
    }

    /// A message arrived.
    pub(crate) fn receive(&self, stamp: &Stamp) -> Option<Gap> {
        let lane = self.expected.get(usize::try_from(stamp.key).ok()?)?;
        let expected = lane.swap(stamp.sequence + 1, Ordering::Relaxed);
        if stamp.sequence <= expected {
            return None;
        }
        self.gaps.fetch_add(1, Ordering::Relaxed);
        Some(Gap {
            key: stamp.key,
            expected,
            came: stamp.sequence,
        })
    }

    /// How often a key went on without one of its messages.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(sequences: &[u64]) -> u64 {
        let order = Order::new(2);
        for &sequence in sequences {
            order.receive(&Stamp {
                number: 0,
                key: 1,
                sequence,
                intended: 0,
            });
        }
        order.gaps()
    }

    #[test]
    fn the_next_one_and_steps_back_are_in_order() {
        assert_eq!(gaps(&[0, 1, 2, 1, 2, 3, 0, 1]), 0);
    }

    #[test]
    fn a_message_left_out_is_a_gap_also_after_a_step_back() {
        assert_eq!(gaps(&[1]), 1);
        assert_eq!(gaps(&[0, 1, 2, 3, 1, 3]), 1);
    }
}
