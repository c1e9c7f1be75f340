//! Regions: what is in them, and what goes with them.

use engine::control::read::{self, RegionDescription};
use model::GroupId;
use proto::admin;
use replica::ControlClient;

use super::refusal::Refusal;

/// All regions, the oldest first.
pub(super) async fn list(control: &ControlClient) -> Result<admin::ListRegionsResponse, Refusal> {
    let described = read::describe_regions(control.read().await?)?;
    Ok(admin::ListRegionsResponse {
        regions: described.into_iter().map(message).collect(),
    })
}

fn message(described: RegionDescription) -> admin::Region {
    let nodes = described.nodes.iter();
    let shards = described.shards.iter();
    let lost_with_it = described.lost_with_it.iter();
    admin::Region {
        name: described.region.name.to_string(),
        nodes: nodes.map(|node| node.name.to_string()).collect(),
        shards: shards
            .map(|shard| GroupId::Shard(*shard).to_string())
            .collect(),
        lost_with_it: lost_with_it.map(GroupId::to_string).collect(),
    }
}
