//! `orderly serve`: runs a node.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::start::StartError;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The folder of the node's data; made if missing.
    #[arg(long, default_value = "./data")]
    data_dir: PathBuf,
    /// Where clients connect.
    #[arg(long, default_value = "127.0.0.1:8085")]
    listen: SocketAddr,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        Err(Failure::Start(StartError::NoServer))
    }
}
