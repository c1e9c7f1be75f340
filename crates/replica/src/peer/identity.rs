//! Which node of which cluster a certificate names.

use model::NodeName;
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The scheme of the names in certificates.
const SCHEME: &str = "orderly://";

/// A node, as its certificate names it: by the URI `orderly://<cluster id>/<node name>` among its
/// subject's alternative names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) cluster: String,
    pub(super) name: NodeName,
}

impl Identity {
    /// The node that a certificate names; `None` where it names none, or several.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = EndEntityCert::try_from(certificate).ok()?;
        let names = certificate.valid_uri_names();
        let mut nodes = names.filter(|name| name.starts_with(SCHEME));
        let identity = Identity::parse(nodes.next()?)?;
        nodes.next().is_none().then_some(identity)
    }

    fn parse(uri: &str) -> Option<Self> {
        let (cluster, name) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        if cluster.is_empty() {
            return None;
        }
        Some(Identity {
            cluster: cluster.to_owned(),
            name: NodeName::parse(name).ok()?,
        })
    }

    /// Whether it is the node that is meant: of this cluster, and of this name where one is known.
    pub(super) fn is(&self, cluster: &str, name: Option<&NodeName>) -> bool {
        self.cluster == cluster && name.is_none_or(|name| self.name == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> NodeName {
        NodeName::parse(name).unwrap()
    }

    #[test]
    fn a_uri_names_a_node_of_a_cluster() {
        let identity = Identity::parse("orderly://c1/node-1").unwrap();
        assert!(identity.is("c1", Some(&name("node-1"))));
        assert!(identity.is("c1", None));
        assert!(!identity.is("c2", None));
        assert!(!identity.is("c1", Some(&name("node-11"))));
    }

    #[test]
    fn what_is_no_such_uri_names_nobody() {
        let others = [
            "orderly://c1",
            "orderly:///node-1",
            "orderly://c1/",
            "orderly://c1/a/b",
            "https://c1/a",
        ];
        for other in others {
            assert_eq!(Identity::parse(other), None, "{other}");
        }
    }
}
