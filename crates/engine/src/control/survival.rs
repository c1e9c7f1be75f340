//! What a topic asks of the places of its messages, and whether the cluster can give it.

use std::collections::BTreeSet;

use model::{RegionName, SurvivalGoal};

use super::rejected::Stop;
use super::{Rejected, StoragePolicy, Topic, read};
use crate::kv::View;

/// The label by which a topic chooses what it must survive: `zone` or `region`.
pub const SURVIVAL_LABEL: &str = "orderly-survival";

/// With fewer regions, the loss of one can't be survived.
pub const SURVIVAL_REGIONS_MIN: usize = 3;

/// The goal that a text names.
#[must_use]
pub fn survival_goal(text: &str) -> Option<SurvivalGoal> {
    match text {
        "zone" => Some(SurvivalGoal::Zone),
        "region" => Some(SurvivalGoal::Region),
        _ => None,
    }
}

impl Topic {
    /// What the topic's label asks for; `None` without the label.
    #[must_use]
    pub fn survival_goal(&self) -> Option<SurvivalGoal> {
        survival_goal(self.labels.get(SURVIVAL_LABEL)?)
    }

    /// Which class of shards its messages go to, in a cluster of these regions.
    ///
    /// One that may be stored in some regions only has those shards that never leave theirs: also
    /// in a cluster of so few regions that no shard leaves its own yet, because more may come.
    #[must_use]
    pub fn class(&self, regions: &BTreeSet<RegionName>) -> SurvivalGoal {
        let excludes = match &self.storage_policy {
            None => false,
            Some(policy) => {
                regions.len() < SURVIVAL_REGIONS_MIN || !regions.is_subset(&policy.allowed)
            }
        };
        match self.survival_goal() {
            Some(SurvivalGoal::Zone) => SurvivalGoal::Zone,
            _ if excludes => SurvivalGoal::Zone,
            _ => SurvivalGoal::Region,
        }
    }
}

/// Checks that the cluster has the regions that a topic names, and can keep what it asks for.
pub(super) fn check(view: &dyn View, topic: &Topic) -> Result<(), Stop> {
    let wants_region = topic.survival_goal() == Some(SurvivalGoal::Region);
    if topic.storage_policy.is_none() && !wants_region {
        return Ok(());
    }
    let regions = read::present_regions(view)?;
    if let Some(policy) = &topic.storage_policy {
        check_policy(policy, &regions, wants_region)?;
    }
    match wants_region && regions.len() < SURVIVAL_REGIONS_MIN {
        true => Err(Stop::from(Rejected::TooFewRegions {
            regions: names(&regions),
        })),
        false => Ok(()),
    }
}

fn check_policy(
    policy: &StoragePolicy,
    regions: &BTreeSet<RegionName>,
    wants_region: bool,
) -> Result<(), Rejected> {
    if let Some(unknown) = policy.allowed.difference(regions).next() {
        return Err(Rejected::UnknownRegion {
            region: unknown.clone(),
            known: names(regions),
        });
    }
    match regions.difference(&policy.allowed).next() {
        Some(excluded) if wants_region => Err(Rejected::RegionExcluded(excluded.clone())),
        _ => Ok(()),
    }
}

fn names(regions: &BTreeSet<RegionName>) -> String {
    let names: Vec<&str> = regions.iter().map(RegionName::as_str).collect();
    names.join(", ")
}
