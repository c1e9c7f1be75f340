//! A naive catalogue of plain maps, and the comparison of the real one with it.

use std::collections::{BTreeMap, BTreeSet};

use model::{Incarnation, ProjectId, SubscriptionName, TopicName};
use proptest::prelude::*;

use super::super::read::{self, PageRequest};
use super::super::table::NameKey;
use super::super::table::project::Project;
use super::super::{
    At, Command, DeadLetter, DeleteSubscription, DeleteTopic, DetachSubscription, Outcome,
    Rejected, Reply, SubscriptionChange, UpdateSubscription, UpdateTopic,
};
use super::{Catalogue, create_subscription};
use crate::kv::ViewExt;
use crate::shard::{self, Attach};
use crate::subscription::SubscriptionSettings;

const TOPICS: [&str; 3] = [
    "projects/p/topics/one",
    "projects/p/topics/two",
    "projects/q/topics/one",
];
const SUBSCRIPTIONS: [&str; 4] = [
    "projects/p/subscriptions/one",
    "projects/p/subscriptions/two",
    "projects/q/subscriptions/one",
    "projects/q/subscriptions/two",
];

/// One request; the numbers are places in [`TOPICS`] and [`SUBSCRIPTIONS`].
#[derive(Clone, Debug)]
pub(super) enum Ask {
    CreateTopic(usize),
    LabelTopic(usize, String),
    DeleteTopic(usize),
    CreateSubscription {
        name: usize,
        topic: usize,
        dead_letter: Option<usize>,
    },
    Redirect {
        name: usize,
        dead_letter: Option<usize>,
        label: String,
    },
    DeleteSubscription(usize),
    Detach(usize),
}

fn ask() -> impl Strategy<Value = Ask> {
    let topic = || 0..TOPICS.len();
    let name = || 0..SUBSCRIPTIONS.len();
    let dead_letter = || prop::option::of(topic());
    let label = || "[ab]";
    prop_oneof![
        3 => topic().prop_map(Ask::CreateTopic),
        1 => (topic(), label()).prop_map(|(topic, label)| Ask::LabelTopic(topic, label)),
        1 => topic().prop_map(Ask::DeleteTopic),
        4 => (name(), topic(), dead_letter()).prop_map(|(name, topic, dead_letter)| {
            Ask::CreateSubscription { name, topic, dead_letter }
        }),
        2 => (name(), dead_letter(), label()).prop_map(|(name, dead_letter, label)| {
            Ask::Redirect { name, dead_letter, label }
        }),
        1 => name().prop_map(Ask::DeleteSubscription),
        1 => name().prop_map(Ask::Detach),
    ]
}

/// Entries of a log, with one request or more each.
pub(super) fn entries() -> impl Strategy<Value = Vec<Vec<Ask>>> {
    prop::collection::vec(prop::collection::vec(ask(), 1..4), 1..30)
}

/// Runs both catalogues on the same entries and compares all that can be seen of them.
pub(super) fn compare(entries: &[Vec<Ask>]) {
    let mut real = Catalogue::default();
    let mut naive = Naive::default();
    let mut shards = BTreeMap::new();
    for entry in entries {
        let commands: Vec<Command> = entry.iter().map(command).collect();
        let before = real.view.clone();
        let outcomes = real.apply(&commands);
        for (position, (ask, outcome)) in (0..).zip(entry.iter().zip(&outcomes)) {
            let at = At {
                index: real.index,
                position,
            };
            assert_eq!(seen(outcome), naive.perform(ask, at), "{ask:?}");
            outcome
                .effects
                .iter()
                .for_each(|effect| tell(&mut shards, effect));
        }
        if outcomes
            .iter()
            .all(|outcome| matches!(outcome.reply, Reply::Rejected(_)))
        {
            assert_eq!(real.view, before, "what is refused writes nothing");
        }
        compare_reads(&real, &naive);
        compare_shards(&real, &naive, &shards);
    }
}

fn command(ask: &Ask) -> Command {
    match ask {
        Ask::CreateTopic(topic) => {
            let name = topic_name(*topic);
            let labels = BTreeMap::new();
            Command::CreateTopic(super::super::CreateTopic {
                name,
                labels,
                storage_policy: None,
            })
        }
        Ask::LabelTopic(topic, label) => Command::UpdateTopic(UpdateTopic {
            name: topic_name(*topic),
            labels: Some([(label.clone(), String::new())].into()),
            storage_policy: None,
        }),
        Ask::DeleteTopic(topic) => Command::DeleteTopic(DeleteTopic {
            name: topic_name(*topic),
        }),
        Ask::CreateSubscription {
            name,
            topic,
            dead_letter,
        } => {
            let mut command = create_subscription(SUBSCRIPTIONS[*name], "any");
            if let Command::CreateSubscription(create) = &mut command {
                create.topic = topic_name(*topic);
                create.dead_letter = dead_letter.map(policy);
            }
            command
        }
        Ask::Redirect {
            name,
            dead_letter,
            label,
        } => Command::UpdateSubscription(UpdateSubscription {
            name: subscription_name(*name),
            changes: vec![
                SubscriptionChange::Labels([(label.clone(), String::new())].into()),
                SubscriptionChange::DeadLetter(dead_letter.map(policy)),
            ],
        }),
        Ask::DeleteSubscription(name) => Command::DeleteSubscription(DeleteSubscription {
            name: subscription_name(*name),
        }),
        Ask::Detach(name) => Command::DetachSubscription(DetachSubscription {
            name: subscription_name(*name),
        }),
    }
}

fn policy(topic: usize) -> DeadLetter {
    let topic = topic_name(topic);
    DeadLetter {
        topic,
        attempts_max: 5,
    }
}

fn topic_name(topic: usize) -> TopicName {
    TopicName::parse(TOPICS[topic]).unwrap()
}

fn subscription_name(name: usize) -> SubscriptionName {
    SubscriptionName::parse(SUBSCRIPTIONS[name]).unwrap()
}

/// A topic as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NaiveTopic {
    incarnation: Incarnation,
    label: Option<String>,
}

/// A subscription as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NaiveSubscription {
    incarnation: Incarnation,
    topic: Incarnation,
    topic_name: Option<TopicName>,
    dead_letter: Option<TopicName>,
    label: Option<String>,
    detached: bool,
}

/// The part of an answer that the naive catalogue foretells.
type Seen = Result<(), Rejected>;

fn seen(outcome: &Outcome) -> Seen {
    match &outcome.reply {
        Reply::Rejected(rejected) => Err(rejected.clone()),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Naive {
    topics: BTreeMap<TopicName, NaiveTopic>,
    subscriptions: BTreeMap<SubscriptionName, NaiveSubscription>,
}

impl Naive {
    fn perform(&mut self, ask: &Ask, at: At) -> Seen {
        match ask {
            Ask::CreateTopic(topic) => self.create_topic(topic_name(*topic), at),
            Ask::LabelTopic(topic, label) => {
                self.topic(&topic_name(*topic))?.label = Some(label.clone());
                Ok(())
            }
            Ask::DeleteTopic(topic) => self.delete_topic(&topic_name(*topic)),
            Ask::CreateSubscription {
                name,
                topic,
                dead_letter,
            } => {
                let dead_letter = dead_letter.map(topic_name);
                let name = subscription_name(*name);
                self.create_subscription(name, topic_name(*topic), dead_letter, at)
            }
            Ask::Redirect {
                name,
                dead_letter,
                label,
            } => {
                let dead_letter = dead_letter.map(topic_name);
                let topic = self.subscription(*name)?.topic_name.clone();
                self.check_dead_letter(dead_letter.as_ref(), topic.as_ref())?;
                let subscription = self.subscription(*name)?;
                subscription.dead_letter = dead_letter;
                subscription.label = Some(label.clone());
                Ok(())
            }
            Ask::DeleteSubscription(name) => {
                self.subscription(*name)?;
                self.subscriptions.remove(&subscription_name(*name));
                Ok(())
            }
            Ask::Detach(name) => {
                self.subscription(*name)?.detached = true;
                Ok(())
            }
        }
    }

    fn create_topic(&mut self, name: TopicName, at: At) -> Seen {
        if self.topics.contains_key(&name) {
            return Err(Rejected::TopicExists(name));
        }
        let incarnation = Incarnation(at.number());
        self.topics.insert(
            name,
            NaiveTopic {
                incarnation,
                label: None,
            },
        );
        Ok(())
    }

    fn delete_topic(&mut self, name: &TopicName) -> Seen {
        self.topic(name)?;
        self.topics.remove(name);
        for subscription in self.subscriptions.values_mut() {
            subscription.topic_name.take_if(|of| of == name);
        }
        Ok(())
    }

    fn create_subscription(
        &mut self,
        name: SubscriptionName,
        topic_name: TopicName,
        dead_letter: Option<TopicName>,
        at: At,
    ) -> Seen {
        if self.subscriptions.contains_key(&name) {
            return Err(Rejected::SubscriptionExists(name));
        }
        let topic = self.topic(&topic_name)?.incarnation;
        self.check_dead_letter(dead_letter.as_ref(), Some(&topic_name))?;
        let subscription = NaiveSubscription {
            incarnation: Incarnation(at.number()),
            topic,
            topic_name: Some(topic_name),
            dead_letter,
            label: None,
            detached: false,
        };
        self.subscriptions.insert(name, subscription);
        Ok(())
    }

    fn check_dead_letter(&self, topic: Option<&TopicName>, own: Option<&TopicName>) -> Seen {
        match topic {
            None => Ok(()),
            Some(topic) if own == Some(topic) => Err(Rejected::DeadLetterToOwnTopic(topic.clone())),
            Some(topic) if self.topics.contains_key(topic) => Ok(()),
            Some(topic) => Err(Rejected::DeadLetterTopicNotFound(topic.clone())),
        }
    }

    fn topic(&mut self, name: &TopicName) -> Result<&mut NaiveTopic, Rejected> {
        let found = self.topics.get_mut(name);
        found.ok_or_else(|| Rejected::TopicNotFound(name.clone()))
    }

    fn subscription(&mut self, name: usize) -> Result<&mut NaiveSubscription, Rejected> {
        let name = subscription_name(name);
        let found = self.subscriptions.get_mut(&name);
        found.ok_or(Rejected::SubscriptionNotFound(name))
    }
}

fn compare_reads(real: &Catalogue, naive: &Naive) {
    for name in (0..TOPICS.len()).map(topic_name) {
        let found = read::topic(&real.view, &name)
            .unwrap()
            .map(|topic| NaiveTopic {
                incarnation: topic.incarnation,
                label: topic.labels.keys().next().cloned(),
            });
        assert_eq!(found.as_ref(), naive.topics.get(&name), "{name}");
        compare_topic_subscriptions(real, naive, &name);
        let counted = read::topic(&real.view, &name).unwrap();
        let counted = counted.map_or(0, |topic| topic.subscriptions as usize);
        let of_topic = |it: &&NaiveSubscription| it.topic_name.as_ref() == Some(&name);
        let expected = naive.subscriptions.values().filter(of_topic).count();
        assert_eq!(counted, expected, "subscriptions of {name}");
    }
    for name in (0..SUBSCRIPTIONS.len()).map(subscription_name) {
        let found = read::subscription(&real.view, &name)
            .unwrap()
            .map(|found| NaiveSubscription {
                incarnation: found.incarnation,
                topic: found.topic,
                topic_name: found.topic_name,
                dead_letter: found.settings.dead_letter.map(|policy| policy.topic),
                label: found.labels.keys().next().cloned(),
                detached: found.detached,
            });
        assert_eq!(found.as_ref(), naive.subscriptions.get(&name), "{name}");
    }
    for project in ["projects/p", "projects/q"] {
        compare_project(real, naive, &ProjectId::parse(project).unwrap());
    }
}

fn compare_topic_subscriptions(real: &Catalogue, naive: &Naive, topic: &TopicName) {
    let listed = all_pages(|request| {
        let page = read::topic_subscriptions(&real.view, topic, request).ok()?;
        Some((page.items, page.next_token))
    });
    let of_topic = |subscription: &NaiveSubscription| {
        subscription.topic_name.as_ref() == Some(topic) && !subscription.detached
    };
    let expected = naive.topics.contains_key(topic).then(|| {
        let of_topic = naive.subscriptions.iter().filter(|(_, it)| of_topic(it));
        of_topic.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(listed, expected);
}

fn compare_project(real: &Catalogue, naive: &Naive, project: &ProjectId) {
    let topics = all_pages(|request| {
        let page = read::topics(&real.view, project, request).ok()?;
        Some((page.items, page.next_token))
    });
    let topics: Vec<_> = topics
        .unwrap()
        .into_iter()
        .map(|topic| topic.name)
        .collect();
    let expected = naive
        .topics
        .keys()
        .filter(|name| name.project() == *project);
    assert!(expected.eq(&topics), "{topics:?}");

    let subscriptions = all_pages(|request| {
        let page = read::subscriptions(&real.view, project, request).ok()?;
        Some((page.items, page.next_token))
    });
    let names: Vec<_> = subscriptions
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    let expected = naive
        .subscriptions
        .keys()
        .filter(|name| name.project() == *project);
    assert!(expected.eq(&names), "{names:?}");

    let counted: Option<Project> = real.view.row(&NameKey::from(project)).unwrap();
    let counted = counted.unwrap_or_default();
    let counted = (counted.topics as usize, counted.subscriptions as usize);
    assert_eq!(counted, (topics.len(), names.len()));
}

/// All items of a list that is read two at a time; `None` if there is no such list.
fn all_pages<T>(
    mut page: impl FnMut(&PageRequest<'_>) -> Option<(Vec<T>, String)>,
) -> Option<Vec<T>> {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let request = PageRequest {
            size: 2,
            token: &token,
        };
        let (items, next_token) = page(&request)?;
        assert!(items.len() <= 2);
        all.extend(items);
        if next_token.is_empty() {
            return Some(all);
        }
        token = next_token;
    }
}

/// What a shard that has logged every effect has attached.
type Shards = BTreeMap<(Incarnation, Incarnation), SubscriptionSettings>;

fn tell(shards: &mut Shards, effect: &shard::Command) {
    match effect {
        shard::Command::Attach(attach) => {
            shards.insert((attach.topic, attach.subscription), attach.settings.clone());
        }
        shard::Command::Detach(detach) => {
            shards.remove(&(detach.topic, detach.subscription));
        }
        shard::Command::CloseTopic(_) => {}
        other => panic!("the catalogue proposes no {other:?}"),
    }
}

/// A shard that heard each effect and one that asks the catalogue now know the same.
fn compare_shards(real: &Catalogue, naive: &Naive, shards: &Shards) {
    let attached = |attach: Attach| ((attach.topic, attach.subscription), attach.settings);
    let all = read::all_attachments(&real.view).unwrap();
    assert_eq!(&all.into_iter().map(attached).collect::<Shards>(), shards);

    let topics: BTreeSet<Incarnation> = shards.keys().map(|(topic, _)| *topic).collect();
    for topic in topics {
        let of_topic = read::attachments(&real.view, topic).unwrap();
        let of_topic: Shards = of_topic.into_iter().map(attached).collect();
        let expected = shards.iter().filter(|((of, _), _)| *of == topic);
        assert!(expected.eq(&of_topic), "topic {topic}");
    }
    let open: BTreeSet<_> = naive
        .topics
        .values()
        .map(|topic| topic.incarnation)
        .collect();
    assert_eq!(read::open_topics(&real.view).unwrap(), open);
}
