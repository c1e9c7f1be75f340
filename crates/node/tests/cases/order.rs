//! What came of each key so far: numbers that count up from zero.

use std::collections::HashMap;

use proto::pubsub::ReceivedMessage;

use crate::client::text;

/// Each key's next number.
#[derive(Default)]
pub(crate) struct Order {
    next: HashMap<String, usize>,
}

impl Order {
    /// Takes deliveries, each of which must have its key's next number.
    pub(crate) fn receive(&mut self, received: &[ReceivedMessage]) {
        for one in received {
            let key = &one.message.as_ref().expect("it has a message").ordering_key;
            let next = self.next.entry(key.clone()).or_default();
            assert_eq!(text(one), next.to_string(), "of {key}");
            *next += 1;
        }
    }

    /// How many came of a key.
    pub(crate) fn count(&self, key: &str) -> usize {
        self.next.get(key).copied().unwrap_or_default()
    }
}
