//! `orderly serve`: runs a node.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::Failure;
use super::output::print_line;
use crate::start::{Node, Settings};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where the node keeps everything. An empty or new folder founds a cluster of this one node.
    #[arg(
        long,
        env = "ORDERLY_DATA_DIR",
        default_value = "data",
        value_name = "FOLDER"
    )]
    data_dir: PathBuf,
    /// Where clients connect. There is no authentication yet, so only this machine should reach it.
    #[arg(long, default_value = "127.0.0.1:8085", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The shards of a cluster that is founded; a cluster keeps its number.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    shards: u16,
    /// Serves addresses that other machines reach, though everyone may then do everything.
    #[arg(long)]
    insecure: bool,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if !self.listen.ip().is_loopback() && !self.insecure {
            return Err(Failure::Usage(format!(
                "{} can be reached from other machines, and there is no TLS and no \
                 authentication yet: listen on 127.0.0.1, or add --insecure",
                self.listen
            )));
        }
        let filter =
            EnvFilter::try_from_env("ORDERLY_LOG").unwrap_or_else(|_| "info,openraft=error".into());
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.map_err(Failure::Runtime)?.block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let stop = stop_signal().map_err(Failure::Runtime)?;
        let settings = Settings {
            data_dir: self.data_dir,
            listen: self.listen,
            shards: self.shards,
        };
        let node = Node::start(settings).await?;
        greet(node.address());
        Ok(node.run(stop).await?)
    }
}

/// What a person, or a tool that waits for an emulator, reads first.
fn greet(address: SocketAddr) {
    let port = address.port();
    print_line(&format!("Server started, listening on {port}"));
    print_line(&format!("export PUBSUB_EMULATOR_HOST=localhost:{port}"));
    print_line("Try next, in another terminal:");
    for command in [
        "orderly topics create orders",
        "orderly subscriptions create billing --topic orders --enable-message-ordering",
        "orderly topics publish orders --ordering-key customer-1 --message paid",
        "orderly subscriptions pull billing --auto-ack",
    ] {
        print_line(&format!("  {command}"));
    }
}

/// Resolves at SIGTERM or Ctrl-C.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
