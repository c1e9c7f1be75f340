//! The configuration of a node: one TOML file.
//!
//! [`Config`] is the file as it is written; [`crate::start::Settings`] is what a node works with.
//! `check` finds what is wrong with a file, and says what would be right.

mod check;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{NodeName, RegionName, ZoneName};
use serde::Deserialize;
use thiserror::Error;

use crate::start::{Member, Settings, admin_beside};

/// A configuration file, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The node's name: unique in the cluster, of lower-case letters, digits, dashes and dots.
    pub node: String,
    /// The region that the node stands in.
    pub region: String,
    /// The failure domain inside the region, for example a rack or a zone of a cloud.
    pub zone: String,
    /// Where the node keeps everything.
    pub data_dir: PathBuf,
    /// Where clients connect: `address:port`.
    pub listen: SocketAddr,
    /// What clients of other nodes are told: `host:port`. By default the same as `listen`.
    pub advertise: Option<String>,
    /// Where other nodes connect: `address:port`.
    pub peer_listen: SocketAddr,
    /// What other nodes are told: `host:port`. A name is resolved anew at each dial. By default
    /// the same as `peer_listen`.
    pub peer_advertise: Option<String>,
    /// Where operators connect: `address:port`. By default on loopback, 2,000 above the port of
    /// `listen`. Beyond loopback they show certificates as nodes do.
    pub admin_listen: Option<SocketAddr>,
    /// Seconds after which a silent node is replaced by others that have room for what it had.
    #[serde(default = "replace_after")]
    pub replace_after_s: u32,
    /// Milliseconds of the longest round trip between two regions of the cluster: elections are timed
    /// by it. To be set, alike on all nodes, where the cluster is in several regions or will be;
    /// beyond 80 it must be. By default what is emulated, if anything is.
    pub region_round_trip_ms: Option<u32>,
    /// Nodes of the cluster to join: `host:port` of their `peer_listen`. Used only while the data
    /// folder is empty.
    #[serde(default)]
    pub join: Vec<String>,
    /// Serves addresses that other machines reach without TLS.
    #[serde(default)]
    pub insecure: bool,
    /// How nodes prove to each other who they are.
    pub tls: Option<Tls>,
    /// Delays that are not there.
    #[serde(default)]
    pub emulate: Emulate,
}

/// Certificates for the connections between nodes: PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The authority that signed the certificates of all nodes.
    pub ca: PathBuf,
    /// This node's certificate. Its SAN has the URI `orderly://CLUSTER/NODE`.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Delays that are not there, for demonstrations on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulate {
    /// Milliseconds that a round trip to a node of another region takes at least.
    #[serde(default)]
    pub wan_round_trip_ms: u32,
}

/// Five minutes: a restart of a machine takes less, and to copy all that a node had costs more than
/// to wait for it.
fn replace_after() -> u32 {
    5 * 60
}

/// Why a configuration has names.
const CHECKED: &str = "a configuration is checked when it is read";

/// A configuration can't be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{path} can't be read: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file says what no node understands.
    #[error("{path}: {what}", path = .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
}

impl Config {
    /// Reads a file and checks it.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let read = Config::parse(&text).and_then(|config| {
            check::files(&config)?;
            Ok(config)
        });
        read.map_err(|what| ConfigError::Wrong {
            path: path.to_owned(),
            what,
        })
    }

    /// Where operators connect.
    fn admin_listen(&self) -> SocketAddr {
        self.admin_listen
            .unwrap_or_else(|| admin_beside(self.listen))
    }

    /// Reads the text of a file; an error says what is wrong and what would be right.
    fn parse(text: &str) -> Result<Self, String> {
        check::keys(text)?;
        let config: Config = toml::from_str(text).map_err(|wrong| wrong.to_string())?;
        check::values(&config)?;
        Ok(config)
    }

    /// What a node with this configuration works with.
    #[must_use]
    pub fn settings(self) -> Settings {
        let advertised =
            |said: Option<String>, listen: SocketAddr| said.unwrap_or_else(|| listen.to_string());
        let emulated = u64::from(self.emulate.wan_round_trip_ms);
        let round_trip = self.region_round_trip_ms.map(u64::from);
        let round_trip = round_trip.or((emulated > 0).then_some(emulated));
        Settings {
            admin_listen: self.admin_listen(),
            data_dir: self.data_dir,
            listen: self.listen,
            replace_after: Duration::from_secs(self.replace_after_s.into()),
            member: Some(Member {
                name: NodeName::parse(&self.node).expect(CHECKED),
                region: RegionName::parse(&self.region).expect(CHECKED),
                zone: ZoneName::parse(&self.zone).expect(CHECKED),
                client_address: advertised(self.advertise, self.listen),
                peer_address: advertised(self.peer_advertise, self.peer_listen),
                peer_listen: self.peer_listen,
                join: self.join,
                wan_one_way: Duration::from_millis(emulated) / 2,
                region_round_trip: round_trip.map(Duration::from_millis),
                tls: self.tls,
            }),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        node = "north-1"
        region = "north"
        zone = "a"
        data_dir = "/var/lib/orderly"
        listen = "127.0.0.1:8085"
        peer_listen = "127.0.0.1:8086"
    "#;

    #[test]
    fn a_short_file_has_defaults() {
        let config = Config::parse(WHOLE).unwrap();
        assert_eq!(config.join, Vec::<String>::new());
        let member = config.settings().member.expect("a file makes a member");
        assert_eq!(member.peer_address, "127.0.0.1:8086");
        assert_eq!(member.client_address, "127.0.0.1:8085");
    }

    #[test]
    fn the_round_trip_between_regions_is_what_is_said_or_else_what_is_emulated() {
        let round_trip = |more: &str, below: &str| {
            let config = Config::parse(&format!("{more}\n{WHOLE}\n{below}")).unwrap();
            config.settings().member.unwrap().region_round_trip
        };
        let emulated = "[emulate]\nwan_round_trip_ms = 150";
        assert_eq!(round_trip("", ""), None);
        assert_eq!(round_trip("", emulated), Some(Duration::from_millis(150)));
        let said = "region_round_trip_ms = 230";
        assert_eq!(round_trip(said, emulated), Some(Duration::from_millis(230)));
        let wrong = Config::parse(&format!("region_round_trip_ms = 60000\n{WHOLE}")).unwrap_err();
        assert!(
            wrong.starts_with("region_round_trip_ms 60000 is longer"),
            "{wrong}"
        );
    }

    #[test]
    fn operators_connect_on_loopback_unless_they_have_certificates() {
        let settings = Config::parse(WHOLE).unwrap().settings();
        assert_eq!(settings.admin_listen.to_string(), "127.0.0.1:10085");
        let open = format!("admin_listen = \"0.0.0.0:8087\"\n{WHOLE}");
        let wrong = Config::parse(&open).unwrap_err();
        assert!(
            wrong.starts_with("admin_listen 0.0.0.0:8087 can be reached"),
            "{wrong}"
        );
        let tls = "[tls]\nca = \"a\"\ncertificate = \"b\"\nkey = \"c\"";
        assert!(Config::parse(&format!("{open}\n{tls}")).is_ok());
    }

    #[test]
    fn every_listener_has_a_port_of_its_own_that_others_know() {
        let wrong = |from: &str, to: &str| {
            let text = WHOLE.replace(from, to);
            assert_ne!(text, WHOLE, "{from}");
            Config::parse(&text).unwrap_err()
        };
        let taken = wrong(":8086", ":8085");
        assert!(
            taken.starts_with("listen 127.0.0.1:8085 and peer_listen 127.0.0.1:8085"),
            "{taken}"
        );
        let taken = wrong(":8086", ":10085");
        assert!(
            taken.starts_with("admin_listen 127.0.0.1:10085, by default"),
            "{taken}"
        );
        let everywhere = format!(
            "insecure = true\npeer_advertise = \"a:8085\"\n{}",
            WHOLE.replace("127.0.0.1:8086", "0.0.0.0:8085")
        );
        assert!(Config::parse(&everywhere).is_err());
        let apart = WHOLE.replace("127.0.0.1:8086", "127.0.0.2:8085");
        assert!(Config::parse(&apart).is_ok());
        for key in [
            "listen = \"127.0.0.1:8085",
            "peer_listen = \"127.0.0.1:8086",
        ] {
            let (name, _) = key.split_once(' ').unwrap();
            let none = wrong(&format!(" {key}"), &format!(" {name} = \"127.0.0.1:0"));
            assert!(
                none.starts_with(&format!("{name} 127.0.0.1:0 is any port")),
                "{none}"
            );
        }
        let beyond = wrong(":8085", ":64000");
        assert!(
            beyond.starts_with("listen 127.0.0.1:64000 has no port"),
            "{beyond}"
        );
        let said = WHOLE.replace(":8085", ":64000");
        assert!(Config::parse(&format!("admin_listen = \"127.0.0.1:9\"\n{said}")).is_ok());
        let nobody = Config::parse(&format!("join = [\"a:0\"]\n{WHOLE}")).unwrap_err();
        assert!(
            nobody.starts_with("join \"a:0\" must be host:port"),
            "{nobody}"
        );
    }

    #[test]
    fn a_data_folder_has_a_name() {
        let wrong = Config::parse(&WHOLE.replace("/var/lib/orderly", " ")).unwrap_err();
        assert!(
            wrong.starts_with("data_dir is empty: name the folder"),
            "{wrong}"
        );
    }

    #[test]
    fn a_node_is_not_replaced_while_it_restarts() {
        let wrong = Config::parse(&format!("replace_after_s = 9\n{WHOLE}")).unwrap_err();
        assert!(
            wrong.starts_with("replace_after_s 9 is too short"),
            "{wrong}"
        );
    }

    #[test]
    fn a_key_with_a_slip_is_refused_with_the_right_one() {
        let wrong = Config::parse(&format!("{WHOLE}\npeer_lisen = \"127.0.0.1:1\"")).unwrap_err();
        assert_eq!(
            wrong,
            "unknown key \"peer_lisen\": did you mean \"peer_listen\"?"
        );
        let wrong = Config::parse(&format!("{WHOLE}\n[tls]\nkeys = \"k\"")).unwrap_err();
        assert_eq!(wrong, "unknown key \"tls.keys\": did you mean \"tls.key\"?");
    }

    #[test]
    fn a_key_like_no_other_is_refused_with_all_of_them() {
        let wrong = Config::parse(&format!("{WHOLE}\nfsync = false")).unwrap_err();
        assert!(wrong.starts_with("unknown key \"fsync\": the keys are node, region"));
    }

    #[test]
    fn a_missing_key_is_named() {
        let wrong = Config::parse("node = \"a\"").unwrap_err();
        assert!(wrong.contains("missing field `region`"), "{wrong}");
    }

    #[test]
    fn what_others_reach_needs_tls() {
        let open = WHOLE.replace("127.0.0.1:8086", "0.0.0.0:8086");
        let wrong = Config::parse(&open).unwrap_err();
        assert!(
            wrong.starts_with("peer_listen 0.0.0.0:8086 can be reached"),
            "{wrong}"
        );
        let wrong = Config::parse(&format!("insecure = true\n{open}")).unwrap_err();
        assert!(wrong.starts_with("nobody can dial 0.0.0.0:8086"), "{wrong}");
        let named = format!("insecure = true\npeer_advertise = \"north-1:8086\"\n{open}");
        assert_eq!(Config::parse(&named).map(|_| ()), Ok(()));
    }

    #[test]
    fn names_have_a_grammar() {
        let wrong = Config::parse(&WHOLE.replace("north-1", "North 1")).unwrap_err();
        assert!(
            wrong.starts_with("\"North 1\" can't be the name of a node"),
            "{wrong}"
        );
    }

    #[test]
    fn an_advertised_address_is_one_that_can_be_dialled() {
        let wrong = Config::parse(&format!("{WHOLE}\npeer_advertise = \"north-1\"")).unwrap_err();
        assert!(
            wrong.starts_with("peer_advertise \"north-1\" must be host:port"),
            "{wrong}"
        );
    }
}
