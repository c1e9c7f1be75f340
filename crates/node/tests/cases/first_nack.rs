//! The first message of a key is given back: it comes again before any other of its key.

use std::collections::VecDeque;

use proto::pubsub::{ReceivedMessage, StreamingPullRequest};

use crate::client::{Client, ordered, text};
use crate::node::Node;

const PUBLISHED: [&str; 5] = ["0", "1", "2", "3", "4"];

#[tokio::test]
async fn pulls_of_one_repeat_the_head() {
    pulls(1).await;
}

#[tokio::test]
async fn pulls_of_ten_repeat_the_head() {
    pulls(10).await;
}

#[tokio::test]
async fn a_stream_repeats_the_head() {
    let node = Node::start();
    let client = Client::new(&node);
    let subscription = publish(&client).await;
    let mut stream = client
        .stream(&subscription, StreamingPullRequest::default())
        .await;
    let mut order = Order::default();
    while !order.is_complete() {
        let one_or_more = stream.response_within(crate::client::SOON).await;
        let received = crate::stream::messages(&one_or_more);
        order.receive(&client, &subscription, received).await;
    }
}

async fn pulls(max_messages: i32) {
    let node = Node::start();
    let client = Client::new(&node);
    let subscription = publish(&client).await;
    let mut order = Order::default();
    while !order.is_complete() {
        let received = client.pull(&subscription, max_messages).await;
        order.receive(&client, &subscription, received).await;
    }
}

async fn publish(client: &Client) -> String {
    let topic = client.topic("orders").await;
    let subscription = client.subscription("shipping", &topic, ordered()).await;
    client.publish(&topic, "key", &PUBLISHED).await;
    subscription
}

/// What has come since the first message was given back.
#[derive(Default)]
struct Order {
    gave_back: bool,
    since: Vec<String>,
}

impl Order {
    /// A consumer that gives back the first delivery, ignores what came along with it, and
    /// acknowledges everything after that.
    async fn receive(
        &mut self,
        client: &Client,
        subscription: &str,
        received: Vec<ReceivedMessage>,
    ) {
        let mut received = VecDeque::from(received);
        if !self.gave_back {
            let head = received.pop_front().expect("something came");
            assert_eq!(text(&head), "0");
            client.nack(subscription, &[head]).await;
            self.gave_back = true;
            return;
        }
        for one in received {
            self.since.push(text(&one).to_owned());
            assert_eq!(self.since, PUBLISHED[..self.since.len()]);
            client.acknowledge(subscription, &[one]).await;
        }
    }

    fn is_complete(&self) -> bool {
        self.since.len() == PUBLISHED.len()
    }
}
