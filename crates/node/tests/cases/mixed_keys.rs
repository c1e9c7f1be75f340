//! One publish has messages of one key, or of none.

use tonic::Code;

use crate::client::{Client, message, texts};
use crate::node::Node;

#[tokio::test]
async fn a_publish_of_several_keys_is_refused_as_a_whole() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    for keys in [["k1", "k2"], ["", "k1"], ["k1", ""]] {
        let messages = keys.map(|key| message(key, "mixed"));
        let refused = client.try_publish(&topic, &messages).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{keys:?}");
    }
    let messages = ["first", "second"].map(|text| message("k1", text));
    let ids = client.try_publish(&topic, &messages).await;
    assert_eq!(ids.expect("one key is fine").len(), 2);

    let pulled = client.pull_all(&subscription, 2).await;
    assert_eq!(texts(&pulled), ["first", "second"]);
    client.acknowledge(&subscription, &pulled).await;
    client.pull_nothing(&subscription).await;
}
