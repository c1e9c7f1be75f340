//! `orderly shards verify`: asks all nodes what their replicas have come to, until it is known
//! whether they are alike.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use futures::future::join_all;
use proto::admin::{DigestReplicasRequest, ListNodesRequest, Node, ReplicaDigest};
use tokio::time::{Instant, sleep};

use super::compare::{Compared, Groups, has_a_disk};
use crate::cli::access::{Access, beside};
use crate::cli::output::{Progress, note};
use crate::cli::{Failure, Target};

/// Between two rounds over the nodes.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What helps where nodes are out of reach.
const CLOSED: &str = "each node has to be asked itself, and by default it listens for operators on \
                      its own machine only: give all nodes an \"admin_listen\" that this machine \
                      reaches and a section [tls], and say --ca, --certificate and --key; where the \
                      port is not 2,000 above the one for clients, name all with --admin-endpoints";

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The listeners for operators of all nodes, as host:port. By default 2,000 ports above those
    /// where clients reach each node.
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT,...")]
    admin_endpoints: Vec<String>,
    /// How many seconds to wait until the replicas of every group were found at the same entry.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    patience: u64,
}

impl Verify {
    /// Compares the replicas of all groups.
    pub(super) async fn run(
        self,
        access: &Access,
        target: &Target,
    ) -> Result<Vec<Compared>, Failure> {
        let mut client = access.client(target).await?;
        let mut groups = Groups::default();
        let give_up = Instant::now() + Duration::from_secs(self.patience);
        let mut progress = Progress::default();
        let mut told = BTreeSet::new();
        loop {
            // Replicas may be on their way to other nodes.
            let nodes = client.list_nodes(ListNodesRequest {}).await?;
            let nodes = nodes.into_inner().nodes;
            groups.expect(&nodes);
            let endpoints = self.endpoints(&nodes, access, target)?;
            let unknown = groups.unknown();
            let asked = endpoints.iter().map(|endpoint| async {
                let digests = digests(endpoint, &unknown, access, target).await;
                (endpoint.as_str(), digests)
            });
            let mut failed = BTreeMap::new();
            for (endpoint, digests) in join_all(asked).await {
                match digests {
                    Ok(digests) => digests.iter().for_each(|digest| groups.hear(digest)),
                    Err(failure) => drop(failed.insert(endpoint, failure)),
                }
            }
            let unknown = groups.unknown();
            for (endpoint, failure) in failed.iter().filter(|_| !unknown.is_empty()) {
                if told.insert((*endpoint).to_owned()) {
                    note(&format!("{endpoint}: {}", brief(failure)));
                }
            }
            if unknown.is_empty() || Instant::now() >= give_up {
                let is_closed = |failure| matches!(failure, &Failure::NoOperators { .. });
                if !unknown.is_empty() && failed.values().any(is_closed) {
                    note(CLOSED);
                }
                return Ok(groups.compared());
            }
            progress.say(&format!("{} are not compared yet", unknown.join(", ")));
            sleep(LOOK_EVERY).await;
        }
    }

    /// Where the nodes are asked. The one that the command talks to is where it was found.
    fn endpoints(
        &self,
        nodes: &[Node],
        access: &Access,
        target: &Target,
    ) -> Result<BTreeSet<String>, Failure> {
        if !self.admin_endpoints.is_empty() {
            return Ok(self.admin_endpoints.iter().cloned().collect());
        }
        let nodes = nodes.iter().filter(|node| has_a_disk(node));
        // A node that says no address with a port stays silent.
        let known = nodes.filter_map(|node| beside(&node.client_address).ok());
        Ok(known.chain([access.endpoint(target)?]).collect())
    }
}

/// Why a node was not heard, in a few words.
fn brief(failure: &Failure) -> String {
    match failure {
        Failure::NoOperators { why, .. } => format!("nobody listens for operators here ({why})"),
        other => other.to_string(),
    }
}

/// What the replicas of these groups on one node have come to.
async fn digests(
    endpoint: &str,
    groups: &[String],
    access: &Access,
    target: &Target,
) -> Result<Vec<ReplicaDigest>, Failure> {
    let mut client = access.client_at(endpoint.to_owned(), target).await?;
    let request = DigestReplicasRequest {
        groups: groups.to_vec(),
    };
    let mut replies = client.digest_replicas(request).await?.into_inner();
    let mut digests = Vec::new();
    while let Some(digest) = replies.message().await? {
        digests.push(digest);
    }
    Ok(digests)
}
