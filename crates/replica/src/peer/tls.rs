//! Mutual TLS between nodes.
//!
//! Both sides show a certificate of the cluster's own authority, and the certificate names the
//! node: see [`super::identity`]. Names of hosts play no part, so that a node may move.

use std::io;
use std::sync::Arc;

use model::NodeName;
use thiserror::Error;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::identity::Identity;
use super::wire::Wire;
use crate::network::Connection;

/// A node's certificate and key, and the authority of its cluster. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
    identity: Identity,
}

/// Certificates or keys can't be used.
#[derive(Debug, Error)]
pub enum InvalidTls {
    /// It is not PEM, or lacks what is looked for.
    #[error("{what} can't be read as PEM")]
    Pem {
        /// The authority, the certificate or the key.
        what: &'static str,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// The authority has no certificate.
    #[error("the authority can't verify nodes")]
    Authority(#[source] VerifierBuilderError),
    /// Certificate and key are not of one kind, or do not fit each other.
    #[error("the certificate of this node can't be used")]
    Certificate(#[source] TlsError),
    /// The certificate says nothing of a node.
    #[error(
        "the certificate of this node names no node: it must have one URI \
         orderly://<cluster id>/<node name> among its subject's alternative names"
    )]
    Nameless,
}

impl Tls {
    /// Reads PEM: the authority's certificate, this node's with those that lead to the authority,
    /// and its key.
    ///
    /// # Errors
    /// [`InvalidTls`].
    pub fn new(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, InvalidTls> {
        let mut roots = RootCertStore::empty();
        for root in certificates("the authority", authority)? {
            roots.add(root).map_err(InvalidTls::Certificate)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates("the certificate", certificate)?;
        let identity = chain
            .first()
            .and_then(Identity::of)
            .ok_or(InvalidTls::Nameless)?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|source| InvalidTls::Pem {
            what: "the key",
            source,
        })?;
        Ok(Tls {
            connector: connector(&roots, &chain, &key)?,
            acceptor: acceptor(roots, chain, key)?,
            identity,
        })
    }

    /// The cluster that this node's certificate names.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.identity.cluster
    }

    /// The name of the node that its certificate names.
    #[must_use]
    pub fn name(&self) -> &NodeName {
        &self.identity.name
    }

    /// Secures a connection that this node has dialled, to the node of this name.
    pub(super) async fn connect(
        &self,
        connection: Connection,
        name: Option<&NodeName>,
    ) -> io::Result<Wire> {
        // The verifier looks at the authority only; who it is is looked at here.
        let nobody = ServerName::try_from("node").expect("a valid name");
        let stream = self.connector.connect(nobody, connection).await?;
        let identity = identity(stream.get_ref().1.peer_certificates());
        let identity = identity.filter(|identity| identity.is(self.cluster(), name));
        match identity {
            Some(identity) => Ok(Wire::secured(stream, identity)),
            None => Err(io::Error::other("another node answers at this address")),
        }
    }

    /// Secures a connection that another node has dialled.
    pub(super) async fn accept(&self, connection: Connection) -> io::Result<Wire> {
        let stream = self.acceptor.accept(connection).await?;
        let identity = identity(stream.get_ref().1.peer_certificates());
        let identity = identity.filter(|identity| identity.is(self.cluster(), None));
        match identity {
            Some(identity) => Ok(Wire::secured(stream, identity)),
            None => Err(io::Error::other("the caller is no node of this cluster")),
        }
    }
}

fn identity(certificates: Option<&[CertificateDer<'_>]>) -> Option<Identity> {
    certificates?.first().and_then(Identity::of)
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, InvalidTls> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>();
    certificates.map_err(|source| InvalidTls::Pem { what, source })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn connector(
    roots: &Arc<RootCertStore>,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
) -> Result<TlsConnector, InvalidTls> {
    let verifier = OfAuthority {
        roots: roots.clone(),
        provider: provider(),
    };
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(InvalidTls::Certificate)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain.to_vec(), key.clone_key())
        .map_err(InvalidTls::Certificate)?;
    Ok(TlsConnector::from(Arc::new(config)))
}

fn acceptor(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, InvalidTls> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(InvalidTls::Certificate)?
        .with_client_cert_verifier(verifier.map_err(InvalidTls::Authority)?)
        .with_single_cert(chain, key)
        .map_err(InvalidTls::Certificate)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Takes any certificate of the cluster's authority, for any host: [`Tls::connect`] then looks at
/// which node it names.
#[derive(Debug)]
struct OfAuthority {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OfAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(certificate)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(TlsError::General("nodes speak TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
