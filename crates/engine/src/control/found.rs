//! The birth of the cluster.

use std::collections::BTreeSet;

use model::{ClusterSecret, GroupId, NodeId, RegistryNumber, ShardNumber, SurvivalGoal};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::cluster::{Cluster, ClusterKey};
use super::table::node::NodeKey;
use super::table::placement::PlacementKey;
use super::{NewNode, Outcome, Placement, Region, Rejected, Reply};
use crate::kv::{Overlay, ViewExt};

/// The node that founds.
const FOUNDER: NodeId = NodeId(1);

/// Founds the cluster: the first entry of its log, and never a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The key of the cluster's hashes.
    pub secret: ClusterSecret,
    /// The cluster's id.
    pub cluster: String,
    /// The first node: it gets the id 1, and all groups begin with it.
    pub node: NewNode,
    /// How many shards each region gets, beside the one that never leaves it.
    pub shards_per_region: u16,
    /// How many registry groups there are, for ever.
    pub registries: u16,
}

impl Found {
    /// The groups that the cluster begins with: the control group, the registry groups, and the
    /// shards of its first region. All numbers start at one.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + use<> {
        let registries = (1..=self.registries).map(RegistryNumber);
        let shards = (1..=self.shards_per_region + 1).map(ShardNumber);
        std::iter::once(GroupId::Control)
            .chain(registries.map(GroupId::Registry))
            .chain(shards.map(GroupId::Shard))
    }

    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        // A second secret would void every ack id and hide every strand.
        if overlay.row::<Cluster>(&ClusterKey)?.is_some() {
            return Err(Rejected::AlreadyFounded.into());
        }
        let cluster = Cluster {
            secret: self.secret,
            name: self.cluster.clone(),
            shards_per_region: self.shards_per_region,
            registries: self.registries,
            next_shard: ShardNumber(self.shards_per_region + 2),
            next_node: NodeId(FOUNDER.0 + 1),
        };
        overlay.put(&ClusterKey, &cluster);
        let home = &self.node.region;
        let region = Region::new(home.clone(), FOUNDER, self.shards_per_region);
        overlay.put(&NameKey::from(home), &region);
        overlay.put(&NodeKey { node: FOUNDER }, &self.node.row(FOUNDER));
        for group in self.groups() {
            overlay.put(&PlacementKey(group), &self.placement(group));
        }
        Ok(Outcome::only(Reply::Done))
    }

    fn placement(&self, group: GroupId) -> Placement {
        let goal = match group {
            GroupId::Shard(ShardNumber(number)) if number > self.shards_per_region => {
                SurvivalGoal::Zone
            }
            _ => SurvivalGoal::Region,
        };
        let voters = BTreeSet::from([FOUNDER]);
        Placement {
            // The command stands in the log of the control group, so that one exists.
            founded: group == GroupId::Control,
            ..Placement::new(group, self.node.region.clone(), goal, voters)
        }
    }
}
