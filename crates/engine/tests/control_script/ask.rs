//! From a line of a script to a request, and to its outcome.

use std::collections::BTreeMap;

use engine::control::read::{self, PageRequest};
use engine::control::request::{
    DeadLetterRequest, InvalidRequest, RetryRequest, SignedDuration, StoragePolicyRequest,
    SubscriptionRequest, TopicRequest,
};
use engine::control::{
    Asleep, At, Awake, Command, DeleteSubscription, DeleteTopic, DetachSubscription, Found,
    NewNode, NodeState, Rejected, SetNodeState, apply,
};
use engine::kv::Overlay;
use engine::kv::memory::MemoryView;
use model::{
    Boot, ClusterSecret, NodeId, NodeName, ProjectId, RegionName, SubscriptionName, TopicName,
    ZoneName,
};

use super::show;

/// One catalogue and its log.
#[derive(Default)]
pub(crate) struct Catalogue {
    view: MemoryView,
    index: u64,
    /// The token that the last list gave out.
    token: String,
}

/// Options by name. One without a value has an empty one.
type Options<'l> = BTreeMap<&'l str, &'l str>;

impl Catalogue {
    /// Performs one line.
    pub(crate) fn ask(&mut self, line: &str) -> Vec<String> {
        let words = words(line);
        let [collection, verb, name, options @ ..] = &words[..] else {
            panic!("a line is collection, verb, name, options: {line}");
        };
        let options: Options<'_> = options
            .iter()
            .map(|option| option.split_once('=').unwrap_or((option, "")))
            .collect();
        match (*collection, *verb) {
            ("topics", "get") => self.get_topic(name),
            ("subscriptions", "get") => self.get_subscription(name),
            ("topics" | "subscriptions", "list") => self.list(collection, name, &options),
            ("nodes", "join") => self.perform(&join(self.index + 1, name, &options)),
            ("nodes", "list-awake") => self.list_awake(),
            ("topics", "list-subscriptions") => self.list_subscriptions(name, &options),
            (collection, verb) => match command(collection, verb, name, &options) {
                Ok(command) => self.perform(&command),
                Err(invalid) => vec![show::invalid(&invalid)],
            },
        }
    }

    fn perform(&mut self, command: &Command) -> Vec<String> {
        self.index += 1;
        let at = At {
            index: self.index,
            position: 0,
        };
        let mut overlay = Overlay::new(&self.view);
        let outcome = apply(&mut overlay, command, at).expect("memory can be read");
        let writes = overlay.into_writes();
        self.view.commit(writes);
        show::outcome(&outcome)
    }

    fn get_topic(&self, name: &str) -> Vec<String> {
        let name = TopicName::parse(&full("topics", name)).expect("scripts get valid names");
        let found = read::topic(&self.view, &name).expect("memory can be read");
        vec![match found {
            Some(topic) => show::topic(&topic),
            None => show::rejected(&Rejected::TopicNotFound(name)),
        }]
    }

    fn get_subscription(&self, name: &str) -> Vec<String> {
        let name = full("subscriptions", name);
        let name = SubscriptionName::parse(&name).expect("scripts get valid names");
        let found = read::subscription(&self.view, &name).expect("memory can be read");
        vec![match found {
            Some(subscription) => show::subscription(&subscription),
            None => show::rejected(&Rejected::SubscriptionNotFound(name)),
        }]
    }

    fn list_awake(&self) -> Vec<String> {
        let awake = read::awake(&self.view).expect("memory can be read");
        awake
            .iter()
            .map(|(node, boot)| format!("node {node} in life {boot}"))
            .collect()
    }

    fn list(&mut self, collection: &str, project: &str, options: &Options<'_>) -> Vec<String> {
        let project = ProjectId::parse(&format!("projects/{project}")).expect("a valid project");
        let token = self.token(options);
        let request = page_request(options, &token);
        let page = match collection {
            "topics" => read::topics(&self.view, &project, &request)
                .map(|page| show::page(page, |topic| topic.name.to_string())),
            _ => read::subscriptions(&self.view, &project, &request)
                .map(|page| show::page(page, |subscription| subscription.name.to_string())),
        };
        self.listed(page)
    }

    fn list_subscriptions(&mut self, topic: &str, options: &Options<'_>) -> Vec<String> {
        let topic = TopicName::parse(&full("topics", topic)).expect("scripts list valid names");
        let token = self.token(options);
        let request = page_request(options, &token);
        let page = read::topic_subscriptions(&self.view, &topic, &request);
        self.listed(page.map(|page| show::page(page, SubscriptionName::to_string)))
    }

    /// The token of a request; `token=next` is the one that the last list gave out.
    fn token(&self, options: &Options<'_>) -> String {
        match options.get("token") {
            Some(&"next") => self.token.clone(),
            Some(token) => (*token).to_owned(),
            None => String::new(),
        }
    }

    fn listed(&mut self, page: Result<show::Listed, read::ListError>) -> Vec<String> {
        match page {
            Ok(listed) => {
                self.token = listed.next_token;
                listed.lines
            }
            Err(error) => vec![show::unlisted(&error)],
        }
    }
}

fn page_request<'t>(options: &Options<'_>, token: &'t str) -> PageRequest<'t> {
    let size = options.get("size").map_or(0, |size| number(size));
    PageRequest { size, token }
}

/// The words of a line; blanks within single quotes belong to a word.
fn words(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let mut words = Vec::new();
    let mut start = 0;
    for (at, character) in line.char_indices().chain([(line.len(), ' ')]) {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                words.extend((start < at).then(|| &line[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    words
}

fn command(
    collection: &str,
    verb: &str,
    name: &str,
    options: &Options<'_>,
) -> Result<Command, InvalidRequest> {
    Ok(match (collection, verb) {
        ("topics", "create") => Command::CreateTopic(topic_request(name, options).create()?),
        ("topics", "update") => {
            Command::UpdateTopic(topic_request(name, options).update(&mask(options))?)
        }
        ("topics", "delete") => Command::DeleteTopic(DeleteTopic {
            name: TopicName::parse(&full("topics", name))?,
        }),
        ("subscriptions", "create") => {
            Command::CreateSubscription(subscription_request(name, options).create()?)
        }
        ("subscriptions", "update") => {
            let request = subscription_request(name, options);
            Command::UpdateSubscription(request.update(&mask(options))?)
        }
        ("subscriptions", "delete") => Command::DeleteSubscription(DeleteSubscription {
            name: SubscriptionName::parse(&full("subscriptions", name))?,
        }),
        ("subscriptions", "detach") => Command::DetachSubscription(DetachSubscription {
            name: SubscriptionName::parse(&full("subscriptions", name))?,
        }),
        ("nodes", "awake") => {
            let (node, boot) = life(name, options);
            Command::Awake(Awake { node, boot })
        }
        ("nodes", "asleep") => {
            let (node, boot) = life(name, options);
            // sleep: the command is called so.
            Command::Asleep(Asleep { node, boot })
        }
        ("nodes", "remove") => {
            let (node, state) = (NodeId(number(name) as u64), NodeState::Removed);
            Command::SetNodeState(SetNodeState { node, state })
        }
        _ => panic!("no such request: {collection} {verb}"),
    })
}

/// A node by its number, and one of its lives.
fn life(node: &str, options: &Options<'_>) -> (NodeId, Boot) {
    let part = |text: &str| number(text) as u64;
    (NodeId(part(node)), Boot(part(options["life"])))
}

fn topic_request(name: &str, options: &Options<'_>) -> TopicRequest {
    let mut request = TopicRequest {
        name: full("topics", name),
        ..TopicRequest::default()
    };
    for (option, value) in options {
        match *option {
            "mask" => {}
            "labels" => request.labels = labels(value),
            "regions" => policy(&mut request).allowed_persistence_regions = list(value),
            "in-transit" => policy(&mut request).enforce_in_transit = true,
            "retention" => request.message_retention_duration = Some(seconds(value)),
            other => panic!("a topic has no option {other}"),
        }
    }
    request
}

fn policy(request: &mut TopicRequest) -> &mut StoragePolicyRequest {
    request.message_storage_policy.get_or_insert_default()
}

/// The next node of the cluster, which the first one founds.
fn join(number: u64, name: &str, options: &Options<'_>) -> Command {
    let node = NewNode {
        name: NodeName::parse(name).expect("scripts have valid names"),
        region: RegionName::parse(options["region"]).expect("scripts have valid names"),
        zone: ZoneName::parse("a").expect("it follows the grammar"),
        peer_address: String::new(),
        client_address: String::new(),
        join: u128::from(number).to_be_bytes(),
    };
    match number {
        1 => Command::Found(Found {
            secret: ClusterSecret([1; 16]),
            cluster: "c".to_owned(),
            node,
            shards_per_region: 1,
            registries: 1,
        }),
        _ => Command::Join(node),
    }
}

fn subscription_request(name: &str, options: &Options<'_>) -> SubscriptionRequest {
    let mut request = SubscriptionRequest {
        name: full("subscriptions", name),
        ..SubscriptionRequest::default()
    };
    for (option, value) in options {
        match *option {
            "mask" => {}
            "topic" => request.topic = full("topics", value),
            "labels" => request.labels = labels(value),
            "ack-deadline" => request.ack_deadline_seconds = number(value),
            "ordered" => request.enable_message_ordering = true,
            "exactly-once" => request.enable_exactly_once_delivery = true,
            "filter" => request.filter = value.trim_matches('\'').to_owned(),
            "dead-letter" => request.dead_letter_policy = Some(dead_letter(value)),
            "retry" => request.retry_policy = Some(retry(value)),
            "expiration" if *value == "never" => request.expiration_policy = Some(None),
            "expiration" => request.expiration_policy = Some(Some(seconds(value))),
            "retention" => request.message_retention_duration = Some(seconds(value)),
            "push" => request.push_config = true,
            "bigquery" => request.bigquery_config = true,
            other => panic!("a subscription has no option {other}"),
        }
    }
    request
}

/// A name without a slash is in project `p`; `-` is no name.
fn full(collection: &str, name: &str) -> String {
    match name {
        "-" => String::new(),
        name if name.contains('/') => name.to_owned(),
        id => format!("projects/p/{collection}/{}", id.trim_matches('\'')),
    }
}

fn mask(options: &Options<'_>) -> Vec<String> {
    options.get("mask").map_or(Vec::new(), |paths| list(paths))
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

fn labels(text: &str) -> BTreeMap<String, String> {
    list(text)
        .iter()
        .map(|label| label.split_once(':').expect("a label is key:value"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// `topic` or `topic:attempts`.
fn dead_letter(text: &str) -> DeadLetterRequest {
    let (topic, attempts) = text.split_once(':').unwrap_or((text, "0"));
    DeadLetterRequest {
        dead_letter_topic: full("topics", topic),
        max_delivery_attempts: number(attempts),
    }
}

/// `minimum..maximum` in seconds; each may be left out.
fn retry(text: &str) -> RetryRequest {
    let (minimum, maximum) = text.split_once("..").expect("a retry policy is a range");
    let part = |text: &str| (!text.is_empty()).then(|| seconds(text));
    RetryRequest {
        minimum_backoff: part(minimum),
        maximum_backoff: part(maximum),
    }
}

fn seconds(text: &str) -> SignedDuration {
    SignedDuration {
        seconds: i64::from(number(text)),
        nanos: 0,
    }
}

fn number(text: &str) -> i32 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is not a number"))
}
