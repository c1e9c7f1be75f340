//! Keys that have moved while a session is open: what their former owner still sends comes too late.
//!
//! A key has moved where a shard delivers a message whose id another shard gave out. From then on
//! only deliveries of the highest epoch that was seen of the key go to the client: those of the
//! former owner may have been on their way when the new one began.

use std::collections::{BTreeMap, VecDeque};

use engine::dispatch::Delivered;
use model::{Epoch, KeyHash, ShardNumber};

/// Keys that are remembered. What a former owner has sent arrives within moments.
const KEYS_MAX: usize = 1_024;

/// The keys that were seen to have moved lately.
#[derive(Debug, Default)]
pub(super) struct Moved {
    epochs: BTreeMap<KeyHash, Epoch>,
    /// In the order in which they were first seen.
    order: VecDeque<KeyHash>,
}

impl Moved {
    /// Leaves out what came too late. Nothing has to be said of it: its leases end with the
    /// strand at the former owner, and then its credit comes back.
    pub(super) fn in_time(
        &mut self,
        shard: ShardNumber,
        mut deliveries: Vec<Delivered>,
    ) -> Vec<Delivered> {
        for delivery in &deliveries {
            let (message, epoch) = (delivery.ack.message, delivery.ack.generation.epoch);
            if message.shard() != shard {
                self.learn(delivery.ack.key, epoch);
            }
        }
        deliveries.retain(|delivery| {
            let newest = self.epochs.get(&delivery.ack.key);
            newest.is_none_or(|newest| delivery.ack.generation.epoch >= *newest)
        });
        deliveries
    }

    fn learn(&mut self, key: KeyHash, epoch: Epoch) {
        if let Some(known) = self.epochs.get_mut(&key) {
            *known = epoch.max(*known);
            return;
        }
        if self.order.len() >= KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.epochs.remove(&oldest);
        }
        self.order.push_back(key);
        self.epochs.insert(key, epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::{AckId, Generation, Incarnation, MessageId, Term, Timestamp};

    const WEST: ShardNumber = ShardNumber(1);
    const EAST: ShardNumber = ShardNumber(2);

    fn delivery(key: u8, epoch: u64, counter: u64, of: ShardNumber) -> Delivered {
        let generation = Generation {
            epoch: Epoch(epoch),
            term: Term(1),
            counter: 1,
        };
        Delivered {
            ack: AckId {
                subscription: Incarnation(1),
                key: KeyHash([key; 16]),
                message: MessageId::new(counter, of),
                generation,
            },
            published: Timestamp(1),
            message: Bytes::new(),
            delivery_attempt: 0,
        }
    }

    #[test]
    fn what_the_former_owner_of_a_key_still_sends_is_left_out() {
        let mut moved = Moved::default();
        let ours = vec![delivery(1, 1, 1, WEST), delivery(1, 1, 2, WEST)];
        assert_eq!(moved.in_time(WEST, ours).len(), 2);
        assert_eq!(moved.in_time(EAST, vec![delivery(1, 2, 1, WEST)]).len(), 1);
        let late = vec![delivery(1, 1, 3, WEST), delivery(2, 1, 4, WEST)];
        let kept = moved.in_time(WEST, late);
        assert_eq!(kept, [delivery(2, 1, 4, WEST)], "P2, and other keys go on");
        let back = vec![delivery(1, 3, 2, WEST)];
        assert_eq!(moved.in_time(WEST, back).len(), 1, "it has moved back");
    }

    #[test]
    fn only_so_many_keys_are_remembered() {
        let mut moved = Moved::default();
        for number in 0..2 * KEYS_MAX {
            let mut delivery = delivery(1, 2, 1, WEST);
            delivery.ack.key = KeyHash((number as u128).to_be_bytes());
            moved.in_time(EAST, vec![delivery]);
        }
        assert_eq!(
            (moved.epochs.len(), moved.order.len()),
            (KEYS_MAX, KEYS_MAX)
        );
    }
}
