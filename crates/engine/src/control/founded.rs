//! A group exists.

use model::GroupId;
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::placement::PlacementKey;
use super::{Outcome, Placement, Reply, read};
use crate::kv::Overlay;

/// Says that a group has committed an entry: nobody initialises it again. It can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Founded {
    /// The group.
    pub group: GroupId,
}

impl Founded {
    pub(super) fn apply(self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let Some(placement) = read::placement(overlay, self.group)? else {
            return Err(NodeRejected::NoSuchGroup(self.group).into());
        };
        // The version stays: nothing changed that a planner looks at.
        let founded = Placement {
            founded: true,
            ..placement
        };
        overlay.put(&PlacementKey(self.group), &founded);
        Ok(Outcome::only(Reply::Done))
    }
}
