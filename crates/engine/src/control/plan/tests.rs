mod random;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    ClusterSecret, GroupId, NodeId, NodeName, RegionName, ShardNumber, SurvivalGoal, ZoneName,
};

use super::*;
use crate::control::read::Survives;
use crate::control::{At, Found, Founded, NewNode, Node, apply};
use crate::kv::Overlay;
use crate::kv::memory::MemoryView;

/// Plans until nothing is left to do, and no longer than this.
const ROUNDS_MAX: usize = 400;

/// A cluster whose groups do at once what is wanted of them.
struct Cluster {
    view: MemoryView,
    health: Health,
    index: u64,
    joined: u64,
}

impl Cluster {
    /// A cluster of one node, `eu-a`.
    fn founded() -> Self {
        Cluster::with_shards(1)
    }

    fn with_shards(shards_per_region: u16) -> Self {
        let mut cluster = Cluster {
            view: MemoryView::default(),
            health: Health::default(),
            index: 0,
            joined: 1,
        };
        cluster.apply(Command::Found(Found {
            secret: ClusterSecret([1; 16]),
            cluster: "c".to_owned(),
            node: new_node(1, "eu-a"),
            shards_per_region,
            registries: 1,
        }));
        cluster.work();
        cluster
    }

    /// A cluster of these nodes that has settled; `eu-a` is a node in zone `a` of region `eu`. The
    /// ids count from one.
    fn of(places: &[&str]) -> Self {
        let mut cluster = Cluster::founded();
        assert_eq!(places[0], "eu-a");
        cluster.join(&places[1..]);
        cluster.settle();
        cluster
    }

    fn apply(&mut self, command: Command) {
        self.index += 1;
        let mut overlay = Overlay::new(&self.view);
        let at = At {
            index: self.index,
            position: 0,
        };
        apply(&mut overlay, &command, at).unwrap();
        let writes = overlay.into_writes();
        self.view.commit(writes);
    }

    fn join(&mut self, places: &[&str]) {
        for place in places {
            self.joined += 1;
            self.apply(Command::Join(new_node(self.joined, place)));
        }
    }

    fn lose(&mut self, nodes: impl IntoIterator<Item = u64>) {
        self.health.lost.extend(nodes.into_iter().map(NodeId));
    }

    fn set_state(&mut self, node: u64, state: NodeState) {
        let node = NodeId(node);
        self.apply(Command::SetNodeState(SetNodeState { node, state }));
    }

    /// Groups are founded, and have the voters that they should have.
    fn work(&mut self) {
        for placement in self.placements() {
            let group = placement.group;
            self.apply(Command::Founded(Founded { group }));
            self.health.voters.insert(group, placement.voters);
        }
    }

    fn plan(&self) -> Vec<Command> {
        plan(&self.view, &self.health).unwrap()
    }

    /// Carries one plan out; tells whether there was anything to do.
    fn round(&mut self) -> bool {
        let commands = self.plan();
        let is_something = !commands.is_empty();
        commands.into_iter().for_each(|command| self.apply(command));
        self.work();
        is_something
    }

    fn settle(&mut self) {
        let settled = (0..ROUNDS_MAX).any(|_| !self.round());
        assert!(settled, "the plans never end: {:?}", self.plan());
    }

    fn placements(&self) -> Vec<Placement> {
        read::placements(&self.view).unwrap()
    }

    fn nodes(&self) -> Vec<Node> {
        read::nodes(&self.view).unwrap()
    }

    fn placement(&self, group: GroupId) -> Placement {
        read::placement(&self.view, group).unwrap().unwrap()
    }

    fn voters(&self, group: GroupId) -> Vec<u64> {
        let voters = self.placement(group).voters;
        voters.into_iter().map(|node| node.0).collect()
    }

    /// How many voters of a group each region has.
    fn regions_of(&self, placement: &Placement) -> BTreeMap<String, usize> {
        let nodes = self.nodes();
        let mut regions = BTreeMap::new();
        for voter in &placement.voters {
            let node = nodes.iter().find(|node| node.id == *voter).unwrap();
            *regions.entry(node.region.to_string()).or_default() += 1;
        }
        regions
    }

    fn spread(&self, group: GroupId) -> Vec<(String, usize)> {
        let regions = self.regions_of(&self.placement(group));
        regions.into_iter().collect()
    }

    /// The shards at home in a region, of one class.
    fn shards(&self, home: &str, goal: SurvivalGoal) -> Vec<GroupId> {
        let placements = self.placements().into_iter();
        placements
            .filter(|it| matches!(it.group, GroupId::Shard(_)))
            .filter(|it| it.home.as_str() == home && it.goal == goal)
            .map(|it| it.group)
            .collect()
    }
}

fn new_node(number: u64, place: &str) -> NewNode {
    let (region, zone) = place.split_once('-').unwrap();
    NewNode {
        name: NodeName::parse(&format!("node-{number}")).unwrap(),
        region: RegionName::parse(region).unwrap(),
        zone: ZoneName::parse(zone).unwrap(),
        peer_address: String::new(),
        client_address: String::new(),
        join: u128::from(number).to_be_bytes(),
    }
}

fn shard(number: u16) -> GroupId {
    GroupId::Shard(ShardNumber(number))
}

fn shares(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    let owned = |(region, count): &(&str, usize)| ((*region).to_owned(), *count);
    expected.iter().map(owned).collect()
}

/// The first shard of the first region survives the loss of a region, its second that of a zone.
const REGION_SHARD: u16 = 1;
const ZONE_SHARD: u16 = 2;

const NINE: [&str; 9] = [
    "eu-a", "eu-b", "eu-c", "us-a", "us-b", "us-c", "ap-a", "ap-b", "ap-c",
];

#[test]
fn a_cluster_of_one_node_is_where_it_should_be() {
    let cluster = Cluster::founded();
    assert_eq!(cluster.plan(), []);
}

#[test]
fn three_nodes_of_one_region_all_vote() {
    let cluster = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    for placement in cluster.placements() {
        assert_eq!(placement.voters.len(), 3, "{}", placement.group);
    }
}

#[test]
fn a_second_node_gets_no_vote_of_its_own_but_a_part_of_the_work() {
    let cluster = Cluster::of(&["eu-a", "eu-b"]);
    let mut load = BTreeMap::new();
    for placement in cluster.placements() {
        assert_eq!(placement.voters.len(), 1, "{}", placement.group);
        *load.entry(placement.voters.first().copied()).or_insert(0) += 1;
    }
    assert_eq!(load.into_values().collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn voters_of_a_region_stand_in_as_many_zones_as_there_are() {
    let cluster = Cluster::of(&["eu-a", "eu-a", "eu-a", "eu-b", "eu-b", "eu-c"]);
    for placement in cluster.placements() {
        let nodes = cluster.nodes();
        let zone = |voter: &NodeId| nodes[voter.0 as usize - 1].zone.clone();
        let zones: BTreeSet<_> = placement.voters.iter().map(zone).collect();
        assert_eq!(zones.len(), 3, "{placement:?}");
    }
}

#[test]
fn with_two_regions_nothing_leaves_its_home() {
    let cluster = Cluster::of(&["eu-a", "eu-b", "eu-c", "us-a", "us-b", "us-c"]);
    for placement in cluster.placements() {
        let home = placement.home.as_str();
        let expected = BTreeMap::from([(home.to_owned(), 3)]);
        assert_eq!(cluster.regions_of(&placement), expected);
    }
    let control = cluster.placement(GroupId::Control);
    assert_eq!(control.home.as_str(), "eu", "the first region");
    assert_eq!(control.learners.len(), 3, "the others have the catalogue");
    let shards = cluster.shards("us", SurvivalGoal::Region);
    assert_eq!(shards.len(), 1);
}

#[test]
fn with_three_regions_groups_survive_the_loss_of_any() {
    let cluster = Cluster::of(&NINE);
    for home in ["eu", "us", "ap"] {
        for shard in cluster.shards(home, SurvivalGoal::Region) {
            let spread = cluster.spread(shard);
            assert_eq!(spread.len(), 3);
            let at_home = spread.iter().find(|(region, _)| region == home);
            assert_eq!(at_home.unwrap().1, 2);
            assert_eq!(spread.iter().map(|it| it.1).sum::<usize>(), 5);
        }
        for shard in cluster.shards(home, SurvivalGoal::Zone) {
            assert_eq!(cluster.spread(shard), shares(&[(home, 3)]));
        }
    }
    assert_eq!(cluster.spread(GroupId::Control).len(), 3);
    let control = cluster.placement(GroupId::Control);
    assert_eq!((control.voters.len(), control.learners.len()), (5, 4));
}

#[test]
fn a_third_region_of_one_node_makes_three_votes_or_five() {
    let small = Cluster::of(&["eu-a", "us-a", "ap-a"]);
    let one_each = shares(&[("ap", 1), ("eu", 1), ("us", 1)]);
    assert_eq!(small.spread(shard(REGION_SHARD)), one_each);
    let witness = Cluster::of(&["eu-a", "eu-b", "us-a", "us-b", "ap-a"]);
    let five = shares(&[("ap", 1), ("eu", 2), ("us", 2)]);
    assert_eq!(witness.spread(shard(REGION_SHARD)), five);
    let uneven = Cluster::of(&["eu-a", "eu-b", "us-a", "ap-a"]);
    assert_eq!(uneven.spread(shard(REGION_SHARD)), one_each, "four is even");
}

#[test]
fn the_control_group_is_spread_over_up_to_five_regions() {
    let cluster = Cluster::of(&["eu-a", "us-a", "ap-a", "af-a", "sa-a", "oc-a"]);
    let control = cluster.placement(GroupId::Control);
    assert_eq!(cluster.regions_of(&control).len(), 5);
    assert_eq!(control.voters.len(), 5);
    assert_eq!(cluster.spread(shard(REGION_SHARD)).len(), 3);
}

#[test]
fn shards_of_new_regions_are_founded_where_they_belong() {
    let mut cluster = Cluster::of(&["eu-a", "us-a"]);
    cluster.join(&["ap-a"]);
    cluster.round();
    let shards = cluster.shards("ap", SurvivalGoal::Region);
    let placement = cluster.placement(shards[0]);
    assert_eq!(placement.founders.len(), 3, "one in each region");
    assert_eq!(placement.founders, placement.voters);
    let zone = cluster.shards("ap", SurvivalGoal::Zone);
    assert_eq!(cluster.voters(zone[0]), [3]);
}

#[test]
fn added_shards_are_made_and_spread_over_the_nodes() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c", "eu-a", "eu-b", "eu-c"]);
    cluster.apply(Command::AddShards(crate::control::AddShards {
        region: RegionName::parse("eu").unwrap(),
        goal: SurvivalGoal::Region,
        count: 40,
    }));
    cluster.settle();
    assert_eq!(cluster.shards("eu", SurvivalGoal::Region).len(), 41);
    let load = Load::of(&cluster.placements());
    let loads: Vec<_> = (1..=6).map(|node| load.get(NodeId(node))).collect();
    let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
    assert!(most - least <= 1, "{loads:?}");
}

#[test]
fn a_lost_node_is_replaced_in_one_step_of_each_group() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c", "eu-c"]);
    let group = shard(REGION_SHARD);
    let before = cluster.voters(group);
    let lost = *before.last().unwrap();
    let spare = (1..=4).find(|node| !before.contains(node)).unwrap();
    cluster.lose([lost]);
    cluster.round();
    let after = cluster.voters(group);
    assert!(after.contains(&spare) && !after.contains(&lost));
    cluster.settle();
    for placement in cluster.placements() {
        assert!(!placement.voters.contains(&NodeId(lost)));
        assert_eq!(placement.voters.len(), 3);
    }
}

#[test]
fn a_lost_node_that_nobody_replaces_keeps_its_vote() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    cluster.lose([3]);
    assert_eq!(cluster.plan(), []);
}

#[test]
fn a_lost_region_keeps_its_votes_and_stays_a_region() {
    let mut cluster = Cluster::of(&NINE);
    cluster.lose([4, 5, 6]);
    cluster.settle();
    for placement in cluster.placements() {
        let regions = cluster.regions_of(&placement);
        match placement.goal {
            SurvivalGoal::Zone => assert_eq!(regions.len(), 1),
            SurvivalGoal::Region => {
                assert_eq!(regions.len(), 3);
                assert_eq!(regions["us"], 1, "one vote waits for the region");
            }
        }
    }
    let settled = cluster.placements();
    cluster.health.lost.clear();
    cluster.settle();
    for shard in cluster.shards("us", SurvivalGoal::Region) {
        assert_eq!(cluster.regions_of(&cluster.placement(shard))["us"], 2);
    }
    assert_ne!(cluster.placements(), settled, "the votes go home");
}

#[test]
fn a_fourth_region_takes_the_votes_of_a_lost_one() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "us-a", "us-b", "ap-a", "ap-b"]);
    cluster.join(&["af-a", "af-b"]);
    cluster.settle();
    let group = shard(REGION_SHARD);
    assert!(
        !cluster
            .spread(group)
            .iter()
            .any(|(region, _)| region == "af")
    );
    cluster.lose([3, 4]);
    cluster.settle();
    let expected = shares(&[("af", 1), ("ap", 2), ("eu", 2)]);
    assert_eq!(cluster.spread(group), expected);
}

#[test]
fn a_group_without_a_majority_is_left_alone() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    cluster.lose([2, 3]);
    cluster.join(&["eu-b", "eu-c"]);
    cluster.round();
    assert_eq!(cluster.voters(shard(REGION_SHARD)), [1, 2, 3]);
}

#[test]
fn a_node_leaves_when_its_replicas_are_elsewhere_by_word_of_their_leaders() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c", "eu-d"]);
    let group = shard(REGION_SHARD);
    let leaving = *cluster.voters(group).first().unwrap();
    cluster.set_state(leaving, NodeState::Decommissioning);
    let is_out = |cluster: &Cluster| {
        let node = read::node(&cluster.view, NodeId(leaving)).unwrap();
        node.unwrap().state == NodeState::Removed
    };
    let stale = cluster.health.voters[&group].clone();
    for _ in 0..20 {
        cluster.round();
        cluster.health.voters.insert(group, stale.clone());
    }
    assert!(!is_out(&cluster), "it may still be asked for its vote");
    cluster.health.voters.remove(&group);
    let departs = |command: &Command| matches!(command, Command::SetNodeState(_));
    assert!(
        !cluster.plan().iter().any(departs),
        "nothing is known of a group"
    );
    cluster.work();
    cluster.settle();
    assert!(is_out(&cluster));
    let control = cluster.placement(GroupId::Control);
    assert!(!control.learners.contains(&NodeId(leaving)));
    for placement in cluster.placements() {
        assert!(!placement.voters.contains(&NodeId(leaving)));
        assert_eq!(placement.voters.len(), 3);
    }
}

#[test]
fn a_replaced_node_keeps_its_votes_until_another_has_come_for_each() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    cluster.set_state(3, NodeState::Replaced);
    cluster.settle();
    for placement in cluster.placements() {
        assert_eq!(placement.voters.len(), 3, "nobody could come for it");
        assert!(!placement.learners.contains(&NodeId(3)), "it has no disk");
    }
    cluster.join(&["eu-c"]);
    cluster.round();
    let group = shard(REGION_SHARD);
    assert_eq!(cluster.voters(group), [1, 2, 4], "in one step");
    cluster.settle();
    for placement in cluster.placements() {
        assert_eq!(placement.voters.len(), 3);
        assert!(!placement.voters.contains(&NodeId(3)));
    }
    assert_eq!(cluster.nodes()[2].state, NodeState::Removed);
}

#[test]
fn a_departure_is_told_before_it_happens() {
    let tell = |cluster: &Cluster, node| -> Vec<_> {
        let consequences = departure(&cluster.view, &BTreeSet::new(), NodeId(node)).unwrap();
        let told = consequences.into_iter();
        told.map(|it| (it.group, it.now, it.then)).collect()
    };
    let four = Cluster::of(&["eu-a", "eu-b", "eu-c", "eu-d"]);
    for node in 1..=4 {
        assert_eq!(tell(&four, node), [], "another zone takes its place");
    }
    let three = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    let weaker = (GroupId::Control, Survives::Zone, Some(Survives::Nothing));
    assert!(tell(&three, 1).contains(&weaker), "{:?}", tell(&three, 1));
    let alone = Cluster::of(&["eu-a", "us-a", "ap-a"]);
    let us = alone.shards("us", SurvivalGoal::Zone)[0];
    assert!(tell(&alone, 2).contains(&(us, Survives::Nothing, None)));
}

#[test]
fn the_only_voter_hands_over_before_it_leaves() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b"]);
    let group = shard(REGION_SHARD);
    let [only] = cluster.voters(group)[..] else {
        panic!("one votes");
    };
    cluster.set_state(only, NodeState::Decommissioning);
    cluster.round();
    assert_eq!(cluster.voters(group), [1, 2]);
    cluster.settle();
    assert_eq!(cluster.voters(group), [3 - only]);
}

#[test]
fn a_region_that_is_given_up_hands_its_groups_over_but_for_those_that_must_not_leave() {
    let mut cluster = Cluster::of(&NINE);
    for node in 1..=3 {
        cluster.set_state(node, NodeState::Decommissioning);
    }
    cluster.settle();
    let control = cluster.placement(GroupId::Control);
    assert_ne!(control.home.as_str(), "eu");
    assert_eq!(control.voters.len(), 3, "two regions are left");
    let moved = cluster.placement(shard(REGION_SHARD));
    assert_ne!(moved.home.as_str(), "eu");
    let kept = cluster.placement(shard(ZONE_SHARD));
    assert_eq!(
        cluster.regions_of(&kept),
        BTreeMap::from([("eu".to_owned(), 3)])
    );
}

#[test]
fn a_draining_node_keeps_what_it_has_and_gets_nothing() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c"]);
    cluster.set_state(2, NodeState::Draining);
    assert_eq!(cluster.plan(), []);
    cluster.join(&["us-a"]);
    cluster.set_state(4, NodeState::Draining);
    cluster.settle();
    assert_eq!(cluster.shards("us", SurvivalGoal::Zone), []);
}

#[test]
fn a_group_on_its_way_gets_no_next_step_until_one_that_was_to_come_is_gone() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b", "eu-c", "eu-c"]);
    let group = shard(REGION_SHARD);
    let before = cluster.health.voters[&group].clone();
    let lost = before.last().unwrap().0;
    cluster.lose([lost]);
    cluster.round();
    let coming = *cluster
        .voters(group)
        .iter()
        .find(|it| !before.contains(&NodeId(**it)))
        .unwrap();
    cluster.health.voters.insert(group, before.clone());
    cluster.set_state(coming, NodeState::Draining);
    cluster.join(&["eu-c"]);
    cluster.health.lost.remove(&NodeId(lost));
    cluster.set_state(coming, NodeState::Active);
    let changes = |cluster: &Cluster| match &cluster.plan()[..] {
        [Command::Place(Place(placements)), ..] => {
            let placement = placements.iter().find(|it| it.group == group);
            placement.is_some_and(|it| it.voters != cluster.placement(group).voters)
        }
        _ => false,
    };
    assert!(!changes(&cluster), "it is on its way");
    cluster.lose([coming]);
    assert!(changes(&cluster), "that way leads nowhere");
}

/// A second voter that never came would have to agree to everything that is planned without it.
#[test]
fn one_that_never_came_does_not_keep_the_only_voter_from_leaving() {
    let mut cluster = Cluster::of(&["eu-a", "eu-b"]);
    let group = shard(REGION_SHARD);
    let [only] = cluster.voters(group)[..] else {
        panic!("one votes");
    };
    let before = cluster.health.voters.clone();
    cluster.set_state(only, NodeState::Decommissioning);
    cluster.round();
    assert_eq!(cluster.voters(group), [1, 2]);
    cluster.health.voters = before;
    cluster.set_state(3 - only, NodeState::Replaced);
    cluster.join(&["eu-b"]);
    cluster.settle();
    assert_eq!(cluster.voters(group), [3]);
}

#[test]
fn a_group_that_does_not_exist_yet_waits_for_its_founders() {
    let mut cluster = Cluster::of(&["eu-a"]);
    cluster.apply(Command::AddShards(crate::control::AddShards {
        region: RegionName::parse("eu").unwrap(),
        goal: SurvivalGoal::Region,
        count: 1,
    }));
    for command in cluster.plan() {
        cluster.apply(command);
    }
    cluster.join(&["eu-b", "eu-c"]);
    for command in cluster.plan() {
        cluster.apply(command);
    }
    assert_eq!(cluster.voters(shard(3)), [1]);
    assert_eq!(cluster.voters(shard(REGION_SHARD)), [1, 2]);
}
