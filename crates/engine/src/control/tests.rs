mod cluster;
mod naive;

use model::limits::RESOURCES_PER_PROJECT_MAX;
use model::{Incarnation, ProjectId, SubscriptionName, TopicName};
use proptest::prelude::*;

use super::read::PageRequest;
use super::request::{SubscriptionRequest, TopicRequest};
use super::table::NameKey;
use super::*;
use crate::Fault;
use crate::command;
use crate::kv::Overlay;
use crate::kv::memory::MemoryView;

/// A catalogue in memory.
#[derive(Default)]
struct Catalogue {
    view: MemoryView,
    index: u64,
}

impl Catalogue {
    /// Applies one entry of the log.
    fn apply(&mut self, commands: &[Command]) -> Vec<Outcome> {
        self.index += 1;
        let mut overlay = Overlay::new(&self.view);
        let outcomes = (0..).zip(commands).map(|(position, command)| {
            let index = self.index;
            apply(&mut overlay, command, At { index, position }).unwrap()
        });
        let outcomes = outcomes.collect();
        let writes = overlay.into_writes();
        self.view.commit(writes);
        outcomes
    }

    fn reply(&mut self, command: Command) -> Reply {
        self.apply(&[command]).remove(0).reply
    }
}

fn topic_name(id: &str) -> TopicName {
    TopicName::parse(&format!("projects/p/topics/{id}")).unwrap()
}

fn create_topic(id: &str) -> Command {
    let request = TopicRequest {
        name: topic_name(id).to_string(),
        ..TopicRequest::default()
    };
    Command::CreateTopic(request.create().unwrap())
}

fn create_subscription(name: &str, topic: &str) -> Command {
    let request = SubscriptionRequest {
        name: name.to_owned(),
        topic: topic_name(topic).to_string(),
        ..SubscriptionRequest::default()
    };
    Command::CreateSubscription(request.create().unwrap())
}

#[test]
fn commands_of_one_entry_make_different_incarnations() {
    let mut catalogue = Catalogue::default();
    let outcomes = catalogue.apply(&[create_topic("one"), create_topic("two")]);
    let incarnations: Vec<Incarnation> = outcomes
        .iter()
        .map(|outcome| match &outcome.reply {
            Reply::Topic(topic) => topic.incarnation,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(incarnations, [Incarnation(4_096), Incarnation(4_097)]);
}

#[test]
fn numbers_grow_along_the_log() {
    let at = |index, position| At { index, position }.number();
    assert!(at(1, 4_095) < at(2, 0));
    assert!(at(1, 0) < at(1, 1));
}

#[test]
fn the_topics_and_subscriptions_of_a_project_are_limited() {
    let mut catalogue = Catalogue::default();
    let most = RESOURCES_PER_PROJECT_MAX;
    let topics: Vec<_> = (0..most)
        .map(|number| create_topic(&format!("top-{number}")))
        .collect();
    topics
        .chunks(4_096)
        .for_each(|entry| drop(catalogue.apply(entry)));
    let quota = Quota::TopicsOfProject(ProjectId::parse("projects/p").unwrap());
    let exceeded = Reply::Rejected(Rejected::QuotaExceeded(quota));
    assert_eq!(catalogue.reply(create_topic("more")), exceeded);
    catalogue.reply(Command::DeleteTopic(DeleteTopic {
        name: topic_name("top-7"),
    }));
    assert!(matches!(
        catalogue.reply(create_topic("more")),
        Reply::Topic(_)
    ));

    let name = |project: &str, number| format!("projects/{project}/subscriptions/sub-{number}");
    let subscriptions: Vec<_> = (0..most)
        .map(|number| create_subscription(&name("p", number), "top-1"))
        .collect();
    subscriptions
        .chunks(4_096)
        .for_each(|entry| drop(catalogue.apply(entry)));
    let quota = Quota::SubscriptionsOfProject(ProjectId::parse("projects/p").unwrap());
    let exceeded = Reply::Rejected(Rejected::QuotaExceeded(quota));
    assert_eq!(
        catalogue.reply(create_subscription(&name("p", most), "top-2")),
        exceeded
    );
    // Another project has its own limit, but the topic has one too.
    let quota = Quota::SubscriptionsOfTopic(topic_name("top-1"));
    let exceeded = Reply::Rejected(Rejected::QuotaExceeded(quota));
    assert_eq!(
        catalogue.reply(create_subscription(&name("q", 1), "top-1")),
        exceeded
    );
    let created = catalogue.reply(create_subscription(&name("q", 1), "top-2"));
    assert!(matches!(created, Reply::Subscription(_)));
}

#[test]
fn pages_have_a_hundred_names_or_a_thousand_at_most() {
    let mut catalogue = Catalogue::default();
    let topics: Vec<_> = (0..1_500)
        .map(|number| create_topic(&format!("top-{number}")))
        .collect();
    catalogue.apply(&topics);
    let project = ProjectId::parse("projects/p").unwrap();
    let page = |size, token| {
        read::topics(&catalogue.view, &project, &PageRequest { size, token }).unwrap()
    };
    assert_eq!(page(0, "").items.len(), 100);
    let first = page(i32::MAX, "");
    assert_eq!(first.items.len(), 1_000);
    let rest = page(i32::MAX, &first.next_token);
    assert_eq!((rest.items.len(), rest.next_token.as_str()), (500, ""));
}

#[test]
fn a_token_of_another_list_is_refused() {
    let mut catalogue = Catalogue::default();
    for name in ["one", "two"] {
        catalogue.reply(create_topic(name));
    }
    let list = |project: &str, token: &str| {
        let project = ProjectId::parse(project).unwrap();
        let request = PageRequest { size: 1, token };
        read::topics(&catalogue.view, &project, &request)
    };
    let token = list("projects/p", "").unwrap().next_token;
    assert!(list("projects/p", &token).is_ok());
    assert!(matches!(
        list("projects/q", &token),
        Err(read::ListError::Page(_))
    ));
    let subscriptions = read::subscriptions(
        &catalogue.view,
        &ProjectId::parse("projects/p").unwrap(),
        &PageRequest {
            size: 1,
            token: &token,
        },
    );
    assert!(matches!(subscriptions, Err(read::ListError::Page(_))));
}

#[test]
fn an_index_without_its_subscription_stops_the_replica() {
    let mut catalogue = Catalogue::default();
    catalogue.reply(create_topic("one"));
    let name = SubscriptionName::parse("projects/p/subscriptions/sub-1").unwrap();
    catalogue.reply(create_subscription(name.as_str(), "one"));
    let mut overlay = Overlay::new(&catalogue.view);
    overlay.delete::<Subscription>(&NameKey::from(&name));
    let delete = Command::DeleteTopic(DeleteTopic {
        name: topic_name("one"),
    });
    let at = At {
        index: 9,
        position: 0,
    };
    assert!(matches!(
        apply(&mut overlay, &delete, at),
        Err(Fault::Missing(_))
    ));
}

#[test]
fn commands_round_trip_through_the_log() {
    let commands = vec![
        command::Command::Control(create_topic("one")),
        command::Command::Control(create_subscription("projects/p/subscriptions/sub-1", "one")),
    ];
    let at = model::Timestamp(7);
    let proposal = command::Proposal { at, commands };
    assert_eq!(command::Proposal::decode(&proposal.encode()), Ok(proposal));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is asked in whatever order, the catalogue is what a few plain maps would be.
    #[test]
    fn the_catalogue_is_like_plain_maps(entries in naive::entries()) {
        naive::compare(&entries);
    }
}

#[test]
fn what_was_seen_of_a_name_is_as_new_as_its_last_change() {
    let mut catalogue = Catalogue::default();
    let seen = |catalogue: &Catalogue, id: &str| {
        let seen = read::seen_topic(&catalogue.view, &topic_name(id)).unwrap();
        (seen.found.is_some(), seen.since)
    };
    assert_eq!(seen(&catalogue, "one"), (false, 0));
    catalogue.reply(create_topic("one"));
    catalogue.reply(create_topic("two"));
    assert_eq!(seen(&catalogue, "one"), (true, 1));
    assert_eq!(seen(&catalogue, "two"), (true, 2));
    let name = topic_name("one");
    catalogue.reply(Command::DeleteTopic(DeleteTopic { name: name.clone() }));
    assert_eq!(seen(&catalogue, "one"), (false, 3));
    assert_eq!(seen(&catalogue, "two"), (true, 2));
    let again = catalogue.reply(Command::DeleteTopic(DeleteTopic { name }));
    assert!(matches!(again, Reply::Rejected(_)));
    assert_eq!(seen(&catalogue, "one"), (false, 3), "nothing has changed");
    let name = topic_name("two");
    let labels = Some(Labels::from([("key".to_owned(), "value".to_owned())]));
    catalogue.reply(Command::UpdateTopic(UpdateTopic {
        name: name.clone(),
        labels,
        storage_policy: None,
    }));
    assert_eq!(seen(&catalogue, "two"), (true, 5));
    let living = read::living_topic(&catalogue.view, &name).unwrap();
    assert_eq!(living.since, 2, "it was there before it changed");
    assert_eq!(read::last_change(&catalogue.view), Ok(5));
}
