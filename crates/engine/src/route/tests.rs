use std::collections::BTreeMap;

use model::{Incarnation, NodeId};

use super::*;
use crate::control::{SURVIVAL_LABEL, StoragePolicy};

const ALL: [&str; 3] = ["ap", "eu", "us"];

fn region(name: &str) -> RegionName {
    RegionName::parse(name).unwrap()
}

fn regions(names: &[&str]) -> BTreeSet<RegionName> {
    names.iter().map(|name| region(name)).collect()
}

fn placement(number: u16, home: &str, goal: SurvivalGoal) -> Placement {
    let group = GroupId::Shard(ShardNumber(number));
    let voters = BTreeSet::from([NodeId(1)]);
    Placement {
        founded: true,
        ..Placement::new(group, region(home), goal, voters)
    }
}

/// Region shards 1 and 2 and the zone shard 3 in the first region, 4 to 6 in the second, and so on.
fn routes(names: &[&str]) -> Routes {
    use SurvivalGoal::{Region, Zone};
    let goals = [Region, Region, Zone];
    let shards = names
        .iter()
        .flat_map(|name| goals.map(|goal| (*name, goal)));
    let placements: Vec<_> = (1..)
        .zip(shards)
        .map(|(number, (name, goal))| placement(number, name, goal))
        .collect();
    Routes::new(regions(names), &placements)
}

fn topic() -> Topic {
    Topic {
        name: TopicName::parse("projects/p/topics/top-1").unwrap(),
        incarnation: Incarnation(1),
        version: 1,
        labels: BTreeMap::new(),
        subscriptions: 0,
        storage_policy: None,
    }
}

fn within(allowed: &[&str], enforce_in_transit: bool) -> Topic {
    let policy = StoragePolicy {
        allowed: regions(allowed),
        enforce_in_transit,
    };
    Topic {
        storage_policy: Some(policy),
        ..topic()
    }
}

/// Where the next two unkeyed messages go that are published in a region, which is nearest to `us`.
fn turns(routes: &Routes, publisher: &str, topic: &Topic) -> Vec<u16> {
    let near = [region(publisher), region("us")];
    let turn = |turn| route(routes, &near, topic, Spread::Turn(turn)).unwrap();
    [0, 1].map(|at| turn(at).shard.0).to_vec()
}

#[test]
fn messages_stay_in_the_region_of_their_publisher() {
    let routes = routes(&ALL);
    assert_eq!(turns(&routes, "ap", &topic()), [1, 2]);
    assert_eq!(turns(&routes, "us", &topic()), [7, 8]);
}

#[test]
fn a_topic_that_need_not_survive_a_region_has_the_latency_of_its_own() {
    let mut topic = topic();
    topic.labels.insert(SURVIVAL_LABEL.into(), "zone".into());
    assert_eq!(turns(&routes(&ALL), "eu", &topic), [6, 6]);
    topic.labels.insert(SURVIVAL_LABEL.into(), "region".into());
    assert_eq!(turns(&routes(&ALL), "eu", &topic), [4, 5]);
}

#[test]
fn a_storage_policy_is_kept_by_shards_that_stay_at_home() {
    let routes = routes(&ALL);
    assert_eq!(turns(&routes, "eu", &within(&["eu", "us"], false)), [6, 6]);
    assert_eq!(turns(&routes, "ap", &within(&["eu", "us"], false)), [9, 9]);
    assert_eq!(turns(&routes, "us", &within(&["eu"], false)), [6, 6]);
    assert_eq!(turns(&routes, "us", &within(&ALL, false)), [7, 8]);
}

#[test]
fn only_what_goes_down_with_its_region_is_replaced() {
    let routes = routes(&ALL);
    let near = [region("eu")];
    let replaceable = |topic: &Topic| {
        let routed = route(&routes, &near, topic, Spread::Turn(0)).unwrap();
        assert_eq!(routed.home, near[0]);
        routed.is_replaceable
    };
    assert!(replaceable(&within(&["eu", "us"], false)));
    assert!(!replaceable(&within(&["eu"], false)), "nowhere else");
    assert!(!replaceable(&topic()), "others lead it then");
}

#[test]
fn a_storage_policy_of_the_only_region_holds_when_others_come() {
    assert_eq!(
        turns(&routes(&["eu"]), "eu", &within(&["eu"], false)),
        [3, 3]
    );
    assert_eq!(turns(&routes(&["eu"]), "eu", &topic()), [1, 2]);
}

#[test]
fn without_a_shard_of_its_class_a_message_waits() {
    let routes = Routes::new(
        regions(&["eu"]),
        &[placement(1, "eu", SurvivalGoal::Region)],
    );
    let near = [region("eu")];
    let routed = route(&routes, &near, &within(&["eu"], false), Spread::Turn(0));
    assert!(routed.is_err());
}

#[test]
fn shards_that_are_not_founded_yet_get_nothing_beside_those_that_are() {
    let goal = SurvivalGoal::Region;
    let unfounded = |number| Placement {
        founded: false,
        ..placement(number, "eu", goal)
    };
    let both = Routes::new(regions(&["eu"]), &[unfounded(1), placement(2, "eu", goal)]);
    assert_eq!(both.shards(&region("eu"), goal), [ShardNumber(2)]);
    let young = Routes::new(regions(&["eu"]), &[unfounded(1), unfounded(2)]);
    assert_eq!(young.shards(&region("eu"), goal).len(), 2);
}

#[test]
fn one_more_shard_takes_an_equal_part_of_the_keys_and_moves_no_other() {
    let hash = |key: u64| {
        KeyHash(
            model::ClusterSecret([7; 16])
                .key_hash(Incarnation(1), &key.to_string())
                .0,
        )
    };
    let mut counts = [0; 5];
    for key in 0..5_000 {
        let (four, five) = (
            Spread::Key(hash(key)).over(4),
            Spread::Key(hash(key)).over(5),
        );
        counts[five] += 1;
        assert!(
            five == four || five == 4,
            "key {key} went from {four} to {five}"
        );
    }
    for count in counts {
        assert!((850..1_150).contains(&count), "{counts:?}");
    }
}

#[test]
fn a_policy_that_is_enforced_in_transit_closes_other_regions() {
    let closed = within(&["eu", "us"], true);
    assert_eq!(admit(&closed, &region("eu")), Ok(()));
    let refused = admit(&closed, &region("ap")).unwrap_err().to_string();
    assert!(refused.contains("eu, us"), "{refused}");
    assert_eq!(admit(&within(&["eu"], false), &region("ap")), Ok(()));
    assert_eq!(admit(&topic(), &region("ap")), Ok(()));
}

#[test]
fn an_operator_pins_keys_only_where_their_topic_may_be() {
    use SurvivalGoal::{Region, Zone};
    let routes = routes(&ALL);
    let of_shard = |topic: &Topic, placement: &Placement| {
        let places = Places::of(&routes, topic, Wanted::Shard(placement));
        places.map_err(|why| why.to_string())
    };
    let zone_topic = within(&["eu", "us"], false);
    let fits = of_shard(&topic(), &placement(4, "eu", Region)).unwrap();
    assert!(fits.has(ShardNumber(4)) && !fits.has(ShardNumber(5)));
    assert!(of_shard(&zone_topic, &placement(6, "eu", Zone)).is_ok());

    let refused = of_shard(&zone_topic, &placement(3, "ap", Zone)).unwrap_err();
    assert!(refused.contains("message_storage_policy"), "{refused}");
    assert!(refused.contains("eu, us"), "{refused}");
    let refused = of_shard(&topic(), &placement(6, "eu", Zone)).unwrap_err();
    assert!(
        refused.contains("shard-6 is of survival goal \"zone\""),
        "{refused}"
    );
    // A shard whose copies are in all regions is at home in an allowed one.
    let refused = of_shard(&zone_topic, &placement(4, "eu", Region)).unwrap_err();
    assert!(refused.contains("goal \"zone\""), "{refused}");
    let young = Placement {
        founded: false,
        ..placement(4, "eu", Region)
    };
    assert!(of_shard(&topic(), &young).is_err());
}

#[test]
fn keys_of_a_region_are_spread_over_its_shards_as_new_ones_are() {
    let routes = routes(&ALL);
    let in_region =
        |topic: &Topic, name: &str| Places::of(&routes, topic, Wanted::Region(&region(name)));
    let places = in_region(&topic(), "eu").unwrap();
    for key in 0..100_u8 {
        let spread = Spread::Key(KeyHash([key; 16]));
        let by_itself = route(&routes, &[region("eu")], &topic(), spread);
        assert_eq!(places.choose(spread), by_itself.unwrap().shard);
    }
    let only_us = within(&["us"], false);
    assert!(matches!(
        in_region(&only_us, "eu"),
        Err(Misplaced::NotAllowed { .. })
    ));
    assert!(matches!(
        in_region(&topic(), "nowhere"),
        Err(Misplaced::NoShard { .. })
    ));
}

#[test]
fn a_key_stays_where_its_topic_may_be_stored() {
    let routes = routes(&ALL);
    let fitting = |topic: &Topic| -> Vec<u16> {
        let shards = (1..=10).filter(|number| fits(&routes, topic, ShardNumber(*number)));
        shards.collect()
    };
    assert_eq!(fitting(&topic()), [1, 2, 4, 5, 7, 8]);
    assert_eq!(fitting(&within(&["eu"], false)), [6]);
    assert_eq!(fitting(&within(&ALL, false)), [1, 2, 4, 5, 7, 8]);
    let mut local = topic();
    local.labels = [(SURVIVAL_LABEL.to_owned(), "zone".to_owned())].into();
    assert_eq!(fitting(&local), [3, 6, 9]);
}
