//! Whatever happens to the nodes, no plan endangers a group, and the plans end.

use proptest::prelude::*;

use super::*;

/// Something that happens to the cluster.
#[derive(Clone, Debug)]
enum Event {
    Join { region: usize, zone: usize },
    Lose(prop::sample::Index),
    Return,
    SetState(prop::sample::Index, NodeState),
    AddShards { region: usize, goal: SurvivalGoal },
    Plan { is_known: bool },
}

const REGIONS: [&str; 5] = ["eu", "us", "ap", "af", "sa"];
const ZONES: [&str; 3] = ["a", "b", "c"];

fn event() -> impl Strategy<Value = Event> {
    use NodeState::{Active, Decommissioning, Draining, Replaced};
    let goal = prop::sample::select(vec![SurvivalGoal::Zone, SurvivalGoal::Region]);
    let state = prop::sample::select(vec![Active, Draining, Decommissioning, Replaced]);
    prop_oneof![
        6 => (0..REGIONS.len(), 0..ZONES.len()).prop_map(|(region, zone)| Event::Join { region, zone }),
        2 => any::<prop::sample::Index>().prop_map(Event::Lose),
        1 => Just(Event::Return),
        2 => (any::<prop::sample::Index>(), state).prop_map(|(node, state)| Event::SetState(node, state)),
        1 => (0..REGIONS.len(), goal).prop_map(|(region, goal)| Event::AddShards { region, goal }),
        8 => any::<bool>().prop_map(|is_known| Event::Plan { is_known }),
    ]
}

impl Cluster {
    fn happens(&mut self, event: &Event) {
        match event {
            Event::Join { region, zone } if self.joined < 16 => {
                self.join(&[&format!("{}-{}", REGIONS[*region], ZONES[*zone])]);
            }
            Event::Join { .. } => {}
            Event::Lose(node) => self.lose([node.index(self.joined as usize) as u64 + 1]),
            Event::Return => self.health.lost.clear(),
            Event::SetState(node, state) => {
                self.set_state(node.index(self.joined as usize) as u64 + 1, *state);
            }
            Event::AddShards { region, goal } => {
                self.apply(Command::AddShards(crate::control::AddShards {
                    region: RegionName::parse(REGIONS[*region]).unwrap(),
                    goal: *goal,
                    count: 1,
                }));
            }
            Event::Plan { is_known } => {
                if !is_known {
                    self.health.voters.clear();
                }
                self.checked_round();
            }
        }
    }

    /// Carries one plan out, and looks at what it does to each group.
    fn checked_round(&mut self) -> bool {
        let before = self.placements();
        let is_something = self.round();
        for old in &before {
            self.check_step(old, &self.placement(old.group));
        }
        is_something
    }

    fn check_step(&self, old: &Placement, new: &Placement) {
        let coming: Vec<_> = new.voters.difference(&old.voters).collect();
        let leaving: Vec<_> = old.voters.difference(&new.voters).collect();
        assert!(coming.len() <= 1 && leaving.len() <= 1, "{old:?} {new:?}");
        assert!(leaving.len() * 2 <= old.voters.len(), "{old:?} {new:?}");
        assert_eq!((&new.founders, &new.goal), (&old.founders, &old.goal));
        if old.voters == new.voters {
            return;
        }
        let is_well = |voter: &&NodeId| {
            let state = self.nodes()[voter.0 as usize - 1].state;
            !self.health.lost.contains(*voter)
                && !matches!(state, NodeState::Removed | NodeState::Replaced)
        };
        for voters in [&old.voters, &new.voters] {
            let well = voters.iter().filter(is_well).count();
            assert!(well * 2 > voters.len(), "{old:?} {new:?}");
        }
        for voter in coming {
            let node = &self.nodes()[voter.0 as usize - 1];
            assert_eq!(node.state, NodeState::Active);
            assert!(!self.health.lost.contains(voter));
        }
    }

    fn staying(&self, region: &str) -> Vec<Node> {
        let nodes = self.nodes().into_iter();
        nodes
            .filter(|node| node.state.keeps_replicas() && node.region.as_str() == region)
            .collect()
    }

    /// Looks at a cluster whose nodes are all well and active, or out, and which has settled.
    fn check_settled(&self) {
        let regions: Vec<_> = REGIONS
            .into_iter()
            .filter(|it| !self.staying(it).is_empty())
            .collect();
        for placement in self.placements() {
            let home = placement.home.as_str();
            if !regions.contains(&home) {
                assert!(placement.goal == SurvivalGoal::Zone || regions.is_empty());
                continue;
            }
            assert_eq!(placement.voters.len() % 2, 1, "{placement:?}");
            let shares = self.regions_of(&placement);
            match placement.goal == SurvivalGoal::Region && regions.len() >= 3 {
                true => self.check_spread(&placement, &shares, regions.len()),
                false => {
                    let most = self.staying(home).len().min(3);
                    let odd = if most == 2 { 1 } else { most };
                    assert_eq!(shares, BTreeMap::from([(home.to_owned(), odd)]));
                }
            }
            self.check_zones(&placement, &shares);
        }
        for region in regions {
            for goal in [SurvivalGoal::Zone, SurvivalGoal::Region] {
                let row = read::region(&self.view, &RegionName::parse(region).unwrap());
                let wanted = row.unwrap().unwrap().shards(goal);
                assert!(self.shards(region, goal).len() >= usize::from(wanted));
            }
        }
    }

    /// The loss of any one region leaves a majority.
    fn check_spread(
        &self,
        placement: &Placement,
        shares: &BTreeMap<String, usize>,
        regions: usize,
    ) {
        let voters = placement.voters.len();
        assert!(voters <= 5, "{placement:?}");
        assert!(shares.len() >= 3 && shares.len() <= regions, "{shares:?}");
        assert!(
            shares.contains_key(placement.home.as_str()),
            "{placement:?}"
        );
        for count in shares.values() {
            assert!((voters - count) * 2 > voters, "{shares:?}");
        }
        if placement.group != GroupId::Control {
            assert_eq!(shares.len(), 3);
        }
        let doubles = shares
            .keys()
            .filter(|region| self.staying(region).len() >= 2);
        if shares.len() == 3 && doubles.count() >= 2 {
            assert_eq!(voters, 5, "{shares:?}");
        }
    }

    fn check_zones(&self, placement: &Placement, shares: &BTreeMap<String, usize>) {
        for (region, count) in shares {
            let zones = |nodes: Vec<Node>| -> usize {
                let zones = nodes.into_iter().map(|node| node.zone);
                zones.collect::<BTreeSet<_>>().len()
            };
            let all = self.staying(region);
            let voting = all
                .iter()
                .filter(|node| placement.voters.contains(&node.id));
            let used = zones(voting.cloned().collect());
            assert_eq!(used, zones(all).min(*count), "{placement:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn plans_are_safe_and_end(events in prop::collection::vec(event(), 1..40)) {
        let mut cluster = Cluster::founded();
        for event in &events {
            cluster.happens(event);
        }
        let ends = |cluster: &mut Cluster| (0..ROUNDS_MAX).any(|_| !cluster.checked_round());
        prop_assert!(ends(&mut cluster), "{:?}", cluster.plan());

        cluster.health.lost.clear();
        for node in cluster.nodes() {
            if matches!(node.state, NodeState::Draining | NodeState::Replaced) {
                cluster.set_state(node.id.0, NodeState::Active);
            }
        }
        prop_assert!(ends(&mut cluster), "{:?}", cluster.plan());
        cluster.check_settled();
    }
}
