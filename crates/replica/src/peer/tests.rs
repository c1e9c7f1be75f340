//! Who is let in, and who is talked to, where connections are secured.

use model::{NodeId, NodeName, RegionName};
use proto::cluster::VoteRequest;
use proto::cluster::raft_client::RaftClient;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::service::Routes;

use super::*;

const CLUSTER: &str = "c1";
const ASKED: NodeId = NodeId(1);
const CALLER: NodeId = NodeId(2);

/// An authority that certifies nodes.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// What a node has whose certificate says this URI.
    fn certify(&self, uri: &str) -> Result<Tls, InvalidTls> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let (authority, key) = (self.certificate.as_bytes(), key.serialize_pem());
        Tls::new(authority, certificate.as_bytes(), key.as_bytes())
    }

    fn node(&self, name: &str) -> Tls {
        self.certify(&format!("orderly://{CLUSTER}/{name}"))
            .unwrap()
    }
}

fn peers(node: NodeId, tls: Option<Tls>) -> Peers {
    let region = RegionName::parse("north").unwrap();
    Peers::new(Settings {
        tls,
        ..Settings::plain(CLUSTER.to_owned(), node, region)
    })
}

fn address(name: &str, address: String) -> PeerAddress {
    PeerAddress {
        name: NodeName::parse(name).unwrap(),
        address,
        region: RegionName::parse("north").unwrap(),
    }
}

/// How a call ends that node 2 makes to node 1, which calls itself `asked`, and knows node 2 as
/// `caller`. One that is let in finds no service there.
async fn call(asked: Tls, caller: Option<Tls>) -> Code {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listens = listener.local_addr().unwrap().to_string();
    let near = peers(ASKED, Some(asked));
    near.learn(CALLER, address("caller", "127.0.0.1:1".to_owned()));
    tokio::spawn(serve(
        listener,
        Routes::default(),
        Routes::default(),
        near,
        std::future::pending(),
    ));
    let far = peers(CALLER, caller);
    far.learn(ASKED, address("asked", listens));
    let mut client = RaftClient::new(far.channel(ASKED, Use::Calls).unwrap());
    client
        .vote(VoteRequest::default())
        .await
        .unwrap_err()
        .code()
}

#[tokio::test]
async fn nodes_of_one_authority_talk() {
    let authority = Authority::new();
    let code = call(authority.node("asked"), Some(authority.node("caller"))).await;
    assert_eq!(code, Code::Unimplemented, "it was let in");
}

#[tokio::test]
async fn a_caller_without_a_certificate_is_not_let_in() {
    let code = call(Authority::new().node("asked"), None).await;
    // What it hears is no HTTP/2, which it may call by several names.
    assert!(
        matches!(code, Code::Unavailable | Code::Internal),
        "{code:?}"
    );
}

#[tokio::test]
async fn a_caller_of_another_authority_is_not_let_in() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let code = call(ours.node("asked"), Some(theirs.node("caller"))).await;
    assert_eq!(code, Code::Unavailable);
}

#[tokio::test]
async fn a_caller_whose_certificate_names_another_cluster_is_not_let_in() {
    let authority = Authority::new();
    let caller = authority.certify("orderly://c2/caller").unwrap();
    let code = call(authority.node("asked"), Some(caller)).await;
    assert_eq!(code, Code::Unavailable);
}

#[tokio::test]
async fn a_caller_that_says_it_is_another_node_is_not_let_in() {
    let authority = Authority::new();
    let code = call(authority.node("asked"), Some(authority.node("other"))).await;
    assert_eq!(code, Code::Unauthenticated);
}

#[tokio::test]
async fn a_node_that_answers_for_another_is_not_talked_to() {
    let authority = Authority::new();
    let code = call(authority.node("other"), Some(authority.node("caller"))).await;
    assert_eq!(code, Code::Unavailable);
}

#[test]
fn a_certificate_that_names_no_node_is_refused_at_once() {
    let nameless = Authority::new().certify("https://example.com/");
    assert!(matches!(nameless, Err(InvalidTls::Nameless)));
    let nothing = Tls::new(b"", b"", b"");
    assert!(nothing.is_err());
}

#[test]
fn certificates_that_do_not_belong_together_are_refused_by_the_file() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let uri = format!("orderly://{CLUSTER}/node");
    params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().unwrap())];
    let certificate = params.signed_by(&key, &ours.issuer).unwrap().pem();
    let read = |authority: &str, key: &str| {
        let read = Tls::new(authority.as_bytes(), certificate.as_bytes(), key.as_bytes());
        read.map(drop).map_err(|wrong| wrong.file())
    };
    let key = key.serialize_pem();
    assert_eq!(read(&ours.certificate, &key), Ok(()));
    assert_eq!(read(&theirs.certificate, &key), Err(TlsFile::Certificate));
    let other = KeyPair::generate().unwrap().serialize_pem();
    assert_eq!(read(&ours.certificate, &other), Err(TlsFile::Key));
    assert_eq!(read("", &key), Err(TlsFile::Authority));
}

#[tokio::test]
async fn who_was_not_reached_is_known_until_it_is() {
    let near = peers(CALLER, None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listens = listener.local_addr().unwrap();
    drop(listener);
    near.learn(ASKED, address("asked", listens.to_string()));
    assert!(near.silent().is_empty(), "it was not dialled");
    let mut client = RaftClient::new(near.channel(ASKED, Use::Raft).unwrap());
    client.vote(VoteRequest::default()).await.unwrap_err();
    let silent: Vec<String> = near.silent().keys().map(NodeName::to_string).collect();
    assert_eq!(silent, ["asked"]);
    let listener = TcpListener::bind(listens).await.unwrap();
    let asked = peers(ASKED, None);
    let (none, open) = (Routes::default(), Routes::default());
    tokio::spawn(serve(listener, none, open, asked, std::future::pending()));
    let heard = async {
        while !near.silent().is_empty() {
            client.vote(VoteRequest::default()).await.unwrap_err();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard)
        .await
        .unwrap();
}
