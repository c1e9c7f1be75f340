//! Labels of topics and subscriptions, as gcloud lets people change them.

use std::collections::BTreeMap;

use clap::Args;

use super::resource::key_value;

/// How labels change.
#[derive(Debug, Args)]
pub(crate) struct LabelChange {
    /// Labels to add or replace.
    #[arg(long, value_parser = key_value, value_delimiter = ',', value_name = "KEY=VALUE")]
    update_labels: Vec<(String, String)>,
    /// Labels to take away.
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    remove_labels: Vec<String>,
    /// Takes all labels away, before any are added.
    #[arg(long, conflicts_with = "remove_labels")]
    clear_labels: bool,
}

impl LabelChange {
    /// Whether anything was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.update_labels.is_empty() && self.remove_labels.is_empty() && !self.clear_labels
    }

    /// Changes what a resource has; as with gcloud, what is both added and removed is removed.
    pub(crate) fn apply(self, labels: &mut BTreeMap<String, String>) {
        if self.clear_labels {
            labels.clear();
        }
        labels.extend(self.update_labels);
        labels.retain(|key, _| !self.remove_labels.contains(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    fn changed(change: LabelChange) -> Vec<(String, String)> {
        let mut labels = BTreeMap::from([pair("team", "red"), pair("stage", "test")]);
        change.apply(&mut labels);
        labels.into_iter().collect()
    }

    #[test]
    fn an_update_keeps_the_labels_it_does_not_name() {
        let change = LabelChange {
            update_labels: vec![pair("team", "blue"), pair("new", "1")],
            remove_labels: vec!["stage".into()],
            clear_labels: false,
        };
        assert_eq!(changed(change), [pair("new", "1"), pair("team", "blue")]);
    }

    #[test]
    fn clearing_comes_before_adding() {
        let change = LabelChange {
            update_labels: vec![pair("new", "1")],
            remove_labels: Vec::new(),
            clear_labels: true,
        };
        assert_eq!(changed(change), [pair("new", "1")]);
    }
}
