//! Names, pairs and durations as people type them.

use std::collections::BTreeMap;

use model::name::InvalidName;
use model::{SubscriptionName, TopicName};
use serde_json::{Value, json};

use super::output::Show;
use super::{Failure, Target};

impl From<InvalidName> for Failure {
    fn from(why: InvalidName) -> Self {
        Failure::Usage(why.to_string())
    }
}

/// A name comes as its last part alone, or in full.
impl Target {
    /// The full name of a topic.
    pub(crate) fn topic(&self, typed: &str) -> Result<String, Failure> {
        let name = self.full(typed, "topics");
        Ok(TopicName::parse(&name)?.as_str().to_owned())
    }

    /// The full names of topics.
    pub(crate) fn topics(&self, typed: &[String]) -> Result<Vec<String>, Failure> {
        typed.iter().map(|typed| self.topic(typed)).collect()
    }

    /// The full name of a subscription.
    pub(crate) fn subscription(&self, typed: &str) -> Result<String, Failure> {
        let name = self.full(typed, "subscriptions");
        Ok(SubscriptionName::parse(&name)?.as_str().to_owned())
    }

    /// The full names of subscriptions.
    pub(crate) fn subscriptions(&self, typed: &[String]) -> Result<Vec<String>, Failure> {
        typed.iter().map(|typed| self.subscription(typed)).collect()
    }

    /// The name of the project.
    pub(crate) fn project_name(&self) -> String {
        format!("projects/{}", self.project)
    }

    fn full(&self, typed: &str, collection: &str) -> String {
        if typed.contains('/') {
            typed.to_owned()
        } else {
            format!("projects/{}/{collection}/{typed}", self.project)
        }
    }
}

/// The name of something, where a call answers no more than that.
pub(crate) struct ResourceName(pub(crate) String);

impl Show for ResourceName {
    const COLUMNS: &'static [&'static str] = &["NAME"];

    fn cells(&self) -> Vec<String> {
        vec![self.0.clone()]
    }

    fn json(&self) -> Value {
        json!(self.0)
    }
}

/// Labels or attributes in one cell.
pub(crate) fn pairs(map: &BTreeMap<String, String>) -> String {
    let pairs = map.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Reads `key=value`, for labels and attributes.
pub(crate) fn key_value(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{typed:?} is not KEY=VALUE")),
    }
}

/// Reads whole seconds, with or without their unit: `10`, `10s`, `2m`, `1h`.
pub(crate) fn seconds(typed: &str) -> Result<i32, String> {
    let (digits, factor) = match typed.char_indices().next_back() {
        Some((at, 's')) => (&typed[..at], 1),
        Some((at, 'm')) => (&typed[..at], 60),
        Some((at, 'h')) => (&typed[..at], 3_600),
        _ => (typed, 1),
    };
    let amount = digits
        .parse::<i32>()
        .ok()
        .filter(|_| !digits.starts_with(['-', '+']));
    let seconds = amount.and_then(|amount| amount.checked_mul(factor));
    seconds.ok_or_else(|| format!("{typed:?} is not a duration such as 10, 10s, 2m or 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            endpoint: "localhost:8085".into(),
            project: "red".into(),
        }
    }

    #[test]
    fn an_id_gets_the_project_and_a_full_name_keeps_its_own() {
        assert_eq!(
            target().topic("orders").unwrap(),
            "projects/red/topics/orders"
        );
        let full = "projects/blue/topics/orders";
        assert_eq!(target().topic(full).unwrap(), full);
        assert!(matches!(target().subscription("x"), Err(Failure::Usage(_))));
        assert!(matches!(
            target().subscription(full),
            Err(Failure::Usage(_))
        ));
    }

    #[test]
    fn durations_have_units() {
        let typed = ["10", "10s", "2m", "1h"];
        assert_eq!(
            typed.map(|typed| seconds(typed).unwrap()),
            [10, 10, 120, 3_600]
        );
        for typed in ["", "s", "1d", "-1", "+1", "5000000000", "99999999h"] {
            assert!(seconds(typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn a_pair_needs_its_key() {
        assert_eq!(key_value("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert!(key_value("a").is_err());
        assert!(key_value("=b").is_err());
    }
}
