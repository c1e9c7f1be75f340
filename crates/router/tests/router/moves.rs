//! Leaders move while clients publish and pull through a node that has no replica.

use std::time::Duration;

use engine::control::{Command, Place, Placement, Reply};
use model::SurvivalGoal;

use crate::cluster::{FIRST, cluster, region, shard, soon};
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
