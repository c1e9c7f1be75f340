//! One process that serves Pub/Sub: a node, or Google's emulator.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use proto::pubsub::ListTopicsRequest;

use crate::cli::{Failure, Target};

/// How long a server may take until it answers.
const READY_MAX: Duration = Duration::from_secs(60);
/// How often it is asked.
const ASK: Duration = Duration::from_millis(2);

/// A running server; it is killed, and its data is deleted, when this is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    /// The program and data folder of a node.
    node: Option<(PathBuf, PathBuf)>,
}

impl Server {
    /// Starts a node with an empty folder below `data_dir`.
    pub(crate) fn node(program: &Path, data_dir: &Path) -> Result<Self, Failure> {
        let folder = data_dir.join("node");
        let emptied = match fs::remove_dir_all(&folder) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(why),
            _ => fs::create_dir_all(&folder),
        };
        emptied.map_err(|source| Failure::Write {
            path: folder.clone(),
            source,
        })?;
        let address = free_address()?;
        let child = spawn_node(program, &folder, &address)?;
        let node = Some((program.to_owned(), folder));
        let mut server = Server {
            child,
            address,
            node,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Starts Google's emulator.
    pub(crate) fn emulator(script: &Path) -> Result<Self, Failure> {
        let address = free_address()?;
        let port = address.rsplit(':').next().unwrap_or_default();
        let child = Command::new(script)
            .args(["--host=127.0.0.1", &format!("--port={port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.map_err(Failure::Runtime)?;
        let mut server = Server {
            child,
            address,
            node: None,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The bytes in a node's data folder.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.node
            .as_ref()
            .map_or(0, |(_, folder)| folder_bytes(folder))
    }

    /// Kills a node as kill -9 does, starts it again, and returns how long it took to answer.
    pub(crate) fn kill_and_restart(&mut self) -> Result<Duration, Failure> {
        let (program, folder) = self.node.as_ref().expect("only nodes are restarted");
        kill(&mut self.child);
        let start = Instant::now();
        self.child = spawn_node(program, folder, &self.address)?;
        self.wait_until_ready()?;
        Ok(start.elapsed())
    }

    /// Waits until a call is answered.
    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(Failure::Runtime)?;
        let target = Target {
            endpoint: self.address.clone(),
            project: "orderly".into(),
        };
        let deadline = Instant::now() + READY_MAX;
        loop {
            let answer = runtime.block_on(list_topics(&target));
            let Err(failure) = answer else { return Ok(()) };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::Check(format!("the server has ended: {status}")));
            }
            if Instant::now() > deadline {
                return Err(failure);
            }
            thread::sleep(ASK);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
        if let Some((_, folder)) = &self.node {
            // What is left is deleted before the next node starts, or tells then why it can't be.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn spawn_node(program: &Path, folder: &Path, address: &str) -> Result<Child, Failure> {
    let path = folder.with_extension("log");
    let log = File::options().create(true).append(true).open(&path);
    let log = log.map_err(|source| Failure::Write { path, source })?;
    let copy = log.try_clone().map_err(Failure::Runtime)?;
    let child = Command::new(program)
        .args([
            "serve",
            "--listen",
            address,
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(copy)
        .spawn();
    child.map_err(Failure::Runtime)
}

fn kill(child: &mut Child) {
    // Both fail only if it has ended, which is what is wanted.
    let _ = child.kill();
    let _ = child.wait();
}

async fn list_topics(target: &Target) -> Result<(), Failure> {
    let request = ListTopicsRequest {
        project: target.project_name(),
        ..Default::default()
    };
    target.publisher().await?.list_topics(request).await?;
    Ok(())
}

/// An address of this machine that nobody listens on.
fn free_address() -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::Runtime)?;
    Ok(listener.local_addr().map_err(Failure::Runtime)?.to_string())
}

fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
