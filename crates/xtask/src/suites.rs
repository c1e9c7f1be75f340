//! `test`: every test there is, and one line at the end that adds them up.

use std::io::{BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::child;
use crate::tally::Tally;

/// The script that runs the official clients against a real node.
const CLIENT_SUITES: &str = "crates/compat/run";

/// Runs the tests of the workspace, then the suites of the official clients, and prints the sum.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    run_crates(root, &mut tally)?;
    run_clients(root, &mut tally)?;
    eprintln!("{tally}");
    if tally.failed() > 0 {
        bail!(
            "{} failed: search the output above for `FAILED` or `failed`",
            tally.failed()
        );
    }
    Ok(())
}

fn run_crates(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let mut tests = child::cargo(
        root,
        &["test", "--workspace", child::WITH_NODES, "--no-fail-fast"],
    )?;
    let (output, input) = std::io::pipe()?;
    // A test that skips itself says so on its error output, which is not captured.
    tests.stdout(input.try_clone()?).stderr(input);
    let what = "tests of every crate (about 10 minutes cold)";
    count(what, tests, output, tally, Tally::read_cargo_line)
}

fn run_clients(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let script = root.join(CLIENT_SUITES);
    if !script.exists() {
        tally.skip(&format!("official clients: {CLIENT_SUITES} is not there"));
        return Ok(());
    }
    let mut suites = child::at_root(root, script)?;
    let (output, input) = std::io::pipe()?;
    suites.stdout(input);
    let what = "official clients (about 5 minutes, more when they are fetched first)";
    count(what, suites, output, tally, Tally::read_suite_line)
}

/// Runs one runner, passes its output through, and counts its results.
fn count(
    what: &str,
    mut command: Command,
    output: PipeReader,
    tally: &mut Tally,
    read_line: fn(&mut Tally, &str),
) -> anyhow::Result<()> {
    eprintln!("xtask: {what}");
    let failed_before = tally.failed();
    let started = command.stdin(Stdio::null()).spawn();
    let mut running = started.with_context(|| format!("{command:?} does not start"))?;
    // The command holds the input of the pipe, which ends only when every holder is gone.
    drop(command);
    for line in BufReader::new(output).lines() {
        let line = line?;
        eprintln!("{line}");
        read_line(tally, &line);
    }
    if !running.wait()?.success() {
        tally.require_failure(failed_before);
    }
    Ok(())
}
