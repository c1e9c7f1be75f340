//! Who stands where in a demonstration cluster, and the configuration of each node.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::PlanArgs;
use crate::cli::Failure;

/// The names of regions, in the order in which they are used.
const REGIONS: [&str; 8] = [
    "north", "south", "west", "east", "center", "coast", "island", "mountain",
];
/// The ports of one region's nodes lie together.
const PORTS_PER_REGION: u16 = 10;
/// So far above a node's port for clients is its port for other nodes.
const PEER_PORTS_ABOVE: u16 = 1_000;

/// A cluster on one machine.
pub(crate) struct Plan {
    regions: Vec<RegionPlan>,
    /// Holds the nodes' folders where they are not to be kept.
    temporary: Option<TempDir>,
    wan_round_trip_ms: u32,
}

/// One region.
pub(crate) struct RegionPlan {
    pub(crate) name: &'static str,
    pub(crate) nodes: Vec<NodePlan>,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    pub(crate) region: &'static str,
    /// Where clients connect, on loopback.
    pub(crate) port: u16,
    /// The node's folder; its data are in a folder of it.
    pub(crate) folder: PathBuf,
}

impl Plan {
    /// # Errors
    /// [`Failure`] when there is no place for the folders.
    pub(crate) fn new(args: &PlanArgs) -> Result<Self, Failure> {
        let temporary = match &args.data_dir {
            Some(_) => None,
            None => Some(TempDir::with_prefix("orderly-").map_err(Failure::Runtime)?),
        };
        let folder = match (&args.data_dir, &temporary) {
            (Some(folder), _) => folder.clone(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => unreachable!("without a folder there is a temporary one"),
        };
        let region = |(number, name): (u16, &'static str)| RegionPlan {
            name,
            nodes: (0..args.nodes)
                .map(|node| {
                    let port = args.port + number * PORTS_PER_REGION + node;
                    NodePlan::new(name, node, port, &folder)
                })
                .collect(),
        };
        let named = (0..args.regions).zip(REGIONS);
        Ok(Plan {
            regions: named.map(region).collect(),
            temporary,
            wan_round_trip_ms: args.wan_round_trip_ms,
        })
    }

    pub(crate) fn regions(&self) -> &[RegionPlan] {
        &self.regions
    }

    /// All nodes. The first one founds the cluster, the others join it.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodePlan> {
        self.regions.iter().flat_map(|region| &region.nodes)
    }

    pub(crate) fn first_port(&self) -> u16 {
        self.regions[0].nodes[0].port
    }

    /// The port of the first node in the last region.
    pub(crate) fn last_port(&self) -> u16 {
        self.regions[self.regions.len() - 1].nodes[0].port
    }

    /// Whether everything goes with the cluster.
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Lets the logs stay when the cluster goes; where they are.
    pub(super) fn keep_logs(&mut self) -> String {
        if let Some(temporary) = &mut self.temporary {
            temporary.disable_cleanup(true);
            for node in self.regions.iter().flat_map(|region| &region.nodes) {
                // What can't be removed stays as well.
                let _ = std::fs::remove_dir_all(node.data());
            }
        }
        let first = self.regions[0].nodes[0].log();
        let folder = first.ancestors().nth(2).unwrap_or(&first);
        folder.join("*/log").display().to_string()
    }

    /// Writes the configuration of a node.
    ///
    /// # Errors
    /// [`Failure`] when the file can't be written.
    pub(crate) fn write_config(&self, node: &NodePlan) -> Result<(), Failure> {
        let path = node.config();
        let write = |path: &Path| {
            std::fs::create_dir_all(&node.folder)?;
            std::fs::write(path, self.config(node))
        };
        write(&path).map_err(|source| Failure::Write { path, source })
    }

    fn config(&self, node: &NodePlan) -> String {
        let NodePlan {
            name, region, port, ..
        } = node;
        let peer_port = node.peer_port();
        let data_dir = toml::Value::from(node.data().display().to_string());
        let join: Vec<String> = self
            .nodes()
            .filter(|other| other.name != *name)
            .map(|other| format!("127.0.0.1:{}", other.peer_port()))
            .collect();
        let join = toml::Value::from(join);
        let wan_round_trip_ms = self.wan_round_trip_ms;
        format!(
            "node = \"{name}\"\n\
             region = \"{region}\"\n\
             zone = \"{name}\"\n\
             data_dir = {data_dir}\n\
             listen = \"127.0.0.1:{port}\"\n\
             peer_listen = \"127.0.0.1:{peer_port}\"\n\
             join = {join}\n\
             \n\
             [emulate]\n\
             wan_round_trip_ms = {wan_round_trip_ms}\n"
        )
    }
}

impl NodePlan {
    fn new(region: &'static str, number: u16, port: u16, folder: &Path) -> Self {
        let name = format!("{region}-{}", number + 1);
        NodePlan {
            folder: folder.join(&name),
            name,
            region,
            port,
        }
    }

    fn peer_port(&self) -> u16 {
        self.port + PEER_PORTS_ABOVE
    }

    /// Its configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("node.toml")
    }

    /// Where it keeps what it is told.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Where it writes what happens.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_node_has_a_configuration_of_its_own_that_is_right() {
        let folder = TempDir::new().unwrap();
        let plan = Plan::new(&PlanArgs {
            regions: 3,
            nodes: 3,
            wan_round_trip_ms: 80,
            port: 8085,
            data_dir: Some(folder.path().to_owned()),
        })
        .unwrap();
        let mut ports = std::collections::BTreeSet::new();
        for node in plan.nodes() {
            plan.write_config(node).unwrap();
            let config = Config::read(&node.config()).unwrap();
            assert_eq!(config.join.len(), 8);
            assert!(ports.insert(config.listen));
            assert!(ports.insert(config.peer_listen));
        }
        assert_eq!(ports.len(), 18);
    }
}
