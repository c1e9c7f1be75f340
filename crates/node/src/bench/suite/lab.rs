//! What rows may use: fresh servers, and loads on them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::outcome::Outcome;
use super::row::Line;
use super::server::Server;
use crate::cli::Failure;

/// The emulator's start script in a Cloud SDK.
const EMULATOR: &str = "platform/pubsub-emulator/bin/cloud-pubsub-emulator";
/// Where packages put the Cloud SDK.
const SDK_FOLDERS: [&str; 2] = ["/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk"];

/// How much work rows do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Seconds of a timed load.
    seconds: u32,
    /// Seconds before they begin.
    warm_up: u32,
    /// Messages of 1,000 bytes where a row wants much data.
    pub(crate) messages: u64,
    /// Things whose memory is measured, keys or subscriptions.
    pub(crate) keys: u64,
    /// Subscriptions of one topic.
    pub(crate) subscriptions: u64,
}

impl Scale {
    /// What the table is made with: a gigabyte, and 10,000 subscriptions with the active one.
    pub(crate) const FULL: Scale = Scale {
        seconds: 15,
        warm_up: 3,
        messages: 1_000_000,
        keys: 200_000,
        subscriptions: 9_999,
    };
    /// Seconds for each row.
    pub(crate) const QUICK: Scale = Scale {
        seconds: 2,
        warm_up: 1,
        messages: 20_000,
        keys: 5_000,
        subscriptions: 99,
    };

    /// A load of this scale's length.
    pub(crate) fn timed(&self, arguments: &str) -> String {
        format!(
            "{arguments} --warm-up {}s --duration {}s",
            self.warm_up, self.seconds
        )
    }
}

/// What rows may use.
pub(crate) struct Lab {
    pub(crate) scale: Scale,
    data_dir: PathBuf,
    emulator: Option<PathBuf>,
    program: PathBuf,
}

impl Lab {
    /// Says so on standard error if there is no emulator to compare with.
    pub(crate) fn new(
        scale: Scale,
        data_dir: PathBuf,
        emulator: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let emulator = emulator.or_else(installed_emulator);
        if emulator.is_none() {
            eprintln!("skipped: the comparison with Google's emulator, which is not installed");
        }
        let program = env::current_exe().map_err(Failure::Runtime)?;
        Ok(Lab {
            scale,
            data_dir,
            emulator,
            program,
        })
    }

    /// Starts a node with an empty data folder.
    pub(crate) fn node(&self) -> Result<Server, Failure> {
        Server::node(&self.program, &self.data_dir)
    }

    /// Puts a load on a server, with its progress on our standard error.
    pub(crate) fn load(&self, server: &Server, arguments: &str) -> Result<Outcome, Failure> {
        eprintln!("orderly bench {arguments}");
        let child = Command::new(&self.program)
            .args(["bench", "--endpoint", server.address(), "-o", "json"])
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        Outcome::read(arguments, &child.map_err(Failure::Runtime)?)
    }

    /// The same load on Google's emulator, if it is installed. That it can't keep up is a result
    /// and no failure, and nobody waits for it.
    pub(crate) fn load_emulator(&self, arguments: &str) -> Result<Option<Outcome>, Failure> {
        let Some(emulator) = &self.emulator else {
            return Ok(None);
        };
        let server = Server::emulator(emulator)?;
        self.load(&server, &format!("{arguments} --drain 5s"))
            .map(Some)
    }

    /// A line of one load on a node, and on the emulator.
    pub(crate) fn compare(
        &self,
        work: &str,
        arguments: &str,
        show: fn(&Outcome) -> String,
    ) -> Result<(Line, Outcome), Failure> {
        let outcome = self.load(&self.node()?, arguments)?;
        let emulator = self.load_emulator(arguments)?;
        let mut line = outcome.line(work, show);
        line.emulator = emulator.as_ref().map(show);
        Ok((line, outcome))
    }
}

fn installed_emulator() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join("google-cloud-sdk"));
    let folders = SDK_FOLDERS.iter().map(PathBuf::from).chain(home);
    folders
        .map(|folder| folder.join(EMULATOR))
        .find(|script| script.is_file())
}
