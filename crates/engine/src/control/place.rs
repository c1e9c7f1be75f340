//! Groups are wanted in other places; new groups are wanted.

use model::limits::SHARDS_MAX;
use model::{GroupId, ShardNumber};
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::cluster::ClusterKey;
use super::table::placement::PlacementKey;
use super::{Cluster, Outcome, Placement, Reply, read};
use crate::Fault;
use crate::kv::Overlay;

/// Changes where groups are wanted. Each placement counts only if it is based on the version that
/// stands, so that two planners can't undo each other; the others are skipped.
///
/// A placement of version zero whose group is the next shard makes that shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place(pub Vec<Placement>);

impl Place {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let Some(mut cluster) = read::cluster(overlay)? else {
            return Err(NodeRejected::NotFounded.into());
        };
        for wanted in &self.0 {
            if wanted.voters.is_empty() {
                continue;
            }
            match read::placement(overlay, wanted.group)? {
                Some(present) => change(overlay, present, wanted),
                None => create(overlay, &mut cluster, wanted)?,
            }
        }
        overlay.put(&ClusterKey, &cluster);
        Ok(Outcome::only(Reply::Done))
    }
}

fn change(overlay: &mut Overlay<'_>, present: Placement, wanted: &Placement) {
    if present.version != wanted.version {
        return;
    }
    let placement = Placement {
        founders: present.founders,
        founded: present.founded,
        version: present.version + 1,
        ..wanted.clone()
    };
    overlay.put(&PlacementKey(wanted.group), &placement);
}

fn create(
    overlay: &mut Overlay<'_>,
    cluster: &mut Cluster,
    wanted: &Placement,
) -> Result<(), Fault> {
    let next = cluster.next_shard;
    if wanted.group != GroupId::Shard(next) || wanted.version != 0 || next.0 > SHARDS_MAX {
        return Ok(());
    }
    let placement = Placement {
        founders: wanted.voters.clone(),
        founded: false,
        ..wanted.clone()
    };
    overlay.put(&PlacementKey(wanted.group), &placement);
    cluster.next_shard = ShardNumber(next.0 + 1);
    Ok(())
}
