//! `orderly serve`: runs a node.

use std::env;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

use super::Failure;
use super::output::print_line;
use crate::config::Config;
use crate::panics;
use crate::start::{ADMIN_PORTS_ABOVE, Environment, Node, Settings, admin_beside};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration of a node of a cluster of several. It replaces the options below.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "listen", "admin_listen", "shards", "insecure"])]
    config: Option<PathBuf>,
    /// Stops when the standard input closes: for a parent that may be killed.
    #[arg(long, hide = true)]
    until_input_ends: bool,
    /// Where the node keeps everything. An empty or new folder founds a cluster of this one node.
    #[arg(
        long,
        env = "ORDERLY_DATA_DIR",
        default_value = "data",
        value_name = "FOLDER"
    )]
    data_dir: PathBuf,
    /// Where clients connect. There is no authentication yet, so only this machine should reach it.
    #[arg(long, default_value = "127.0.0.1:8085", value_name = "ADDRESS:PORT", value_parser = address)]
    listen: SocketAddr,
    /// Where operators connect: this machine only. By default 2,000 above the port for clients.
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin_listen: Option<SocketAddr>,
    /// The shards of a cluster that is founded; a cluster keeps its number.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    shards: u16,
    /// Serves addresses that other machines reach, though everyone may then do everything.
    #[arg(long)]
    insecure: bool,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let settings = self.settings()?;
        let filter =
            EnvFilter::try_from_env("ORDERLY_LOG").unwrap_or_else(|_| "info,openraft=error".into());
        panics::end_process();
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(Failure::Runtime)?;
        runtime.block_on(serve(settings, self.until_input_ends))
    }

    /// What the configuration says, or the options.
    fn settings(&self) -> Result<Settings, Failure> {
        if let Some(file) = &self.config {
            return Ok(Config::read(file)?.settings());
        }
        if !self.listen.ip().is_loopback() && !self.insecure {
            return Err(Failure::Usage(format!(
                "{} can be reached from other machines, and there is no TLS and no \
                 authentication yet: listen on 127.0.0.1, or add --insecure",
                self.listen
            )));
        }
        if self.admin_listen.is_none()
            && self.listen.port().checked_add(ADMIN_PORTS_ABOVE).is_none()
        {
            return Err(Failure::Usage(format!(
                "--listen {} has no port for operators {ADMIN_PORTS_ABOVE} above it: say \
                 --admin-listen 127.0.0.1:PORT",
                self.listen
            )));
        }
        let admin_listen = self.admin_listen;
        let admin_listen = admin_listen.unwrap_or_else(|| admin_beside(self.listen));
        if !admin_listen.ip().is_loopback() {
            return Err(Failure::Usage(format!(
                "{admin_listen} can be reached from other machines: operators connect on 127.0.0.1, \
                 or with the certificates of a node that has a --config"
            )));
        }
        Ok(Settings {
            data_dir: self.data_dir.clone(),
            listen: self.listen,
            admin_listen,
            shards: self.shards,
            ..Settings::default()
        })
    }
}

async fn serve(settings: Settings, until_input_ends: bool) -> Result<(), Failure> {
    let stop = stop_signal().map_err(Failure::Runtime)?;
    let stop = async move {
        tokio::select! {
            () = stop => {}
            () = input_ends(), if until_input_ends => {}
        }
    };
    let mut stop = std::pin::pin!(stop);
    let node = tokio::select! {
        node = Node::start(settings, Environment::machine()) => node?,
        // A node that waits for a cluster to join can be stopped as well.
        () = &mut stop => return Ok(()),
    };
    greet(node.address());
    Ok(node.run(stop).await?)
}

/// Resolves when nobody holds the other end of the standard input any more.
async fn input_ends() {
    let (ended, end) = oneshot::channel();
    // A thread of its own: a read that never returns must not keep the runtime from ending.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// What a person, or a tool that waits for an emulator, reads first.
fn greet(address: SocketAddr) {
    let port = address.port();
    print_line(&format!("Server started, listening on {port}"));
    print_line(&format!("export PUBSUB_EMULATOR_HOST=localhost:{port}"));
    print_line("Try next, in another terminal:");
    if let Some(path) = path_to_add() {
        print_line(&format!("  {path}"));
    }
    for command in [
        "orderly topics create orders",
        "orderly subscriptions create billing --topic orders --enable-message-ordering",
        "orderly topics publish orders --ordering-key customer-1 --message paid",
        "orderly subscriptions pull billing --auto-ack",
    ] {
        print_line(&format!("  {command}"));
    }
}

/// What makes the commands known to a shell; nothing where they are.
fn path_to_add() -> Option<String> {
    let program = env::current_exe().ok()?;
    let folder = program.parent()?;
    let known = env::split_paths(&env::var_os("PATH")?).any(|it| it == folder);
    (!known).then(|| format!("export PATH=\"{}:$PATH\"", folder.display()))
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

/// An address to listen on, or `localhost` and a port, as people write it.
fn address(text: &str) -> Result<SocketAddr, String> {
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numbers
        .parse()
        .map_err(|_| "must be an IP address and a port, as in 127.0.0.1:8085".to_owned())
}
