//! A region is cut off from the others, wholly or in one direction, with clients inside. Needs what
//! [`crate::regions`] needs.

use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{GetTopicRequest, PublishRequest, PubsubMessage};
use tokio::time::{Instant, interval, timeout};
use tonic::{Code, Request, Status};

use crate::audit::load::{Load, TOPIC_ALONE};
use crate::audit::resources::create_topic;
use crate::audit::way::{ask, to};
use crate::cluster::Cluster;
use crate::{ACKS, PACE, regions};

/// The region that is cut off: it founded the cluster, and leads at first.
const LOST: usize = 0;
const OTHERS: [usize; 2] = [1, 2];
/// The deadline of a client inside.
const CALL_MAX: Duration = Duration::from_secs(5);
/// How long it may take until the node knows that it can't serve.
const REFUSED_IN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_is_cut_off_refuses_and_catches_up() {
    let test = "cut_region::a_region_that_is_cut_off_refuses_and_catches_up";
    if !regions::inside(test) {
        return;
    }
    let both_ways = OTHERS.map(|other| [(LOST, other), (other, LOST)]);
    cut_off(both_ways.as_flattened()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_can_hear_but_not_speak_refuses_and_catches_up() {
    let test = "cut_region::a_region_that_can_hear_but_not_speak_refuses_and_catches_up";
    if !regions::inside(test) {
        return;
    }
    cut_off(&OTHERS.map(|other| (LOST, other))).await;
}

async fn cut_off(ways: &[(usize, usize)]) {
    regions::build(&["north", "south", "west"]);
    let cluster = Cluster::of_regions_at(|number, place| {
        place.host = regions::host(number);
        place.runner = regions::runner(&place.region);
    })
    .await;
    let endpoints = cluster.endpoints();
    create_topic(&endpoints, TOPIC_ALONE).await;
    let load = Load::start(&endpoints, PACE).await;
    load.goes_on(ACKS).await;

    ways.iter().for_each(|(from, to)| regions::cut(*from, *to));
    is_refused_in_time(&endpoints[LOST]).await;
    catalogue_is_refused_in_time(&endpoints[LOST]).await;
    says_that_it_leads_nothing(&endpoints[LOST]).await;
    load.goes_on(ACKS).await;
    ways.iter().for_each(|(from, to)| regions::mend(*from, *to));

    cluster.ready().await;
    load.goes_on(ACKS).await;
    cluster.ends_well(load).await;
}

/// Clients inside are answered before their deadlines, and soon told that the node can't serve.
async fn is_refused_in_time(endpoint: &str) {
    let give_up = Instant::now() + REFUSED_IN;
    let mut look = interval(Duration::from_millis(100));
    for number in 0.. {
        look.tick().await;
        // Each has a new key, for which others must be asked.
        let answer = timeout(CALL_MAX, publish(endpoint, number)).await;
        match answer.expect("an answer before the deadline") {
            Ok(()) => {}
            Err(status) if status.code() == Code::Unavailable => return,
            Err(status) => panic!("not UNAVAILABLE but {status:?}"),
        }
        assert!(
            Instant::now() < give_up,
            "a region without a majority serves"
        );
    }
}

/// The same for what the catalogue says.
async fn catalogue_is_refused_in_time(endpoint: &str) {
    let mut topics = PublisherClient::new(to(endpoint).connect_lazy());
    let give_up = Instant::now() + REFUSED_IN;
    loop {
        let mut request = Request::new(GetTopicRequest {
            topic: TOPIC_ALONE.to_owned(),
        });
        request.set_timeout(CALL_MAX);
        let answer = timeout(CALL_MAX, topics.get_topic(request)).await;
        match answer.expect("an answer before the deadline") {
            Ok(_) => assert!(Instant::now() < give_up, "a minority knows what is current"),
            Err(status) if status.code() == Code::Unavailable => return,
            Err(status) => panic!("not UNAVAILABLE but {status:?}"),
        }
    }
}

/// Those who watch all nodes see each group led once, and each backlog.
async fn says_that_it_leads_nothing(endpoint: &str) {
    let give_up = Instant::now() + REFUSED_IN;
    let mut look = interval(Duration::from_millis(100));
    loop {
        look.tick().await;
        let page = ask(endpoint, "/metrics").await.expect("a page");
        let led = page
            .lines()
            .filter(|line| line.starts_with("orderly_groups_led{"));
        let led: Vec<_> = led.filter(|line| !line.ends_with(" 0")).collect();
        if led.is_empty() && page.contains("orderly_groups_led{") {
            return;
        }
        assert!(Instant::now() < give_up, "it is cut off and leads {led:?}");
    }
}

async fn publish(endpoint: &str, number: u64) -> Result<(), Status> {
    let channel = to(endpoint).connect_lazy();
    let message = PubsubMessage {
        data: "from inside".into(),
        ordering_key: format!("inside-{number}"),
        ..PubsubMessage::default()
    };
    let mut request = Request::new(PublishRequest {
        topic: TOPIC_ALONE.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    });
    request.set_timeout(CALL_MAX);
    PublisherClient::new(channel)
        .publish(request)
        .await
        .map(drop)
}
