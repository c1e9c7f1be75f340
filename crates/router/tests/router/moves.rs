//! Leaders and keys move while clients publish and pull through a node that has no replica.

use std::time::Duration;

use engine::control::{Command, Place, Placement, Reply, read};
use engine::dispatch::MoveReply;
use engine::table::strand::StrandKey;
use model::{ShardNumber, SurvivalGoal, TopicName};

use crate::cluster::{FIRST, Node, cluster, region, shard, soon};
use crate::reader::Reader;

#[tokio::test]
async fn a_stream_and_a_publisher_outlive_the_move_of_every_leader() {
    let nodes = cluster(3).await;
    for number in [1, 2, 3] {
        nodes[0].place(shard(number), &[1, 2]).await;
    }
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].subscription("reader", &topic).await;
    let far = &nodes[2];
    far.sees(&subscription).await;
    let mut reader = Reader::open(&far.router, &subscription, 100).await;
    const COUNT: usize = 200;
    let publishing = async {
        let mut ids = Vec::new();
        for number in 0..COUNT {
            let data = format!("{number:03}");
            // What was not done was tried again already; what is unknown is for the client.
            let id = far.publish(&topic, "key", &data).await;
            ids.push((data, id.ok()));
            if number == COUNT / 4 {
                let handed = nodes[0].replicas.hand_over(Duration::from_secs(10));
                soon("the hand-over", handed).await.expect("it runs");
            }
        }
        ids
    };
    let (published, ()) = tokio::join!(publishing, reader.read(COUNT * 9 / 10));
    let stored: Vec<_> = published.iter().filter(|(_, id)| id.is_some()).collect();
    reader.read(stored.len()).await;
    assert!(
        stored.len() >= COUNT - 2,
        "one publish is under way at a time: only that one can be unknown"
    );
    for (data, id) in stored {
        assert_eq!(reader.ids.get(data), id.as_ref(), "{data}");
    }
    assert!(reader.first.is_sorted(), "{:?}", reader.first);
    assert_ne!(nodes[0].replicas.control().leader(), Some(FIRST));
}

#[tokio::test]
async fn a_shard_that_is_new_is_heard_by_streams_that_are_open() {
    let nodes = cluster(2).await;
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].subscription("reader", &topic).await;
    nodes[1].sees(&subscription).await;
    let mut reader = Reader::open(&nodes[1].router, &subscription, 100).await;
    let founders = [FIRST].into();
    let new = Placement::new(shard(4), region(), SurvivalGoal::Region, founders);
    let placed = nodes[0].change(Command::Place(Place(vec![new]))).await;
    assert_eq!(placed, Reply::Done);
    // Messages without a key take turns, so that some of them go there.
    let mut count = 0;
    while !reader.ids.values().any(|id| id.shard().0 == 4) {
        let data = count.to_string();
        let published = nodes[1].publish(&topic, "", &data).await;
        published.expect("the cluster is well");
        count += 1;
        reader.read(count).await;
    }
}

/// The strand of a key.
fn strand(node: &Node, topic: &TopicName, key: &str) -> StrandKey {
    let found = read::topic(node.router.control().view(), topic);
    let found = found.expect("it can be read").expect("it was created");
    let topic = found.incarnation;
    let strand = node.router.secret().key_hash(topic, key);
    StrandKey { topic, strand }
}

/// Has a key live in a shard, asking again while that is unknown or was undone.
async fn move_key(node: &Node, key: StrandKey, to: ShardNumber) {
    let moved = async {
        let shards = node.replicas.shards();
        while shards.move_key(key, to, None).await != Ok(MoveReply::Moved) {
            // sleep: a leader that is just going answers nothing.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("a move", moved).await;
    let pin = soon("a look", node.replicas.shards().pin(key)).await;
    let pin = pin.expect("its group is well").expect("it is pinned");
    assert_eq!(pin.shard, to);
}

#[tokio::test]
async fn a_key_moves_there_and_back_under_load_while_leaders_change() {
    let nodes = cluster(3).await;
    for number in [1, 2, 3] {
        nodes[0].place(shard(number), &[1, 2]).await;
    }
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].subscription("reader", &topic).await;
    let far = &nodes[2];
    far.sees(&subscription).await;
    let mut reader = Reader::open(&far.router, &subscription, 100).await;
    const COUNT: usize = 300;
    let (key, is_moving) = (strand(far, &topic, "key"), std::cell::Cell::new(true));
    let publishing = async {
        let mut ids = Vec::new();
        while ids.len() < COUNT || is_moving.get() {
            let data = format!("{:05}", ids.len());
            let id = far.publish(&topic, "key", &data).await;
            ids.push((data, id.ok()));
        }
        ids
    };
    let moving = async {
        for (turn, to) in [2, 1, 2, 1, 2].into_iter().enumerate() {
            if turn == 2 {
                let handed = nodes[0].replicas.hand_over(Duration::from_secs(10));
                soon("the hand-over", handed).await.expect("it runs");
            }
            move_key(far, key, ShardNumber(to)).await;
        }
        is_moving.set(false);
    };
    let (published, (), ()) = tokio::join!(publishing, moving, reader.read(COUNT / 2));
    let stored: Vec<_> = published.iter().filter(|(_, id)| id.is_some()).collect();
    reader.read(stored.len()).await;
    assert!(
        published.len() - stored.len() <= 2,
        "publishers see a wait, never an error: {} of {}",
        stored.len(),
        published.len()
    );
    let ids: Vec<_> = stored.iter().map(|(_, id)| *id).collect();
    assert!(ids.is_sorted(), "P8");
    for (data, id) in stored {
        assert_eq!(reader.ids.get(data), id.as_ref(), "{data}");
    }
    assert!(reader.first.is_sorted(), "P2: {:?}", reader.first);
}

#[tokio::test]
async fn a_thousand_keys_move_at_once() {
    let nodes = cluster(2).await;
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].subscription("reader", &topic).await;
    let far = &nodes[1];
    far.sees(&subscription).await;
    const KEYS: usize = 1_000;
    let name = |number: usize| format!("key-{number}");
    for round in 0..2 {
        let publishes = (0..KEYS).map(|number| {
            let (far, topic) = (&far, &topic);
            async move {
                let data = format!("{number}-{round}");
                far.publish(topic, &name(number), &data)
                    .await
                    .expect("it is stored");
            }
        });
        let moves = (0..KEYS).map(|number| {
            let key = strand(far, &topic, &name(number));
            async move { move_key(far, key, ShardNumber(1 + round)).await }
        });
        futures::future::join_all(publishes).await;
        futures::future::join_all(moves).await;
    }
    let mut reader = Reader::open(&far.router, &subscription, 1_000).await;
    reader.read(2 * KEYS).await;
    for number in 0..KEYS {
        let place = |round: usize| {
            let data = format!("{number}-{round}");
            reader.first.iter().position(|first| *first == data)
        };
        assert!(place(0) < place(1), "P2 of key {number}");
    }
}
