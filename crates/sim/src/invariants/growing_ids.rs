//! P8: within a key, later messages have larger ids, and so has one request, with a key or without;
//! and one id is one message, the one that was
//! published, to whomever it is delivered.

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use super::Checker;
use crate::history::{Call, Delivered, Event, Key, Value, What};

#[derive(Default)]
pub(super) struct GrowingIds {
    publishes: BTreeMap<Call, Publish>,
    /// The largest id of each key that was answered OK.
    largest: BTreeMap<Key, MessageId>,
    messages: BTreeMap<MessageId, (Key, Value)>,
    ids: BTreeMap<Value, MessageId>,
    /// What may be stored, by the key that it was published with.
    sent: BTreeMap<Value, Key>,
    refused: BTreeSet<Value>,
}

struct Publish {
    key: Key,
    values: Vec<Value>,
    /// The largest id of the key that was answered OK before.
    after: MessageId,
}

impl Checker for GrowingIds {
    fn promise(&self) -> &'static str {
        "P8 growing ids"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::PublishInvoked { call, key, values } => {
                self.sent
                    .extend(values.iter().map(|value| (*value, key.clone())));
                let publish = Publish {
                    key: key.clone(),
                    values: values.clone(),
                    after: self.largest.get(key).copied().unwrap_or_default(),
                };
                self.publishes.insert(*call, publish);
                Ok(())
            }
            What::PublishOk { call, ids } => self.stored(*call, ids),
            What::PublishFailed { call } => {
                let publish = self.publishes.remove(call);
                let values = publish.into_iter().flat_map(|publish| publish.values);
                self.refused.extend(values);
                Ok(())
            }
            What::Delivered(delivered) => self.delivered(delivered),
            _ => Ok(()),
        }
    }
}

impl GrowingIds {
    fn stored(&mut self, call: Call, ids: &[MessageId]) -> Result<(), String> {
        let Some(publish) = self.publishes.remove(&call) else {
            return Err(format!("{call:?} was answered twice"));
        };
        if ids.len() != publish.values.len() {
            return Err(format!("{call:?}: {} ids", ids.len()));
        }
        let mut before = publish.after;
        for (value, id) in publish.values.iter().zip(ids) {
            if *id <= before {
                return Err(format!("{id} of {:?} is not above {before}", publish.key));
            }
            before = *id;
            self.same(*id, &publish.key, *value)?;
        }
        // Messages without a key go to any shard, and each shard counts by itself.
        if !publish.key.is_empty() {
            let largest = self.largest.entry(publish.key).or_default();
            *largest = before.max(*largest);
        }
        Ok(())
    }

    fn delivered(&mut self, delivered: &Delivered) -> Result<(), String> {
        let value = delivered.value;
        match self.sent.get(&value) {
            Some(key) if *key == delivered.key && !self.refused.contains(&value) => {
                self.same(delivered.message, &delivered.key, value)
            }
            _ => Err(format!("nobody published this: {delivered:?}")),
        }
    }

    fn same(&mut self, id: MessageId, key: &Key, value: Value) -> Result<(), String> {
        let message = (key.clone(), value);
        let known = self.messages.entry(id).or_insert_with(|| message.clone());
        let known_id = *self.ids.entry(value).or_insert(id);
        match *known == message && known_id == id {
            true => Ok(()),
            false => Err(format!(
                "{id} is {known:?} and {message:?}, which is {known_id}"
            )),
        }
    }
}
