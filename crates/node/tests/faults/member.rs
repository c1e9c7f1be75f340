//! One node of a cluster: its place, its configuration, its process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::process::Process;

/// The port of clients, and of other nodes. Each node has an address of its own.
pub(crate) const PORT: u16 = 8085;
pub(crate) const PEER_PORT: u16 = 9085;
/// Seconds after which a silent node is replaced, where there is another: the least that there may
/// be.
const REPLACE_AFTER_S: u32 = 10;
/// What the nodes write.
const LOG: &str = "warn,openraft=off";

/// A node. It may not panic, nor end but by its test.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) region: String,
    /// Its address.
    pub(crate) host: String,
    folder: PathBuf,
    process: Option<Process>,
}

impl Member {
    /// A node that does not run yet, with its configuration.
    pub(crate) fn new(place: Place, folder: &Path) -> Self {
        let Place { name, region, host } = place;
        let member = Member {
            folder: folder.join(&name),
            name,
            region,
            host,
            process: None,
        };
        fs::create_dir_all(&member.folder).expect("a temporary folder takes folders");
        member
    }

    /// Where clients connect.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{PORT}", self.host)
    }

    /// Where other nodes connect.
    pub(crate) fn peer_endpoint(&self) -> String {
        format!("{}:{PEER_PORT}", self.host)
    }

    /// Writes its configuration, with nodes to join.
    pub(crate) fn configure(&self, join: &[String], wan_round_trip_ms: u32) {
        let Member { name, region, .. } = self;
        let (listen, peer_listen) = (self.endpoint(), self.peer_endpoint());
        let data_dir = self.folder.join("data");
        let text = format!(
            "node = \"{name}\"\n\
             region = \"{region}\"\n\
             zone = \"{name}\"\n\
             data_dir = {data_dir:?}\n\
             listen = \"{listen}\"\n\
             peer_listen = \"{peer_listen}\"\n\
             join = {join:?}\n\
             replace_after_s = {REPLACE_AFTER_S}\n\
             \n\
             [emulate]\n\
             wan_round_trip_ms = {wan_round_trip_ms}\n"
        );
        fs::write(self.config(), text).expect("a temporary folder takes files");
    }

    /// Founds a cluster with this node. It has few groups: a test machine is small.
    pub(crate) fn found(&self) {
        let founded = self
            .orderly("init")
            .args(["--shards-per-region", "1", "--registries", "1"])
            .status();
        assert!(founded.expect("the binary runs").success());
    }

    /// Starts it, and does not wait.
    pub(crate) fn start(&mut self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        let mut command = self.orderly("serve");
        // It must not outlive a test that is killed itself.
        command.arg("--until-input-ends").stdin(Stdio::piped());
        self.process = Some(Process::run(command));
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.running().kill();
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        self.running().ends()
    }

    /// Takes away what it has written. It must not run.
    pub(crate) fn lose_disk(&self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        fs::remove_dir_all(self.folder.join("data")).expect("it has written something");
    }

    /// Stops all its threads where they are.
    pub(crate) fn pause(&self) {
        self.process().signal("STOP");
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.process().signal("CONT");
    }

    /// Asks it to end, as an operator does, and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.running().terminate()
    }

    pub(crate) fn runs(&self) -> bool {
        self.process.is_some()
    }

    fn orderly(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orderly"));
        command
            .args([verb, "--config"])
            .arg(self.config())
            .env("ORDERLY_LOG", LOG)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn config(&self) -> PathBuf {
        self.folder.join("node.toml")
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("the node runs")
    }

    fn running(&mut self) -> Process {
        self.process.take().expect("the node runs")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        match self.process.take() {
            Some(process) if thread::panicking() => process.abandon(),
            Some(process) => process.kill(),
            None => {}
        }
    }
}

/// Where a node stands.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) host: String,
}
