//! `orderly regions`.

use clap::{Args, Subcommand};
use proto::admin::{ListRegionsRequest, Region};
use serde_json::{Value, json};

use super::access::Access;
use super::output::{Show, note, print_one, print_rows};
use super::{Failure, Format, Target};

#[derive(Debug, Args)]
pub(crate) struct Regions {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the regions, and how much is lost with each.
    List,
    /// Shows a region, and what is lost with it.
    Describe {
        /// Its name.
        region: String,
    },
}

impl Regions {
    pub(crate) async fn run(
        self,
        target: &Target,
        access: &Access,
        output: Format,
    ) -> Result<(), Failure> {
        let mut client = access.client(target).await?;
        let listed = client.list_regions(ListRegionsRequest {}).await?;
        let regions = listed.into_inner().regions;
        if let Some(warning) = warning(&regions) {
            note(&warning);
        }
        match self.verb {
            Verb::List => print_rows(output, &regions),
            Verb::Describe { region } => {
                let known: Vec<&str> = regions.iter().map(|it| it.name.as_str()).collect();
                let not_found = || {
                    let known = known.join(", ");
                    let text = format!("region \"{region}\" not found: the regions are {known}");
                    Failure::NotFound(text)
                };
                let found = regions.iter().find(|it| it.name == region);
                print_one(output, &Whole(found.cloned().ok_or_else(not_found)?));
            }
        }
        Ok(())
    }
}

/// What an operator of two regions should know.
fn warning(regions: &[Region]) -> Option<String> {
    let present = regions.iter().filter(|region| !region.nodes.is_empty());
    let [first, second] = present.collect::<Vec<_>>()[..] else {
        return None;
    };
    let first_has_control = first.lost_with_it.iter().any(|group| group == "control");
    let vital = match first_has_control {
        true => first,
        false => second,
    };
    Some(format!(
        "warning: with two regions, messages stay in one each, and neither region can replace the \
         other. Without \"{}\" nothing can be changed and no new key published anywhere. Add a \
         third region, of one small node: then any one can be lost",
        vital.name
    ))
}

impl Show for Region {
    const COLUMNS: &'static [&'static str] = &["NAME", "NODES", "SHARDS", "STOPS WITH IT"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.nodes.len().to_string(),
            self.shards.len().to_string(),
            match &self.lost_with_it[..] {
                [] => "nothing".to_owned(),
                [group] => group.clone(),
                groups => format!("{} groups", groups.len()),
            },
        ]
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "nodes": self.nodes,
            "shards": self.shards,
            "lostWithIt": self.lost_with_it,
        })
    }
}

/// All that is known of a region.
struct Whole(Region);

impl Show for Whole {
    const COLUMNS: &'static [&'static str] = &[
        "NAME",
        "NODES",
        "SHARDS AT HOME",
        "STOPS WITH IT",
        "WITHOUT IT",
    ];

    fn cells(&self) -> Vec<String> {
        let Region {
            name,
            nodes,
            shards,
            lost_with_it,
        } = &self.0;
        vec![
            name.clone(),
            or_none(nodes),
            or_none(shards),
            match lost_with_it.is_empty() {
                true => "nothing".to_owned(),
                false => lost_with_it.join(", "),
            },
            consequences(lost_with_it).join("; "),
        ]
    }

    fn json(&self) -> Value {
        let mut json = self.0.json();
        json["withoutIt"] = consequences(&self.0.lost_with_it).into();
        json
    }
}

fn or_none(names: &[String]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// What users notice while these groups can't go on.
fn consequences(lost: &[String]) -> Vec<String> {
    if lost.is_empty() {
        return vec!["everything goes on: other regions take over what it leads".to_owned()];
    }
    let of_kind = |kind: &str| -> Vec<&str> {
        let lost = lost.iter().map(String::as_str);
        lost.filter(|group| group.starts_with(kind)).collect()
    };
    let meaning = |kind: &str, meaning: &dyn Fn(&str) -> String| {
        let groups = of_kind(kind);
        (!groups.is_empty()).then(|| meaning(&groups.join(", ")))
    };
    let meanings = [
        meaning("control", &|_| {
            "no topic, subscription, node or shard can be changed anywhere, and soon no region serves"
                .to_owned()
        }),
        meaning("registry", &|groups| {
            format!("ordering keys that {groups} would pin can't be published for the first time")
        }),
        meaning("shard", &|groups| {
            format!("messages in {groups} are kept, and come when the region is back")
        }),
    ];
    meanings.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, lost: &[&str]) -> Region {
        Region {
            name: name.to_owned(),
            nodes: vec![format!("{name}-1")],
            lost_with_it: lost.iter().copied().map(str::to_owned).collect(),
            ..Region::default()
        }
    }

    #[test]
    fn who_has_two_regions_is_warned_of_the_vital_one() {
        let north = region("north", &["shard-1"]);
        let south = region("south", &["control", "registry-1", "shard-6"]);
        let warned = warning(&[north.clone(), south.clone()]).unwrap();
        assert!(warned.contains("Without \"south\""), "{warned}");
        assert_eq!(warning(std::slice::from_ref(&north)), None);
        let west = region("west", &[]);
        assert_eq!(warning(&[north, south, west]), None);
    }

    #[test]
    fn what_a_loss_means_is_said() {
        let lost = ["control".to_owned(), "shard-3".to_owned()];
        let [control, shard] = &consequences(&lost)[..] else {
            panic!("two things happen");
        };
        assert!(control.starts_with("no topic"), "{control}");
        assert!(shard.contains("shard-3"), "{shard}");
        assert_eq!(consequences(&[]).len(), 1);
    }
}
