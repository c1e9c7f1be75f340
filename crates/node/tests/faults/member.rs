//! One node of a cluster: its place, its configuration, its process.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::process::Process;

/// The port of clients, and of other nodes. Each node has an address of its own.
pub(crate) const PORT: u16 = 8085;
pub(crate) const PEER_PORT: u16 = 9085;
/// The port of operators.
const ADMIN_PORT: u16 = 10_085;
/// Seconds after which a silent node is replaced, where there is another: the least that there may
/// be.
const REPLACE_AFTER_S: u32 = 10;
/// What the nodes write, unless the environment says otherwise in the nodes' own variable.
const LOG: &str = "warn,openraft=off";
const LOG_VARIABLE: &str = "ORDERLY_LOG";

/// Where and how a node runs.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) zone: String,
    /// Its address.
    pub(crate) host: String,
    /// Where its configuration and its data are.
    pub(crate) folder: PathBuf,
    /// What other nodes are told instead of its address: a name, which they resolve.
    pub(crate) peer_name: Option<String>,
    /// The command, with its arguments, that runs the node.
    pub(crate) runner: Vec<String>,
}

/// A node. It may not panic, nor end but by its test.
pub(crate) struct Member {
    place: Place,
    process: Option<Process>,
}

impl Member {
    /// A node that does not run yet.
    pub(crate) fn new(place: Place) -> Self {
        fs::create_dir_all(&place.folder).expect("a temporary folder takes folders");
        Member {
            place,
            process: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }

    /// Gives it another address, before it starts again.
    pub(crate) fn move_to(&mut self, host: String) {
        self.place.host = host;
    }

    /// Where clients connect.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{PORT}", self.place.host)
    }

    /// Where other nodes connect, as they are told.
    pub(crate) fn peer_endpoint(&self) -> String {
        let host = self.place.peer_name.as_ref().unwrap_or(&self.place.host);
        format!("{host}:{PEER_PORT}")
    }

    /// Writes its configuration, with nodes to join.
    pub(crate) fn configure(&self, join: &[String], wan_round_trip_ms: u32) {
        let Place {
            name,
            region,
            zone,
            host,
            folder,
            ..
        } = &self.place;
        let (listen, told) = (self.endpoint(), self.peer_endpoint());
        let data_dir = folder.join("data");
        let text = format!(
            "node = \"{name}\"\n\
             region = \"{region}\"\n\
             zone = \"{zone}\"\n\
             data_dir = {data_dir:?}\n\
             listen = \"{listen}\"\n\
             peer_listen = \"{host}:{PEER_PORT}\"\n\
             peer_advertise = \"{told}\"\n\
             admin_listen = \"{host}:{ADMIN_PORT}\"\n\
             insecure = true\n\
             join = {join:?}\n\
             replace_after_s = {REPLACE_AFTER_S}\n\
             \n\
             [emulate]\n\
             wan_round_trip_ms = {wan_round_trip_ms}\n"
        );
        let file = File::create(self.config()).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            // Its disk may lose power.
            file.sync_all()
        });
        file.expect("a temporary folder takes files");
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
        assert!(self.process.is_none(), "{} runs", self.name());
        let mut command = self.orderly("serve");
        // It must not outlive a test that is killed itself.
        command.arg("--until-input-ends").stdin(Stdio::piped());
        self.process = Some(Process::run(command));
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.running().kill();
    }

    /// The same where the test takes away what it needs, so that it may have ended by itself.
    pub(crate) fn kill_or_ended(&mut self) {
        self.running().kill_or_ended();
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        self.running().ends()
    }

    /// Takes away what it has written. It must not run.
    pub(crate) fn lose_disk(&self) {
        assert!(self.process.is_none(), "{} runs", self.name());
        fs::remove_dir_all(self.place.folder.join("data")).expect("it has written something");
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
        let mut words = self.place.runner.iter().map(String::as_str);
        let program = env!("CARGO_BIN_EXE_orderly");
        let log = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| LOG.to_owned());
        let mut command = Command::new(words.next().unwrap_or(program));
        if !self.place.runner.is_empty() {
            command.args(words).arg(program);
        }
        command
            .args([verb, "--config"])
            .arg(self.config())
            .env(LOG_VARIABLE, log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The file that it is started with.
    pub(crate) fn config(&self) -> PathBuf {
        self.place.folder.join("node.toml")
    }

    /// Where its data is.
    pub(crate) fn data(&self) -> PathBuf {
        self.place.folder.join("data")
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
