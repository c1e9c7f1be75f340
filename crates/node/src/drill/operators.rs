//! The cluster as its operators see it: a drill asks it whom there is to lose.

use std::collections::BTreeSet;

use proto::admin::admin_client::AdminClient;
use proto::admin::node::State;
use proto::admin::{ListNodesRequest, Node};
use tonic::transport::Channel;

use crate::cli::access::Access;
use crate::cli::{Failure, Target};
use crate::demo::cluster::Which;

/// How operators reach the cluster.
pub(super) struct Operators<'a> {
    pub(super) access: &'a Access,
    pub(super) target: &'a Target,
    /// Nodes beside which their listeners for operators are by default.
    pub(super) endpoints: &'a [String],
}

impl Operators<'_> {
    /// A client of the first node that answers.
    ///
    /// # Errors
    /// [`Failure`] when none does.
    pub(super) async fn client(&self) -> Result<AdminClient<Channel>, Failure> {
        let mut last = None;
        for endpoint in self.endpoints {
            match self.access.client_beside(endpoint, self.target).await {
                Ok(client) => return Ok(client),
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.unwrap_or_else(|| Failure::Usage("--endpoints names no node".into())))
    }

    /// Refuses whom the cluster does not have. Where it can't be asked, that is said.
    ///
    /// # Errors
    /// [`Failure`] that names those that it has.
    pub(super) async fn know(&self, which: &Which) -> Result<(), Failure> {
        if *which == Which::All {
            return Ok(());
        }
        let mut client = match self.client().await {
            Ok(client) => client,
            Err(failure) if self.access.is_told() => return Err(failure),
            Err(failure) => {
                super::tell(&format!(
                    "whether the cluster has a \"{}\" is not known: {failure}",
                    which.name()
                ));
                return Ok(());
            }
        };
        let listed = client.list_nodes(ListNodesRequest {}).await?.into_inner();
        match unknown(which, &listed.nodes) {
            Some(text) => Err(Failure::NotFound(text)),
            None => Ok(()),
        }
    }
}

/// What is wrong with whom a drill is to lose.
fn unknown(which: &Which, nodes: &[Node]) -> Option<String> {
    let nodes = nodes.iter().filter(|node| node.state() != State::Removed);
    let (kind, known): (&str, BTreeSet<&str>) = match which {
        Which::All => return None,
        Which::Region(_) => ("region", nodes.map(|node| &*node.region).collect()),
        Which::Node(_) => ("node", nodes.map(|node| &*node.name).collect()),
    };
    let asked = which.name();
    let names: Vec<&str> = known.iter().copied().collect();
    (!known.contains(asked)).then(|| {
        format!(
            "{kind} \"{asked}\" not found: the {kind}s are {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_the_cluster_does_not_have_is_refused_with_those_that_it_has() {
        let node = |name: &str, region: &str, state: State| Node {
            name: name.to_owned(),
            region: region.to_owned(),
            state: state.into(),
            ..Node::default()
        };
        let nodes = [
            node("north-1", "north", State::Active),
            node("south-1", "south", State::Draining),
            node("west-1", "west", State::Removed),
        ];
        let unknown = |which| unknown(&which, &nodes);
        assert_eq!(unknown(Which::All), None);
        assert_eq!(unknown(Which::Region("south".into())), None);
        assert_eq!(unknown(Which::Node("north-1".into())), None);
        assert_eq!(
            unknown(Which::Region("west".into())).unwrap(),
            "region \"west\" not found: the regions are north, south"
        );
        assert_eq!(
            unknown(Which::Node("north".into())).unwrap(),
            "node \"north\" not found: the nodes are north-1, south-1"
        );
    }
}
