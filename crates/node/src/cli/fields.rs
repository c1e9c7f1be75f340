//! A message of the API as JSON: its names, and no fields that have the default of their type.

use std::collections::BTreeMap;

use prost_types::Duration;
use serde_json::{Map, Value, json};

/// The fields of one message.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// A field as it is.
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// A text, unless it is empty.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.put(name, json!(text));
        }
    }

    /// Texts, unless there are none.
    pub(crate) fn list(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.put(name, json!(texts));
        }
    }

    /// Pairs, unless there are none.
    pub(crate) fn map(&mut self, name: &str, pairs: &BTreeMap<String, String>) {
        if !pairs.is_empty() {
            self.put(name, json!(pairs));
        }
    }

    /// Something that is so, or is not mentioned.
    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, json!(true));
        }
    }

    /// A duration such as `"10s"`, if there is one.
    pub(crate) fn duration(&mut self, name: &str, duration: Option<&Duration>) {
        if let Some(duration) = duration {
            self.put(name, json!(duration.to_string()));
        }
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Value::Object(fields.0)
    }
}
