//! `orderly certificates`: what nodes prove to each other who they are with.
//!
//! Any authority will do whose certificates name nodes in the same way; this one needs no other
//! tool. Its certificates do not expire: a new authority ends them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use model::NodeName;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use super::Failure;
use super::output::print_line;

/// The name of the authority, in its own certificate and as the issuer of all others.
const AUTHORITY: &str = "Orderly cluster authority";

/// Files of the authority.
const AUTHORITY_CERTIFICATE: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca.key";

/// What is certified.
#[derive(Debug, Subcommand)]
pub(crate) enum Certificates {
    /// Makes the authority of a new cluster: ca.pem goes to every node, ca.key to none.
    Authority {
        /// Where the files go.
        #[arg(long, value_name = "FOLDER", default_value = "certificates")]
        folder: PathBuf,
    },
    /// Makes the certificate and key of a node, NODE.pem and NODE.key.
    Node {
        /// The name of the node, as its configuration says it.
        node: String,
        /// The id of the cluster. A cluster that is founded with this certificate gets it.
        #[arg(long)]
        cluster: String,
        /// Where the authority's files are, and these go.
        #[arg(long, value_name = "FOLDER", default_value = "certificates")]
        folder: PathBuf,
    },
}

impl Certificates {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Certificates::Authority { folder } => authority(&folder),
            Certificates::Node {
                node,
                cluster,
                folder,
            } => certify(&folder, &cluster, &node),
        }
    }
}

fn authority(folder: &Path) -> Result<(), Failure> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = of_authority().self_signed(&key).map_err(failed)?;
    fs::create_dir_all(folder).map_err(|source| Failure::Write {
        path: folder.to_owned(),
        source,
    })?;
    write_key(&folder.join(AUTHORITY_KEY), &key)?;
    write(
        &folder.join(AUTHORITY_CERTIFICATE),
        &certificate.pem(),
        0o644,
    )
}

fn certify(folder: &Path, cluster: &str, node: &str) -> Result<(), Failure> {
    let node = NodeName::parse(node).map_err(|error| Failure::Usage(error.to_string()))?;
    if cluster.is_empty()
        || !cluster
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        let text = "the id of a cluster has letters, digits and '-'";
        return Err(Failure::Usage(text.to_owned()));
    }
    let path = folder.join(AUTHORITY_KEY);
    let key = fs::read_to_string(&path).map_err(|error| {
        let next = "make an authority with \"orderly certificates authority\"";
        Failure::Check(format!("{}: {error}; {next}", path.display()))
    })?;
    let key = KeyPair::from_pem(&key).map_err(failed)?;
    let issuer = Issuer::new(of_authority(), key);
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = named(node.as_str());
    let uri = format!("orderly://{cluster}/{node}");
    params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().map_err(failed)?)];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
    write_key(&folder.join(format!("{node}.key")), &key)?;
    write(
        &folder.join(format!("{node}.pem")),
        &certificate.pem(),
        0o644,
    )
}

/// The authority's certificate but for its key: what it signs later names it in the same words.
fn of_authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

fn write_key(path: &Path, key: &KeyPair) -> Result<(), Failure> {
    write(path, &key.serialize_pem(), 0o600)
}

/// Writes a new file: to replace a key would be to lose it.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })?;
    print_line(&format!("wrote {}", path.display()));
    Ok(())
}

fn failed(error: rcgen::Error) -> Failure {
    Failure::Check(format!("the certificate can't be made: {error}"))
}

#[cfg(test)]
mod tests {
    use replica::peer::Tls;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_node_is_certified_and_can_use_it() {
        let folder = TempDir::new().unwrap();
        let at = |file: &str| fs::read(folder.path().join(file)).unwrap();
        authority(folder.path()).unwrap();
        certify(folder.path(), "prod-1", "node-1").unwrap();
        let tls = Tls::new(&at("ca.pem"), &at("node-1.pem"), &at("node-1.key")).unwrap();
        assert_eq!((tls.cluster(), tls.name().as_str()), ("prod-1", "node-1"));
    }

    #[test]
    fn no_key_is_replaced() {
        let folder = TempDir::new().unwrap();
        authority(folder.path()).unwrap();
        let key = fs::read(folder.path().join(AUTHORITY_KEY)).unwrap();
        assert!(authority(folder.path()).is_err());
        assert_eq!(fs::read(folder.path().join(AUTHORITY_KEY)).unwrap(), key);
    }

    #[test]
    fn without_an_authority_nobody_is_certified() {
        let folder = TempDir::new().unwrap();
        assert!(certify(folder.path(), "prod-1", "node-1").is_err());
    }
}
