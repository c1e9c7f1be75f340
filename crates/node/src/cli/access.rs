//! The way to a node's listener for operators.

use std::path::PathBuf;

use clap::Args;
use proto::admin::admin_client::AdminClient;
use replica::Network;
use replica::peer::{Tls, channel_of_stranger};
use tonic::transport::Channel;

use super::{Failure, Target};
use crate::config;
use crate::start::{ADMIN_PORTS_ABOVE, read_tls};

/// The variable that says where operators connect.
const VARIABLE: &str = "ORDERLY_ADMIN_ENDPOINT";

/// Where operators connect, and how they prove that they are.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For operators: drill, keys, nodes, regions, shards")]
pub(crate) struct Access {
    /// The node's listener for operators, as host:port. By default the host of --endpoint, 2,000
    /// ports above.
    #[arg(
        long,
        global = true,
        env = VARIABLE,
        value_name = "HOST:PORT"
    )]
    admin_endpoint: Option<String>,
    /// The authority of the nodes' certificates, where the listener is reached from other machines.
    #[arg(long, global = true, value_name = "FILE", requires_all = ["certificate", "key"])]
    ca: Option<PathBuf>,
    /// A certificate of that authority for this cluster.
    #[arg(long, global = true, value_name = "FILE", requires = "ca")]
    certificate: Option<PathBuf>,
    /// Its private key.
    #[arg(long, global = true, value_name = "FILE", requires = "ca")]
    key: Option<PathBuf>,
}

impl Access {
    /// Whether anything of it was typed.
    pub(crate) fn is_told(&self) -> bool {
        let by_environment = std::env::var(VARIABLE).ok();
        self.ca.is_some() || self.admin_endpoint.is_some() && self.admin_endpoint != by_environment
    }

    /// A client of the service for operators.
    pub(crate) async fn client(&self, target: &Target) -> Result<AdminClient<Channel>, Failure> {
        self.client_at(self.endpoint(target)?, target).await
    }

    /// The same where another node may be nearer than the one of --endpoint.
    pub(crate) async fn client_beside(
        &self,
        endpoint: &str,
        target: &Target,
    ) -> Result<AdminClient<Channel>, Failure> {
        let endpoint = match &self.admin_endpoint {
            Some(endpoint) => endpoint.clone(),
            None => beside(endpoint)?,
        };
        self.client_at(endpoint, target).await
    }

    /// Where that is.
    pub(crate) fn endpoint(&self, target: &Target) -> Result<String, Failure> {
        match &self.admin_endpoint {
            Some(endpoint) => Ok(endpoint.clone()),
            None => beside(&target.endpoint),
        }
    }

    /// The same of a certain node, whose listener for operators is there.
    pub(crate) async fn client_at(
        &self,
        endpoint: String,
        target: &Target,
    ) -> Result<AdminClient<Channel>, Failure> {
        let channel = match self.tls()? {
            Some(tls) => channel_of_stranger(&Network::sockets(), &endpoint, Some(tls)),
            None => {
                let target = Target {
                    endpoint,
                    ..target.clone()
                };
                target.channel().await.map_err(closed_to_operators)?
            }
        };
        Ok(AdminClient::new(channel))
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let (Some(ca), Some(certificate), Some(key)) = (&self.ca, &self.certificate, &self.key)
        else {
            return Ok(None);
        };
        let files = config::Tls {
            ca: ca.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
        };
        Ok(Some(read_tls(&files)?))
    }
}

/// Nobody listens for operators there: perhaps only as far as other machines see.
fn closed_to_operators(failure: Failure) -> Failure {
    match failure {
        Failure::Unreachable { endpoint, why } => Failure::NoOperators { endpoint, why },
        other => other,
    }
}

/// The listener for operators of a node that has it where it is by default.
pub(crate) fn beside(endpoint: &str) -> Result<String, Failure> {
    let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, ""));
    let port = port.parse::<u16>().ok();
    match port.and_then(|port| port.checked_add(ADMIN_PORTS_ABOVE)) {
        Some(port) => Ok(format!("{host}:{port}")),
        None => Err(Failure::Usage(format!(
            "no port for operators goes with --endpoint {endpoint}: say --admin-endpoint HOST:PORT"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_for_operators_goes_with_the_one_for_clients() {
        assert_eq!(beside("localhost:8085").unwrap(), "localhost:10085");
        assert_eq!(beside("[::1]:8085").unwrap(), "[::1]:10085");
        for odd in ["localhost", "localhost:65000", "localhost:x"] {
            assert!(matches!(beside(odd), Err(Failure::Usage(_))), "{odd}");
        }
    }
}
