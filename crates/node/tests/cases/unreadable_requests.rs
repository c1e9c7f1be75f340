//! Bytes that are no request are the caller's fault, and no client shall send them again.

use proto::pubsub::{PubsubMessage, Topic};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::client::{Client, message};
use crate::node::Node;

#[tokio::test]
async fn a_publish_beyond_all_limits_is_refused_for_good() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("films").await;
    let endless = message("", &"x".repeat(12_000_000));
    let refused = client.try_publish(&topic, &[endless]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("payload size"), "{refused}");
    let published = client.try_publish(&topic, &[message("", "short")]).await;
    published.expect("the connection goes on");
}

#[tokio::test]
async fn a_name_that_is_no_text_is_refused_for_good() {
    let node = Node::start();
    // The first field of a message is bytes where that of a topic is text.
    let no_text = PubsubMessage {
        data: vec![0xff, 0xfe].into(),
        ..PubsubMessage::default()
    };
    for method in ["CreateTopic", "Publish"] {
        let refused = call(&node, method, no_text.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{method}: {refused}");
    }
}

async fn call(node: &Node, method: &str, request: PubsubMessage) -> Result<(), Status> {
    let endpoint = Endpoint::from_shared(format!("http://{}", node.endpoint()));
    let channel = endpoint.expect("an address").connect().await;
    let mut grpc = Grpc::new(channel.expect("it listens"));
    grpc.ready().await.expect("the connection stands");
    let path = format!("/google.pubsub.v1.Publisher/{method}");
    let path = PathAndQuery::try_from(path).expect("a path");
    let codec = ProstCodec::<PubsubMessage, Topic>::default();
    grpc.unary(Request::new(request), path, codec)
        .await
        .map(|_| ())
}
