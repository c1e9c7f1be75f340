//! Says which other nodes can't be reached, each time that this changes.

use std::collections::BTreeMap;
use std::time::Duration;

use model::NodeName;
use replica::Peers;
use tokio::time::sleep;
use tracing::{info, warn};

/// The pause between two looks. What is so at one of them only is not worth a word.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Watches them for as long as the node runs.
pub(super) async fn tell(peers: Peers) {
    let mut told = Vec::new();
    let mut seen = Vec::new();
    loop {
        sleep(LOOK_EVERY).await;
        let silent = peers.silent();
        let names: Vec<NodeName> = silent.keys().cloned().collect();
        let is_steady = names == seen;
        seen = names;
        if is_steady && seen != told {
            say(&silent, peers.known().len());
            told.clone_from(&seen);
        }
    }
}

fn say(silent: &BTreeMap<NodeName, String>, others: usize) {
    let why = silent.iter().map(|(name, why)| format!("{name} at {why}"));
    let nodes = why.collect::<Vec<_>>().join("; ");
    match silent.len() {
        0 => info!("no other node is out of reach any more, as far as is known"),
        all if all == others => warn!(nodes, "none of the other nodes can be reached"),
        some => warn!(nodes, "{some} of {others} other nodes can't be reached"),
    }
}
