//! The credit of a session: how many messages and bytes may be outstanding over all shards.
//!
//! Credit lives here, in the session, and nowhere else: a shard with something to deliver offers,
//! the session grants per offer. So the client's limit is strict however many shards deliver, on
//! however many nodes.

use std::collections::{BTreeMap, VecDeque};

use engine::dispatch::Credit;
use model::ShardNumber;
use model::limits::PUBLISH_REQUEST_BYTES_MAX;

/// No stored message is larger: it came in one publish request.
const MESSAGE_BYTES_MAX: u64 = PUBLISH_REQUEST_BYTES_MAX as u64;

/// What a session may have outstanding, what it has, and who waits for more.
#[derive(Debug)]
pub struct Ledger {
    limit: Credit,
    /// What each shard has of the limit.
    shards: BTreeMap<ShardNumber, Share>,
    /// A grant whose last message may cross the byte limit: nobody else gets one meanwhile.
    last_of_limit: bool,
    offers: VecDeque<(ShardNumber, Credit)>,
}

/// What one shard has of a session's limit.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Delivered, and neither settled nor expired.
    outstanding: Credit,
    /// Granted and not used yet.
    granted: Option<Credit>,
}

impl Ledger {
    /// A ledger with nothing outstanding.
    #[must_use]
    pub fn new(limit: Credit) -> Self {
        Ledger {
            limit,
            shards: BTreeMap::new(),
            last_of_limit: false,
            offers: VecDeque::new(),
        }
    }

    /// A shard has something to deliver. It waits for its turn in [`Ledger::grant`].
    pub fn offer(&mut self, shard: ShardNumber, waiting: Credit) {
        self.offers.retain(|(offering, _)| *offering != shard);
        self.offers.push_back((shard, waiting));
    }

    /// The next grant that the limit allows, to the shard that has waited longest.
    pub fn grant(&mut self) -> Option<(ShardNumber, Credit)> {
        let free = self.free()?;
        let (shard, waiting) = self.offers.pop_front()?;
        // Until the limit is near, a grant covers all that was offered. Near it, the shard sends
        // until it reaches the rest, and one message may cross: then it must be the only one.
        let is_last = free.bytes < waiting.bytes.saturating_add(MESSAGE_BYTES_MAX);
        if is_last && self.shards.values().any(|share| share.granted.is_some()) {
            self.offers.push_front((shard, waiting));
            return None;
        }
        self.last_of_limit = is_last;
        let credit = Credit {
            messages: waiting.messages.min(free.messages),
            bytes: if is_last { free.bytes } else { waiting.bytes },
        };
        let before = self
            .shards
            .entry(shard)
            .or_default()
            .granted
            .replace(credit);
        assert!(
            before.is_none(),
            "shard {shard} made an offer while it had a grant"
        );
        Some((shard, credit))
    }

    /// A shard has used its grant: it sent `sent` and gave the rest back.
    pub fn deliver(&mut self, shard: ShardNumber, sent: Credit) {
        let share = self.shards.entry(shard).or_default();
        let granted = share
            .granted
            .take()
            .expect("a shard delivers only what was granted to it");
        assert!(
            sent.messages <= granted.messages,
            "{sent:?} were sent, {granted:?} granted"
        );
        share.outstanding.messages += sent.messages;
        share.outstanding.bytes += sent.bytes;
        self.last_of_limit = false;
    }

    /// Deliveries of a shard are settled, or their leases are over.
    ///
    /// # Panics
    /// When more comes back than was delivered: each delivery gives its credit back once.
    pub fn release(&mut self, shard: ShardNumber, credit: Credit) {
        let outstanding = &mut self.shards.entry(shard).or_default().outstanding;
        assert!(
            outstanding.messages >= credit.messages && outstanding.bytes >= credit.bytes,
            "{credit:?} comes back out of {outstanding:?}"
        );
        outstanding.messages -= credit.messages;
        outstanding.bytes -= credit.bytes;
    }

    /// The session is over in this shard, and will be opened again. What was offered or granted is
    /// void. What was delivered may be with the client still, until the shard says.
    pub fn close(&mut self, shard: ShardNumber) {
        self.offers.retain(|(offering, _)| *offering != shard);
        if model::sabotage!("ended-shard-keeps-credit") {
            return;
        }
        if let Some(share) = self.shards.get_mut(&shard)
            && share.granted.take().is_some()
        {
            self.last_of_limit = false;
        }
    }

    /// The session is open in this shard, which counts so much of it as outstanding.
    pub fn open(&mut self, shard: ShardNumber, outstanding: Credit) {
        self.shards.entry(shard).or_default().outstanding = outstanding;
    }

    /// What is free, or `None` when nothing may be sent.
    fn free(&self) -> Option<Credit> {
        let mut messages = self.limit.messages;
        let mut bytes = self.limit.bytes;
        for share in self.shards.values() {
            if model::sabotage!("limit-for-each-shard") {
                continue;
            }
            for used in [share.outstanding, share.granted.unwrap_or_default()] {
                messages = messages.saturating_sub(used.messages);
                bytes = bytes.saturating_sub(used.bytes);
            }
        }
        (messages > 0 && bytes > 0 && !self.last_of_limit).then_some(Credit { messages, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ShardNumber = ShardNumber(1);
    const B: ShardNumber = ShardNumber(2);

    fn credit(messages: u32, bytes: u64) -> Credit {
        Credit { messages, bytes }
    }

    #[test]
    fn grants_of_all_shards_together_stay_within_the_messages() {
        let mut ledger = Ledger::new(credit(5, 1 << 30));
        ledger.offer(A, credit(3, 30));
        ledger.offer(B, credit(9, 90));
        assert_eq!(ledger.grant(), Some((A, credit(3, 30))));
        assert_eq!(ledger.grant(), Some((B, credit(2, 90))));
        ledger.offer(A, credit(1, 10));
        assert_eq!(ledger.grant(), None);
        ledger.deliver(A, credit(3, 30));
        assert_eq!(ledger.grant(), None, "three are outstanding, two granted");
        ledger.release(A, credit(1, 10));
        assert_eq!(ledger.grant(), Some((A, credit(1, 10))));
    }

    #[test]
    fn near_the_byte_limit_one_shard_at_a_time_gets_the_rest() {
        let mut ledger = Ledger::new(credit(100, 1_000_000));
        ledger.offer(A, credit(20, 8_000_000));
        ledger.offer(B, credit(20, 8_000_000));
        assert_eq!(ledger.grant(), Some((A, credit(20, 1_000_000))));
        assert_eq!(ledger.grant(), None);
        ledger.deliver(A, credit(3, 1_200_000));
        assert_eq!(ledger.grant(), None, "the limit is crossed");
        ledger.release(A, credit(1, 400_000));
        assert_eq!(ledger.grant(), Some((B, credit(20, 200_000))));
    }

    #[test]
    fn what_a_grant_leaves_unused_comes_back() {
        let mut ledger = Ledger::new(credit(5, 1 << 30));
        ledger.offer(A, credit(5, 50));
        assert_eq!(ledger.grant(), Some((A, credit(5, 50))));
        ledger.deliver(A, credit(0, 0));
        ledger.offer(B, credit(9, 90));
        assert_eq!(ledger.grant(), Some((B, credit(5, 90))));
        ledger.close(B);
        ledger.offer(A, credit(5, 50));
        assert_eq!(ledger.grant(), Some((A, credit(5, 50))));
    }

    #[test]
    fn what_was_delivered_stays_outstanding_until_the_next_opening_says() {
        let mut ledger = Ledger::new(credit(5, 1 << 30));
        ledger.offer(A, credit(5, 50));
        assert_eq!(ledger.grant(), Some((A, credit(5, 50))));
        ledger.deliver(A, credit(5, 50));
        ledger.close(A);
        ledger.offer(B, credit(5, 50));
        assert_eq!(ledger.grant(), None);
        ledger.open(A, credit(3, 30));
        assert_eq!(ledger.grant(), Some((B, credit(2, 50))));
        ledger.release(A, credit(3, 30));
    }

    #[test]
    #[should_panic(expected = "comes back out of")]
    fn credit_that_was_never_out_stops_the_node() {
        Ledger::new(credit(5, 50)).release(A, credit(1, 1));
    }
}
