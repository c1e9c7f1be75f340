//! What is wrong with a configuration, and what would be right.

use std::net::SocketAddr;

use model::{NodeName, RegionName, ZoneName};

use super::Config;
use crate::start::{ADMIN_PORTS_ABOVE, read_tls_of};

/// Every key, as a path from the top of the file. A test compares it with [`Config`].
const KEYS: [&str; 19] = [
    "node",
    "region",
    "zone",
    "data_dir",
    "listen",
    "advertise",
    "peer_listen",
    "peer_advertise",
    "admin_listen",
    "replace_after_s",
    "region_round_trip_ms",
    "join",
    "insecure",
    "tls",
    "tls.ca",
    "tls.certificate",
    "tls.key",
    "emulate",
    "emulate.wan_round_trip_ms",
];

/// A control group that has lost its leader hears of nobody for a few seconds.
const REPLACE_AFTER_S_MIN: u32 = 10;

/// Twice around the Earth in glass takes less.
const ROUND_TRIP_MS_MAX: u32 = 2_000;

/// So like must two keys be that one is taken for a slip of the other: 1 is the same.
const LIKENESS_MIN: f64 = 0.8;

/// Refuses keys that nobody reads: a slip must not be a silent default.
pub(super) fn keys(text: &str) -> Result<(), String> {
    let table: toml::Table = toml::from_str(text).map_err(|wrong| wrong.to_string())?;
    for (key, value) in &table {
        known(key)?;
        for below in value.as_table().into_iter().flat_map(toml::Table::keys) {
            known(&format!("{key}.{below}"))?;
        }
    }
    Ok(())
}

fn known(key: &str) -> Result<(), String> {
    if KEYS.contains(&key) {
        return Ok(());
    }
    let likeness = |known: &&str| strsim::jaro_winkler(known, key);
    let closest = KEYS
        .into_iter()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
        .filter(|closest| likeness(closest) >= LIKENESS_MIN);
    Err(match closest {
        Some(closest) => format!("unknown key \"{key}\": did you mean \"{closest}\"?"),
        None => format!("unknown key \"{key}\": the keys are {}", KEYS.join(", ")),
    })
}

/// Refuses values that no node can work with.
pub(super) fn values(config: &Config) -> Result<(), String> {
    NodeName::parse(&config.node).map_err(|wrong| wrong.to_string())?;
    RegionName::parse(&config.region).map_err(|wrong| wrong.to_string())?;
    ZoneName::parse(&config.zone).map_err(|wrong| wrong.to_string())?;
    if config.data_dir.to_string_lossy().trim().is_empty() {
        return Err("data_dir is empty: name the folder in which the node keeps everything".into());
    }
    ports(config)?;
    secured("listen", config.listen, config.insecure)?;
    let insecure_peers = config.insecure || config.tls.is_some();
    secured("peer_listen", config.peer_listen, insecure_peers)?;
    if let Some(admin_listen) = config.admin_listen {
        secured("admin_listen", admin_listen, insecure_peers)?;
    }
    if let Some(round_trip) = config.region_round_trip_ms
        && round_trip > ROUND_TRIP_MS_MAX
    {
        return Err(format!(
            "region_round_trip_ms {round_trip} is longer than {ROUND_TRIP_MS_MAX}: no two places on \
             Earth are so far apart"
        ));
    }
    if config.replace_after_s < REPLACE_AFTER_S_MIN {
        return Err(format!(
            "replace_after_s {} is too short, for a node that only starts anew is silent as long: \
             say {REPLACE_AFTER_S_MIN} at least",
            config.replace_after_s
        ));
    }
    advertised("advertise", config.advertise.as_deref(), config.listen)?;
    let peer = config.peer_advertise.as_deref();
    advertised("peer_advertise", peer, config.peer_listen)?;
    for address in &config.join {
        host_and_port("join", address)?;
    }
    Ok(())
}

/// Refuses ports that two listeners would share, or that nobody else could know.
fn ports(config: &Config) -> Result<(), String> {
    for (key, address) in [
        ("listen", config.listen),
        ("peer_listen", config.peer_listen),
    ] {
        if address.port() == 0 {
            return Err(format!(
                "{key} {address} is any port, and nobody would know which: say one"
            ));
        }
    }
    let admin_port = config.listen.port().checked_add(ADMIN_PORTS_ABOVE);
    if config.admin_listen.is_none() && admin_port.is_none() {
        return Err(format!(
            "listen {} has no port for operators {ADMIN_PORTS_ABOVE} above it: say \
             admin_listen = \"127.0.0.1:PORT\"",
            config.listen
        ));
    }
    let is_told = match config.admin_listen {
        Some(_) => "",
        None => ", by default 2,000 above the port of listen,",
    };
    let listeners = [
        ("listen", config.listen, ""),
        ("peer_listen", config.peer_listen, ""),
        ("admin_listen", config.admin_listen(), is_told),
    ];
    for (number, (key, address, told)) in listeners.into_iter().enumerate() {
        let before = listeners[..number].iter();
        if let Some((other, taken, _)) = before.into_iter().find(|it| overlap(it.1, address)) {
            return Err(match told {
                "" => {
                    format!("{other} {taken} and {key} {address} are one address: say another port")
                }
                told => {
                    format!("{key} {address}{told} is where {other} {taken} is: say another port")
                }
            });
        }
    }
    Ok(())
}

/// Whether two listeners can't be at once.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && (is_everywhere || one.ip() == other.ip())
}

/// Refuses certificates that are not there, or are not this node's.
pub(super) fn files(config: &Config) -> Result<(), String> {
    let Some(files) = &config.tls else {
        return Ok(());
    };
    let name = NodeName::parse(&config.node).map_err(|wrong| wrong.to_string())?;
    let read = read_tls_of(files, &name);
    read.map(drop)
        .map_err(|wrong| format!("the section [tls]: {wrong}"))
}

/// Without a word of its own, a node advertises the address that it listens on.
fn advertised(key: &str, said: Option<&str>, listen: SocketAddr) -> Result<(), String> {
    match said {
        Some(address) => host_and_port(key, address),
        None if listen.ip().is_unspecified() => Err(format!(
            "nobody can dial {listen}: say {key} = \"host:port\""
        )),
        None => Ok(()),
    }
}

fn host_and_port(key: &str, address: &str) -> Result<(), String> {
    match address.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(())
        }
        _ => Err(format!(
            "{key} \"{address}\" must be host:port, for example node-1.example:8086"
        )),
    }
}

fn secured(key: &str, listen: SocketAddr, secured: bool) -> Result<(), String> {
    if listen.ip().is_loopback() || secured {
        return Ok(());
    }
    let cure = match key {
        "peer_listen" | "admin_listen" => {
            "add a [tls] section, listen on 127.0.0.1, or say insecure = true"
        }
        _ => {
            "there is no authentication of clients yet: listen on 127.0.0.1, or say insecure = true"
        }
    };
    Err(format!(
        "{key} {listen} can be reached from other machines: {cure}"
    ))
}
