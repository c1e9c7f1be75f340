//! `orderly nodes`.
//!
//! - `wait`: watches a node until it has come to where it was sent.

mod wait;

use clap::{Args, Subcommand};
use proto::admin::node::State;
use proto::admin::{
    ActivateNodeRequest, DecommissionNodeRequest, DrainNodeRequest, ListNodesRequest, Node,
    ReplaceNodeRequest,
};
use serde_json::{Value, json};

use super::access::Access;
use super::output::{Show, note, print_one, print_rows};
use super::{Failure, Format, Target};

/// Nodes that were silent for longer are shown as such: one that is well speaks each second.
const SILENT_MS_MIN: u64 = 5_000;

#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the nodes of the cluster.
    List {
        /// Removed ones too.
        #[arg(long)]
        all: bool,
    },
    /// Shows a node, and the groups that it has.
    Describe {
        /// Its name, or number.
        node: String,
    },
    /// Brings a node to rest before it is stopped for a while: others lead, and no session begins.
    Drain {
        /// Its name, or number.
        node: String,
        /// Waits until it leads nothing that another node could lead.
        #[arg(long)]
        wait: bool,
    },
    /// Lets a node take part again after a drain, or takes its departure back.
    Activate {
        /// Its name, or number.
        node: String,
    },
    /// Sends a node away for good: its replicas move to others, one step after another.
    Decommission {
        /// Its name, or number.
        node: String,
        /// Waits until it is out.
        #[arg(long)]
        wait: bool,
        /// Also where messages then survive less than now.
        #[arg(long)]
        force: bool,
    },
    /// Lets a new node with an empty disk take the name and place of one that has lost its own.
    Replace {
        /// Its name, or number.
        node: String,
        /// Waits until the new node has what the old one had.
        #[arg(long)]
        wait: bool,
    },
}

impl Nodes {
    pub(crate) async fn run(
        self,
        target: &Target,
        access: &Access,
        output: Format,
    ) -> Result<(), Failure> {
        let mut client = access.client(target).await?;
        match self.verb {
            Verb::List { all } => {
                let listed = client.list_nodes(ListNodesRequest {}).await?.into_inner();
                if !listed.leaderless.is_empty() {
                    note(&format!(
                        "nobody is known to lead {}",
                        listed.leaderless.join(", ")
                    ));
                }
                let shown = |node: &Node| all || node.state() != State::Removed;
                let nodes: Vec<Node> = listed.nodes.into_iter().filter(shown).collect();
                print_rows(output, &nodes);
            }
            Verb::Describe { node } => {
                let listed = client.list_nodes(ListNodesRequest {}).await?.into_inner();
                print_one(output, &Whole(find(listed.nodes, &node)?));
            }
            Verb::Drain { node, wait } => {
                let request = DrainNodeRequest { node };
                let node = client.drain_node(request).await?.into_inner();
                let node = match wait {
                    true => wait::until_drained(&mut client, node).await?,
                    false => node,
                };
                print_one(output, &Whole(node));
            }
            Verb::Activate { node } => {
                let request = ActivateNodeRequest { node };
                let node = client.activate_node(request).await?.into_inner();
                print_one(output, &Whole(node));
            }
            Verb::Decommission { node, wait, force } => {
                let request = DecommissionNodeRequest { node, force };
                let node = client.decommission_node(request).await?.into_inner();
                let node = match wait {
                    true => wait::until_removed(&mut client, node).await?,
                    false => node,
                };
                print_one(output, &Whole(node));
            }
            Verb::Replace { node, wait } => {
                let request = ReplaceNodeRequest { node };
                let node = client.replace_node(request).await?.into_inner();
                note(&format!(
                    "start a node called \"{}\" in region \"{}\", zone \"{}\", with an empty \
                     folder: it joins with a number of its own",
                    node.name, node.region, node.zone
                ));
                let node = match wait {
                    true => wait::until_removed(&mut client, node).await?,
                    false => node,
                };
                print_one(output, &Whole(node));
            }
        }
        Ok(())
    }
}

/// The node of a name or number. Of several with one name, the one that came last.
fn find(nodes: Vec<Node>, asked: &str) -> Result<Node, Failure> {
    let mut known: Vec<&Node> = nodes.iter().collect();
    known.sort_by_key(|node| (node.state() != State::Removed, node.id));
    let named = known.iter().rev().find(|node| node.name == asked);
    let numbered = || known.iter().find(|node| node.id.to_string() == asked);
    match named.or_else(numbered) {
        Some(node) => Ok((*node).clone()),
        None => {
            let names: Vec<&str> = known.iter().map(|node| node.name.as_str()).collect();
            Err(Failure::NotFound(format!(
                "node \"{asked}\" not found: the nodes are {}",
                names.join(", ")
            )))
        }
    }
}

fn state(node: &Node) -> &'static str {
    match node.state() {
        State::Unspecified => "unknown",
        State::Active => "active",
        State::Draining => "draining",
        State::Decommissioning => "decommissioning",
        State::Removed => "removed",
        State::Replaced => "replaced",
    }
}

/// Whether the node speaks.
fn voice(node: &Node) -> String {
    match (node.state(), node.silent_ms) {
        (State::Removed, _) => "-".to_owned(),
        (_, ..SILENT_MS_MIN) => "well".to_owned(),
        (_, silent) => format!("silent for {} s", silent / 1_000),
    }
}

impl Show for Node {
    const COLUMNS: &'static [&'static str] = &[
        "NAME", "NUMBER", "REGION", "ZONE", "STATE", "HEALTH", "LEADS", "VOTES",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.id.to_string(),
            self.region.clone(),
            self.zone.clone(),
            state(self).to_owned(),
            voice(self),
            self.leads.len().to_string(),
            self.still_votes.len().to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "number": self.id,
            "region": self.region,
            "zone": self.zone,
            "state": state(self),
            "silentMs": self.silent_ms,
            "clientAddress": self.client_address,
            "peerAddress": self.peer_address,
            "leads": self.leads,
            "votes": self.still_votes,
            "votesWanted": self.votes,
            "learns": self.learns,
        })
    }
}

/// All that is known of a node.
struct Whole(Node);

impl Show for Whole {
    const COLUMNS: &'static [&'static str] = &[
        "NAME", "NUMBER", "REGION", "ZONE", "STATE", "HEALTH", "CLIENTS", "NODES", "LEADS",
        "VOTES", "TO VOTE", "COPIES",
    ];

    fn cells(&self) -> Vec<String> {
        let node = &self.0;
        vec![
            node.name.clone(),
            node.id.to_string(),
            node.region.clone(),
            node.zone.clone(),
            state(node).to_owned(),
            voice(node),
            node.client_address.clone(),
            node.peer_address.clone(),
            node.leads.join(", "),
            node.still_votes.join(", "),
            node.votes.join(", "),
            node.learns.join(", "),
        ]
    }

    fn json(&self) -> Value {
        self.0.json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u64, state: State) -> Node {
        Node {
            id,
            name: "north-1".to_owned(),
            state: state.into(),
            ..Node::default()
        }
    }

    #[test]
    fn a_name_means_the_node_that_has_it_now() {
        let nodes = vec![node(1, State::Active), node(7, State::Removed)];
        assert_eq!(find(nodes.clone(), "north-1").unwrap().id, 1);
        assert_eq!(find(nodes.clone(), "7").unwrap().id, 7);
        assert!(matches!(find(nodes, "8"), Err(Failure::NotFound(_))));
        let gone = vec![node(1, State::Removed), node(7, State::Removed)];
        assert_eq!(find(gone, "north-1").unwrap().id, 7);
    }
}
