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
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    ServerConfig, SignatureScheme,
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

/// One of the three files of a node's certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// The authority of all nodes.
    Authority,
    /// The node's certificate.
    Certificate,
    /// Its private key.
    Key,
}

/// Certificates or keys can't be used.
#[derive(Debug, Error)]
pub enum InvalidTls {
    /// It is not PEM.
    #[error("it can't be read as PEM: {source}")]
    Pem {
        /// Which.
        file: TlsFile,
        /// Why.
        source: pem::Error,
    },
    /// It has no certificate, or no key.
    #[error("it has no {} in it", .0.content())]
    Lacking(TlsFile),
    /// The authority has no certificate that verifies others.
    #[error("it is no certificate of an authority that can verify nodes: {0}")]
    Authority(TlsError),
    /// The authority can't verify nodes.
    #[error("it can't verify nodes: {0}")]
    Verifier(VerifierBuilderError),
    /// The key is not the certificate's.
    #[error("it is not the key of the certificate: name the two files that were made together")]
    OtherKey,
    /// The key is of no kind that can be used.
    #[error("it can't be used: {0}")]
    Key(TlsError),
    /// The authority has not signed the certificate.
    #[error("the authority did not sign it: every node needs a certificate of the same authority")]
    OtherAuthority,
    /// The certificate does not hold, for example because its time is over.
    #[error("it can't be used: {0}")]
    Certificate(TlsError),
    /// The certificate says nothing of a node.
    #[error(
        "it names no node: it must have one URI orderly://<cluster id>/<node name> among its \
         subject's alternative names, as \"orderly certificates node\" writes it"
    )]
    Nameless,
}

impl TlsFile {
    /// What a configuration calls it, and a command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TlsFile::Authority => "ca",
            TlsFile::Certificate => "certificate",
            TlsFile::Key => "key",
        }
    }

    fn content(self) -> &'static str {
        match self {
            TlsFile::Authority | TlsFile::Certificate => "certificate",
            TlsFile::Key => "private key",
        }
    }
}

impl InvalidTls {
    /// Which of the files is at fault.
    #[must_use]
    pub fn file(&self) -> TlsFile {
        match self {
            InvalidTls::Pem { file, .. } | InvalidTls::Lacking(file) => *file,
            InvalidTls::Authority(_) | InvalidTls::Verifier(_) => TlsFile::Authority,
            InvalidTls::OtherKey | InvalidTls::Key(_) => TlsFile::Key,
            InvalidTls::OtherAuthority | InvalidTls::Certificate(_) | InvalidTls::Nameless => {
                TlsFile::Certificate
            }
        }
    }
}

impl Tls {
    /// Reads PEM: the authority's certificate, this node's with those that lead to the authority,
    /// and its key.
    ///
    /// # Errors
    /// [`InvalidTls`].
    pub fn new(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, InvalidTls> {
        let mut roots = RootCertStore::empty();
        for root in certificates(TlsFile::Authority, authority)? {
            roots.add(root).map_err(InvalidTls::Authority)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(TlsFile::Certificate, certificate)?;
        let identity = Identity::of(&chain[0]).ok_or(InvalidTls::Nameless)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| match source {
            pem::Error::NoItemsFound => InvalidTls::Lacking(TlsFile::Key),
            source => InvalidTls::Pem {
                file: TlsFile::Key,
                source,
            },
        })?;
        let verifier = OfAuthority {
            roots: roots.clone(),
            provider: provider(),
        };
        verifier.signed(&chain[0], &chain[1..], UnixTime::now())?;
        Ok(Tls {
            connector: connector(verifier, &chain, &key)?,
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
        let stream = self.connector.connect(nobody, connection).await;
        let stream = stream.map_err(explained)?;
        let identity = identity(stream.get_ref().1.peer_certificates());
        let identity = identity.filter(|identity| identity.is(self.cluster(), name));
        match identity {
            Some(identity) => Ok(Wire::secured(stream, identity)),
            None => Err(io::Error::other(
                "another node answers at this address, or one of another cluster",
            )),
        }
    }

    /// Secures a connection that another node has dialled.
    pub(super) async fn accept(&self, connection: Connection) -> io::Result<Wire> {
        let stream = self.acceptor.accept(connection).await.map_err(explained)?;
        let identity = identity(stream.get_ref().1.peer_certificates());
        let identity = identity.filter(|identity| identity.is(self.cluster(), None));
        match identity {
            Some(identity) => Ok(Wire::secured(stream, identity)),
            None => Err(io::Error::other("the caller is no node of this cluster")),
        }
    }
}

/// An error of a secured connection, in words that say what to do.
pub(super) fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref();
    let text = match inner.and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(wrong) if is_of_another_authority(wrong) => {
            "the other side has a certificate of another authority than \"ca\" of this one: all nodes \
             of a cluster, and its operators, need certificates of one authority"
                .to_owned()
        }
        Some(TlsError::NoCertificatesPresented) => {
            "the other side shows no certificate".to_owned()
        }
        Some(TlsError::InvalidMessage(_)) => {
            "the other side does not speak TLS: all nodes of a cluster have a section [tls], or none"
                .to_owned()
        }
        Some(TlsError::AlertReceived(alert)) => format!(
            "the other side does not take the certificate of this one ({alert:?}): is it of the \
             same authority?"
        ),
        _ => return error,
    };
    io::Error::new(error.kind(), text)
}

fn is_of_another_authority(error: &TlsError) -> bool {
    matches!(
        error,
        TlsError::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature
        )
    )
}

fn identity(certificates: Option<&[CertificateDer<'_>]>) -> Option<Identity> {
    certificates?.first().and_then(Identity::of)
}

/// The certificates of a file: at least one.
fn certificates(file: TlsFile, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, InvalidTls> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|source| InvalidTls::Pem { file, source })?;
    match certificates.is_empty() {
        true => Err(InvalidTls::Lacking(file)),
        false => Ok(certificates),
    }
}

/// What is wrong with a certificate and its key together.
fn unfit(error: TlsError) -> InvalidTls {
    match error {
        TlsError::InconsistentKeys(_) => InvalidTls::OtherKey,
        TlsError::InvalidCertificate(_) => InvalidTls::Certificate(error),
        error => InvalidTls::Key(error),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn connector(
    verifier: OfAuthority,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
) -> Result<TlsConnector, InvalidTls> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unfit)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain.to_vec(), key.clone_key())
        .map_err(unfit)?;
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
        .map_err(unfit)?
        .with_client_cert_verifier(verifier.map_err(InvalidTls::Verifier)?)
        .with_single_cert(chain, key)
        .map_err(unfit)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Takes any certificate of the cluster's authority, for any host: [`Tls::connect`] then looks at
/// which node it names.
#[derive(Debug)]
struct OfAuthority {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl OfAuthority {
    /// Whether the authority has signed a certificate, by way of those between.
    fn signed(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), InvalidTls> {
        let verified = ParsedCertificate::try_from(certificate).and_then(|certificate| {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let roots = &self.roots;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, between, now, algorithms)
        });
        match verified {
            Err(error) if is_of_another_authority(&error) => Err(InvalidTls::OtherAuthority),
            // It may be an operator's, who only calls.
            Err(TlsError::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            )) => Ok(()),
            verified => verified.map_err(InvalidTls::Certificate),
        }
    }
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
