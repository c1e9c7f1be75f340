//! Shards and regions by the names that operators type.

use engine::control::{Placement, Region, read};
use engine::kv::View;
use model::{GroupId, RegionName, ShardNumber};

use super::refusal::Refusal;

/// Names in one answer.
const NAMES_MAX: usize = 30;

/// The shard that is called so, as `shard-7`, or `7`.
pub(super) fn shard(view: &dyn View, asked: &str) -> Result<Placement, Refusal> {
    let number = asked.strip_prefix("shard-").unwrap_or(asked).parse();
    let group = number.map(|number| GroupId::Shard(ShardNumber(number)));
    let placements = read::placements(view)?;
    let found = placements.iter().find(|it| group == Ok(it.group));
    found.cloned().ok_or_else(|| {
        let groups = placements.iter().map(|placement| placement.group);
        let shards = groups.filter(|group| matches!(group, GroupId::Shard(_)));
        Refusal::NoSuchShard {
            asked: asked.to_owned(),
            known: names(shards.map(|group| group.to_string())),
        }
    })
}

/// The region of this name.
pub(super) fn region(view: &dyn View, asked: &str) -> Result<Region, Refusal> {
    let found = match RegionName::parse(asked) {
        Ok(name) => read::region(view, &name)?,
        Err(_) => None,
    };
    match found {
        Some(region) => Ok(region),
        None => Err(Refusal::NoSuchRegion {
            asked: asked.to_owned(),
            known: names(
                read::regions(view)?
                    .into_iter()
                    .map(|it| it.name.to_string()),
            ),
        }),
    }
}

/// As many as a person reads.
fn names(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    match all.len().checked_sub(NAMES_MAX) {
        None | Some(0) => all.join(", "),
        Some(more) => format!("{}, and {more} more", all[..NAMES_MAX].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_are_said() {
        let name = |number: usize| format!("shard-{number}");
        assert_eq!(names((1..=2).map(name)), "shard-1, shard-2");
        assert!(names((1..=30).map(name)).ends_with("shard-29, shard-30"));
        assert!(names((1..=32).map(name)).ends_with("shard-30, and 2 more"));
    }
}
