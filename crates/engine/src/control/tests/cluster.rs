//! Nodes come, change and go; groups are wanted in places.

use std::collections::BTreeSet;

use model::limits::{NODES_MAX, SHARDS_PER_REGION_MAX};
use model::{
    ClusterSecret, FormatLevel, GroupId, NodeId, NodeName, RegionName, RegistryNumber, ShardNumber,
    SurvivalGoal, ZoneName,
};

use super::{Catalogue, command};
use crate::control::table::format::{Format, FormatKey};
use crate::control::*;
use crate::kv::Overlay;

fn region(name: &str) -> RegionName {
    RegionName::parse(name).unwrap()
}

fn new_node(number: u8, region_name: &str) -> NewNode {
    NewNode {
        name: NodeName::parse(&format!("node-{number}")).unwrap(),
        region: region(region_name),
        zone: ZoneName::parse("a").unwrap(),
        peer_address: format!("node-{number}:7000"),
        client_address: format!("node-{number}:8085"),
        join: [number; 16],
    }
}

fn found() -> Found {
    Found {
        secret: ClusterSecret([1; 16]),
        cluster: "c".to_owned(),
        node: new_node(1, "eu"),
        shards_per_region: 2,
        registries: 3,
    }
}

fn founded() -> Catalogue {
    let mut catalogue = Catalogue::default();
    assert_eq!(catalogue.reply(Command::Found(found())), Reply::Done);
    catalogue
}

fn join(catalogue: &mut Catalogue, number: u8, region_name: &str) -> Reply {
    catalogue.reply(Command::Join(new_node(number, region_name)))
}

fn set_state(catalogue: &mut Catalogue, node: u64, state: NodeState) -> Reply {
    let node = NodeId(node);
    catalogue.reply(Command::SetNodeState(SetNodeState { node, state }))
}

fn refused(why: NodeRejected) -> Reply {
    Reply::Rejected(Rejected::Node(why))
}

fn registry(number: u16) -> GroupId {
    GroupId::Registry(RegistryNumber(number))
}

fn shard(number: u16) -> GroupId {
    GroupId::Shard(ShardNumber(number))
}

fn placement(catalogue: &Catalogue, group: GroupId) -> Placement {
    read::placement(&catalogue.view, group).unwrap().unwrap()
}

#[test]
fn a_cluster_is_founded_once() {
    let mut catalogue = Catalogue::default();
    assert_eq!(read::cluster(&catalogue.view), Ok(None));
    assert_eq!(catalogue.reply(Command::Found(found())), Reply::Done);
    let again = Found {
        secret: ClusterSecret([2; 16]),
        ..found()
    };
    let refused = Reply::Rejected(Rejected::AlreadyFounded);
    assert_eq!(catalogue.reply(Command::Found(again)), refused);
    let cluster = read::cluster(&catalogue.view).unwrap().unwrap();
    assert_eq!(cluster.secret, ClusterSecret([1; 16]));
    assert_eq!(cluster.name, "c");
}

#[test]
fn a_cluster_begins_with_its_first_node_in_every_group() {
    let catalogue = founded();
    let placements = read::placements(&catalogue.view).unwrap();
    let groups: Vec<_> = placements.iter().map(|it| it.group).collect();
    assert_eq!(groups, found().groups().collect::<Vec<_>>());
    let registries = [1, 2, 3].map(registry);
    let shards = [shard(1), shard(2), shard(3)];
    assert_eq!(groups[0], GroupId::Control);
    assert_eq!(groups[1..], [registries, shards].concat());
    let first = BTreeSet::from([NodeId(1)]);
    for placement in &placements {
        assert_eq!((&placement.voters, &placement.founders), (&first, &first));
        assert_eq!(placement.home, region("eu"));
        let is_control = placement.group == GroupId::Control;
        assert_eq!(placement.founded, is_control, "{}", placement.group);
    }
    let goals = shards.map(|shard| placement(&catalogue, shard).goal);
    use SurvivalGoal::{Region, Zone};
    assert_eq!(goals, [Region, Region, Zone]);
    let node = read::node(&catalogue.view, NodeId(1)).unwrap().unwrap();
    assert_eq!(node, new_node(1, "eu").row(NodeId(1)));
}

#[test]
fn a_node_that_asks_again_gets_the_same_id() {
    let mut catalogue = founded();
    assert_eq!(join(&mut catalogue, 2, "us"), Reply::Joined(NodeId(2)));
    assert_eq!(join(&mut catalogue, 3, "us"), Reply::Joined(NodeId(3)));
    assert_eq!(join(&mut catalogue, 2, "us"), Reply::Joined(NodeId(2)));
    let regions = read::regions(&catalogue.view).unwrap();
    let firsts: Vec<_> = regions
        .iter()
        .map(|region| (region.name.as_str(), region.first_node.0))
        .collect();
    assert_eq!(firsts, [("eu", 1), ("us", 2)]);
    assert_eq!(read::nodes(&catalogue.view).unwrap().len(), 3);
}

#[test]
fn nobody_joins_what_was_not_founded() {
    let mut catalogue = Catalogue::default();
    let not_founded = refused(NodeRejected::NotFounded);
    assert_eq!(join(&mut catalogue, 2, "us"), not_founded);
}

#[test]
fn a_name_is_free_again_when_its_node_is_on_its_way_out() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    let emptied_disk = NewNode {
        join: [9; 16],
        ..new_node(2, "us")
    };
    let taken = refused(NodeRejected::NameTaken {
        name: emptied_disk.name.clone(),
        node: NodeId(2),
    });
    let rejoin = Command::Join(emptied_disk);
    assert_eq!(catalogue.reply(rejoin.clone()), taken);
    set_state(&mut catalogue, 2, NodeState::Draining);
    assert_eq!(catalogue.reply(rejoin.clone()), taken);
    set_state(&mut catalogue, 2, NodeState::Decommissioning);
    assert_eq!(catalogue.reply(rejoin), Reply::Joined(NodeId(3)));
    let back = set_state(&mut catalogue, 2, NodeState::Active);
    assert!(matches!(
        back,
        Reply::Rejected(Rejected::Node(NodeRejected::NameTaken {
            node: NodeId(3),
            ..
        }))
    ));
}

#[test]
fn a_name_is_free_for_the_node_that_takes_the_place_of_a_lost_disk() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    set_state(&mut catalogue, 2, NodeState::Replaced);
    let empty = NewNode {
        join: [9; 16],
        ..new_node(2, "us")
    };
    let joined = catalogue.reply(Command::Join(empty));
    assert_eq!(joined, Reply::Joined(NodeId(3)), "never the old id");
    for state in [NodeState::Active, NodeState::Draining] {
        let back = set_state(&mut catalogue, 2, state);
        assert!(matches!(back, Reply::Rejected(_)), "{back:?}");
    }
}

#[test]
fn a_removed_node_stays_out() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    set_state(&mut catalogue, 2, NodeState::Removed);
    let removed = refused(NodeRejected::Removed(NodeId(2)));
    assert_eq!(set_state(&mut catalogue, 2, NodeState::Active), removed);
    assert_eq!(join(&mut catalogue, 2, "us"), removed);
    let unknown = set_state(&mut catalogue, 7, NodeState::Active);
    assert_eq!(unknown, refused(NodeRejected::NotFound(NodeId(7))));
}

#[test]
fn a_node_says_where_it_is_now() {
    let mut catalogue = founded();
    let update = UpdateNode {
        node: NodeId(1),
        peer_address: "elsewhere:7000".to_owned(),
        client_address: "elsewhere:8085".to_owned(),
        zone: ZoneName::parse("b").unwrap(),
    };
    let updated = catalogue.reply(Command::UpdateNode(update));
    assert_eq!(updated, Reply::Done);
    let node = read::node(&catalogue.view, NodeId(1)).unwrap().unwrap();
    assert_eq!(node.peer_address, "elsewhere:7000");
    assert_eq!(node.zone.as_str(), "b");
    assert_eq!(node.region, region("eu"));
}

#[test]
fn a_full_cluster_lets_nobody_in() {
    let mut catalogue = founded();
    for number in 2..=NODES_MAX {
        let node = NewNode {
            name: NodeName::parse(&format!("node-{number}")).unwrap(),
            join: (number as u128).to_be_bytes(),
            ..new_node(2, "us")
        };
        let joined = catalogue.reply(Command::Join(node));
        assert_eq!(joined, Reply::Joined(NodeId(number as u64)));
    }
    let full = refused(NodeRejected::TooMany);
    assert_eq!(join(&mut catalogue, 0, "us"), full);
    set_state(&mut catalogue, 5, NodeState::Removed);
    let next = Reply::Joined(NodeId(NODES_MAX as u64 + 1));
    assert_eq!(join(&mut catalogue, 0, "us"), next);
}

#[test]
fn a_placement_changes_only_from_the_version_it_is_based_on() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "eu");
    let old = placement(&catalogue, shard(1));
    let wanted = Placement {
        voters: BTreeSet::from([NodeId(1), NodeId(2)]),
        founders: BTreeSet::from([NodeId(2)]),
        founded: true,
        ..old.clone()
    };
    let stale = Placement {
        voters: BTreeSet::from([NodeId(2)]),
        ..old.clone()
    };
    catalogue.reply(Command::Place(Place(vec![wanted.clone(), stale])));
    let placed = Placement {
        voters: wanted.voters,
        version: 1,
        ..old
    };
    assert_eq!(placement(&catalogue, shard(1)), placed, "founders stay");
}

#[test]
fn a_placement_without_voters_is_skipped() {
    let mut catalogue = founded();
    let old = placement(&catalogue, shard(1));
    let empty = Placement {
        voters: BTreeSet::new(),
        ..old.clone()
    };
    catalogue.reply(Command::Place(Place(vec![empty])));
    assert_eq!(placement(&catalogue, shard(1)), old);
}

#[test]
fn only_the_next_shard_is_made() {
    let mut catalogue = founded();
    let voters = BTreeSet::from([NodeId(1)]);
    let goal = SurvivalGoal::Region;
    let new = |group| Placement::new(group, region("eu"), goal, voters.clone());
    let wanted = vec![
        new(shard(5)),
        new(registry(9)),
        new(shard(4)),
        new(shard(5)),
    ];
    catalogue.reply(Command::Place(Place(wanted)));
    assert_eq!(placement(&catalogue, shard(4)), new(shard(4)));
    assert_eq!(placement(&catalogue, shard(5)), new(shard(5)));
    let unknown = read::placement(&catalogue.view, registry(9));
    assert_eq!(unknown, Ok(None));
    let cluster = read::cluster(&catalogue.view).unwrap().unwrap();
    assert_eq!(cluster.next_shard, ShardNumber(6));
}

#[test]
fn a_group_is_founded_for_ever() {
    let mut catalogue = founded();
    let group = shard(1);
    for _ in 0..2 {
        let founded = catalogue.reply(Command::Founded(Founded { group }));
        assert_eq!(founded, Reply::Done);
        assert!(placement(&catalogue, group).founded);
    }
    let group = shard(9);
    let unknown = catalogue.reply(Command::Founded(Founded { group }));
    assert_eq!(unknown, refused(NodeRejected::NoSuchGroup(group)));
}

#[test]
fn a_region_wants_more_shards_within_a_limit() {
    let mut catalogue = founded();
    let goal = SurvivalGoal::Zone;
    let mut add = |name: &str, count| {
        let region = region(name);
        catalogue.reply(Command::AddShards(AddShards {
            region,
            goal,
            count,
        }))
    };
    let unknown = refused(NodeRejected::NoSuchRegion(region("us")));
    assert_eq!(add("us", 1), unknown);
    assert_eq!(add("eu", 2), Reply::Done);
    let too_many = refused(NodeRejected::TooManyShards(region("eu")));
    assert_eq!(add("eu", SHARDS_PER_REGION_MAX), too_many);
    assert_eq!(add("eu", u16::MAX), too_many);
    let region = read::region(&catalogue.view, &region("eu"));
    let region = region.unwrap().unwrap();
    assert_eq!((region.region_shards, region.zone_shards), (2, 3));
}

fn place(catalogue: &mut Catalogue, group: GroupId, voters: &[u64]) {
    let voters = voters.iter().copied().map(NodeId).collect();
    let placed = Placement {
        voters,
        ..placement(catalogue, group)
    };
    catalogue.reply(Command::Place(Place(vec![placed])));
}

#[test]
fn with_two_regions_an_operator_sees_what_goes_with_each() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    let goal = SurvivalGoal::Region;
    let new = Placement::new(shard(4), region("us"), goal, BTreeSet::from([NodeId(2)]));
    catalogue.reply(Command::Place(Place(vec![new])));
    let described = read::describe_regions(&catalogue.view).unwrap();
    let [eu, us] = &described[..] else {
        panic!("two regions: {described:?}");
    };
    let all_of_eu: Vec<_> = found().groups().collect();
    assert_eq!(eu.lost_with_it, all_of_eu);
    assert_eq!(eu.shards, [1, 2, 3].map(ShardNumber));
    assert_eq!(us.lost_with_it, [shard(4)]);
    assert_eq!(us.nodes.len(), 1);
}

#[test]
fn with_three_regions_nothing_goes_with_one() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    join(&mut catalogue, 3, "ap");
    for group in found().groups() {
        place(&mut catalogue, group, &[1, 2, 3]);
    }
    for region in read::describe_regions(&catalogue.view).unwrap() {
        assert_eq!(region.lost_with_it, [], "{}", region.region.name);
    }
}

#[test]
fn a_shard_survives_what_leaves_most_of_its_voters() {
    let mut catalogue = founded();
    for (number, name) in [(2, "eu"), (3, "eu"), (4, "us"), (5, "ap")] {
        join(&mut catalogue, number, name);
    }
    let survives = |catalogue: &Catalogue| {
        let shards = read::describe_shards(&catalogue.view).unwrap();
        shards[0].survives
    };
    assert_eq!(survives(&catalogue), read::Survives::Nothing);
    place(&mut catalogue, shard(1), &[1, 2]);
    assert_eq!(survives(&catalogue), read::Survives::Nothing);
    place(&mut catalogue, shard(1), &[1, 2, 3]);
    assert_eq!(survives(&catalogue), read::Survives::Node);
    for (node, zone) in [(2, "b"), (3, "c")] {
        catalogue.reply(Command::UpdateNode(UpdateNode {
            node: NodeId(node),
            peer_address: String::new(),
            client_address: String::new(),
            zone: ZoneName::parse(zone).unwrap(),
        }));
    }
    assert_eq!(survives(&catalogue), read::Survives::Zone);
    place(&mut catalogue, shard(1), &[1, 4, 5]);
    assert_eq!(survives(&catalogue), read::Survives::Region);
}

#[test]
fn a_node_is_shown_with_what_it_does() {
    let mut catalogue = founded();
    join(&mut catalogue, 2, "us");
    let learning = Placement {
        learners: BTreeSet::from([NodeId(2)]),
        ..placement(&catalogue, GroupId::Control)
    };
    catalogue.reply(Command::Place(Place(vec![learning])));
    let nodes = read::describe_nodes(&catalogue.view).unwrap();
    assert_eq!(nodes[0].votes, found().groups().collect::<Vec<_>>());
    assert_eq!(nodes[1].votes, []);
    assert_eq!(nodes[1].learns, [GroupId::Control]);
}

#[test]
fn commands_and_rows_round_trip() {
    let catalogue = founded();
    let commands = vec![
        Command::Found(found()),
        Command::Join(new_node(2, "us")),
        Command::Place(Place(vec![placement(&catalogue, shard(3))])),
        Command::SetNodeState(SetNodeState {
            node: NodeId(2),
            state: NodeState::Draining,
        }),
        Command::Founded(Founded { group: shard(1) }),
    ];
    let commands = commands.into_iter().map(command::Command::Control);
    let proposal = command::Proposal {
        at: model::Timestamp(7),
        commands: commands.collect(),
    };
    assert_eq!(command::Proposal::decode(&proposal.encode()), Ok(proposal));
}

#[test]
fn the_format_level_rises_one_by_one_and_not_beyond_what_is_known() {
    let mut catalogue = founded();
    let first = FormatLevel::FIRST;
    assert_eq!(read::format_level(&catalogue.view), Ok(first));
    for to in [first, FormatLevel(first.0 + 2)] {
        let present = first;
        let why = refused(NodeRejected::FormatLevel { present, to });
        let command = Command::RaiseFormat(RaiseFormat { to });
        assert_eq!(catalogue.reply(command), why);
    }
    let beyond = FormatLevel::KNOWN.next();
    let mut overlay = Overlay::new(&catalogue.view);
    overlay.put(
        &FormatKey,
        &Format {
            level: FormatLevel::KNOWN,
        },
    );
    let writes = overlay.into_writes();
    catalogue.view.commit(writes);
    let mut overlay = Overlay::new(&catalogue.view);
    let command = Command::RaiseFormat(RaiseFormat { to: beyond });
    let at = At {
        index: 9,
        position: 0,
    };
    let stopped = apply(&mut overlay, &command, at);
    assert_eq!(stopped, Err(crate::Fault::UnknownFormat(beyond)));
}
