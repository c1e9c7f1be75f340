//! What every call between nodes says of its caller, and for whom it is, and how both are checked.

use model::NodeId;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Extensions, Request, Status};

use super::wire::Proven;
use super::{Peers, Settings};

/// The id of the caller's cluster.
const CLUSTER: &str = "orderly-cluster";
/// The caller's number; zero for a node that has none yet.
const NODE: &str = "orderly-node";
/// The number of the node that the call is for: where one listened, another may listen now, with an
/// empty disk under the same name. Its word must never count as the word of the first.
const FOR: &str = "orderly-for";
/// The caller's version of all that nodes say to each other.
const PROTOCOL: &str = "orderly-protocol";

/// The version of this program. Another one is refused: it may mean other things by the same bytes.
const SPOKEN: &str = "1";

/// A channel to another node, whose calls say who makes them.
pub type PeerChannel = InterceptedService<Channel, Stamp>;

/// Puts on every call who makes it.
#[derive(Clone, Debug)]
pub struct Stamp {
    cluster: MetadataValue<Ascii>,
    node: MetadataValue<Ascii>,
    /// For whom it is, where the caller knows.
    asked: Option<MetadataValue<Ascii>>,
}

/// Who makes a call: stands in the extensions of every request that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The node; zero for one that has no number yet.
    pub node: NodeId,
}

impl Stamp {
    pub(super) fn new(settings: &Settings) -> Self {
        let cluster = MetadataValue::try_from(&settings.cluster);
        Stamp {
            cluster: cluster.expect("the id of a cluster is visible ASCII"),
            node: settings.node.0.into(),
            asked: None,
        }
    }

    /// The same on calls for one node only.
    pub(super) fn for_node(&self, node: NodeId) -> Self {
        Stamp {
            asked: Some(node.0.into()),
            ..self.clone()
        }
    }
}

impl Interceptor for Stamp {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert(CLUSTER, self.cluster.clone());
        metadata.insert(NODE, self.node.clone());
        metadata.insert(PROTOCOL, MetadataValue::from_static(SPOKEN));
        if let Some(asked) = &self.asked {
            metadata.insert(FOR, asked.clone());
        }
        Ok(request)
    }
}

/// Lets in the calls of nodes of the same cluster that speak the same version.
#[derive(Clone)]
pub(super) struct Check(pub(super) Peers);

impl Interceptor for Check {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let settings = self.0.settings();
        let metadata = request.metadata();
        let said = text(metadata, CLUSTER)?;
        if said != settings.cluster {
            let ours = &settings.cluster;
            return Err(refused(format!(
                "the caller is of cluster {said:?}, this node of cluster {ours:?}"
            )));
        }
        let spoken = text(metadata, PROTOCOL)?;
        if spoken != SPOKEN {
            return Err(refused(format!(
                "the caller speaks version {spoken} between nodes, this node version {SPOKEN}"
            )));
        }
        if metadata.contains_key(FOR) {
            let asked = number(metadata, FOR)?;
            if asked != settings.node && !model::sabotage!("answers-for-another-node") {
                let here = settings.node;
                return Err(refused(format!(
                    "node {here} listens here, not node {asked}"
                )));
            }
        }
        let node = number(metadata, NODE)?;
        self.check_proof(node, request.extensions())?;
        request.extensions_mut().insert(Caller { node });
        Ok(request)
    }
}

impl Check {
    /// Checks that the caller is the node whose number it says, by its certificate.
    fn check_proof(&self, node: NodeId, extensions: &Extensions) -> Result<(), Status> {
        let settings = self.0.settings();
        if settings.tls.is_none() {
            return Ok(());
        }
        let proven = extensions
            .get::<Proven>()
            .and_then(|proven| proven.0.as_ref());
        let name = self.0.name(node);
        match proven {
            Some(proven) if proven.is(&settings.cluster, name.as_ref()) => Ok(()),
            Some(proven) => Err(Status::unauthenticated(format!(
                "the certificate of node {node} names {:?} of cluster {:?}",
                proven.name, proven.cluster
            ))),
            None => Err(Status::unauthenticated("the caller proves nothing")),
        }
    }
}

fn text<'a>(metadata: &'a MetadataMap, key: &str) -> Result<&'a str, Status> {
    let value = metadata.get(key).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| {
        refused(format!(
            "{key} is missing: the caller is no node of a cluster"
        ))
    })
}

fn number(metadata: &MetadataMap, key: &str) -> Result<NodeId, Status> {
    let number = text(metadata, key)?.parse();
    let number = number.map_err(|_| refused(format!("{key} is not a number")))?;
    Ok(NodeId(number))
}

fn refused(why: String) -> Status {
    Status::failed_precondition(why)
}

#[cfg(test)]
mod tests {
    use model::RegionName;
    use tonic::Code;

    use super::*;

    fn peers(cluster: &str) -> Peers {
        let region = RegionName::parse("north").expect("a valid name");
        Peers::new(Settings::plain(cluster.to_owned(), NodeId(7), region))
    }

    fn stamped(cluster: &str) -> Request<()> {
        let mut stamp = Stamp::new(peers(cluster).settings());
        stamp.call(Request::new(())).unwrap()
    }

    #[test]
    fn a_node_of_the_cluster_is_let_in_by_its_number() {
        let let_in = Check(peers("a")).call(stamped("a")).unwrap();
        let caller = let_in.extensions().get::<Caller>();
        assert_eq!(caller, Some(&Caller { node: NodeId(7) }));
    }

    #[test]
    fn a_node_of_another_cluster_is_refused_and_told_both() {
        let refused = Check(peers("a")).call(stamped("b")).unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        let both = ["\"a\"", "\"b\""];
        assert!(both.iter().all(|id| refused.message().contains(id)));
    }

    #[test]
    fn another_version_is_refused() {
        let mut request = stamped("a");
        let newer = MetadataValue::from_static("2");
        request.metadata_mut().insert(PROTOCOL, newer);
        let refused = Check(peers("a")).call(request).unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
    }

    #[test]
    fn a_call_for_another_node_is_refused() {
        let call = |asked| {
            let mut stamp = Stamp::new(peers("a").settings()).for_node(asked);
            Check(peers("a")).call(stamp.call(Request::new(())).unwrap())
        };
        assert!(call(NodeId(7)).is_ok());
        let refused = call(NodeId(4)).unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert_eq!(refused.message(), "node 7 listens here, not node 4");
    }

    #[test]
    fn a_caller_that_says_nothing_is_refused() {
        let refused = Check(peers("a")).call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
    }
}
