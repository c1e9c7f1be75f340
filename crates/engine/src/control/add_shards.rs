//! A region gets more shards.

use model::limits::SHARDS_PER_REGION_MAX;
use model::{RegionName, SurvivalGoal};
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::NameKey;
use super::{Outcome, Region, Reply};
use crate::kv::{Overlay, ViewExt};

/// Wants more shards at home in a region. The planner makes them; keys that are new after that go
/// to them too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddShards {
    /// The region.
    pub region: RegionName,
    /// What the new shards must survive.
    pub goal: SurvivalGoal,
    /// How many more.
    pub count: u16,
}

impl AddShards {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.region);
        let Some(mut region) = overlay.row::<Region>(&key)? else {
            return Err(NodeRejected::NoSuchRegion(self.region.clone()).into());
        };
        let shards = match self.goal {
            SurvivalGoal::Zone => &mut region.zone_shards,
            SurvivalGoal::Region => &mut region.region_shards,
        };
        match shards.checked_add(self.count) {
            Some(more) if more <= SHARDS_PER_REGION_MAX => *shards = more,
            _ => return Err(NodeRejected::TooManyShards(self.region.clone()).into()),
        }
        overlay.put(&key, &region);
        Ok(Outcome::only(Reply::Done))
    }
}
