//! Child processes: cargo and the suites, run in the checkout with the environment that builds need.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// What commands about the whole workspace add: the simulator of whole nodes too. Without it, the
/// libraries would be built a second time for it.
pub(crate) const WITH_NODES: &str = "--features=orderly-sim/nodes";

/// A cargo command at the root of the checkout.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<Command> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = at_root(root, cargo)?;
    command.args(arguments);
    Ok(command)
}

/// A command at the root of the checkout, with what a build against the cached RocksDB archive needs.
///
/// The archive is built first where it is missing, which takes about 21 minutes once for a machine.
pub(crate) fn at_root(root: &Path, program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
    let mut command = Command::new(program);
    command.current_dir(root);
    if std::env::var_os("ROCKSDB_LIB_DIR").is_none() {
        command
            .env("ROCKSDB_LIB_DIR", archive(root)?)
            .env("ROCKSDB_STATIC", "1");
    }
    // Cargo started this process for another package than the ones that the command is about.
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(b"CARGO_PKG_") {
            command.env_remove(variable);
        }
    }
    command.env_remove("CARGO_MANIFEST_DIR");
    Ok(command)
}

/// Says what is about to happen, runs the command, and fails if it fails.
pub(crate) fn run(what: &str, mut command: Command) -> anyhow::Result<()> {
    eprintln!("xtask: {what}");
    let status = command
        .status()
        .with_context(|| format!("{command:?} does not start"))?;
    if !status.success() {
        bail!("{what}: failed ({status})");
    }
    Ok(())
}

/// The folder of the static RocksDB archive, which the script `.ci/rocksdb` prints.
fn archive(root: &Path) -> anyhow::Result<String> {
    let output = Command::new(root.join(".ci/rocksdb"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .context(".ci/rocksdb does not start")?;
    if !output.status.success() {
        bail!(".ci/rocksdb failed: see its message above");
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
