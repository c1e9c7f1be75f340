use std::time::Duration;

use engine::control::{At, CreateSubscription, CreateTopic, DeleteSubscription, DeleteTopic};
use engine::kv::Overlay;
use engine::kv::memory::MemoryView;
use model::{ShardNumber, SubscriptionName, Timestamp, TopicName};

use super::*;

/// A catalogue and a shard, over the real engine.
#[derive(Default)]
struct Both {
    catalogue: MemoryView,
    shard: MemoryView,
    index: u64,
}

impl Both {
    /// Changes the catalogue, and answers what the shards should log.
    fn change(&mut self, command: control::Command) -> Vec<shard::Command> {
        self.index += 1;
        let at = At {
            index: self.index,
            position: 0,
        };
        let mut overlay = Overlay::new(&self.catalogue);
        let outcome = control::apply(&mut overlay, &command, at).unwrap();
        self.catalogue.commit(overlay.into_writes());
        outcome.effects
    }

    fn log(&mut self, commands: Vec<shard::Command>) {
        for command in commands {
            self.index += 1;
            let at = shard::At {
                shard: ShardNumber(1),
                term: 1,
                index: self.index,
                payload_number: 0,
                time: Timestamp(self.index),
            };
            let mut overlay = Overlay::new(&self.shard);
            shard::apply(&mut overlay, &command, at).unwrap();
            self.shard.commit(overlay.into_writes());
        }
    }

    fn missing(&self) -> Vec<shard::Command> {
        missing(&self.catalogue, &self.shard).unwrap()
    }
}

fn topic() -> TopicName {
    TopicName::parse("projects/test-project/topics/news").unwrap()
}

fn reader() -> SubscriptionName {
    SubscriptionName::parse("projects/test-project/subscriptions/reader").unwrap()
}

fn create_topic() -> control::Command {
    control::Command::CreateTopic(CreateTopic {
        name: topic(),
        labels: Default::default(),
        storage_policy: None,
    })
}

fn create_reader() -> control::Command {
    control::Command::CreateSubscription(CreateSubscription {
        name: Some(reader()),
        topic: topic(),
        labels: Default::default(),
        ordered: true,
        exactly_once: false,
        ack_deadline: Duration::from_secs(10),
        filter: String::new(),
        dead_letter: None,
        retry: None,
        message_retention: Duration::from_secs(600),
        expiration_ttl: None,
    })
}

#[test]
fn a_shard_that_has_logged_everything_lacks_nothing() {
    let mut both = Both::default();
    both.change(create_topic());
    let effects = both.change(create_reader());
    both.log(effects);
    assert_eq!(both.missing(), []);
}

#[test]
fn what_a_shard_missed_is_what_it_should_have_logged() {
    let mut both = Both::default();
    both.change(create_topic());
    let attach = both.change(create_reader());
    assert_eq!(both.missing(), attach);
    both.log(attach);

    let delete = DeleteSubscription { name: reader() };
    let detach = both.change(control::Command::DeleteSubscription(delete));
    assert_eq!(both.missing(), detach);
    both.log(detach);

    let close = both.change(control::Command::DeleteTopic(DeleteTopic { name: topic() }));
    assert_eq!(both.missing(), close);
    both.log(close);
    assert_eq!(both.missing(), []);
}

#[test]
fn a_name_that_was_created_again_is_another_subscription() {
    let mut both = Both::default();
    both.change(create_topic());
    let attach = both.change(create_reader());
    both.log(attach);
    let delete = DeleteSubscription { name: reader() };
    let detach = both.change(control::Command::DeleteSubscription(delete));
    let attach = both.change(create_reader());
    assert_eq!(both.missing(), [detach, attach].concat());
}
