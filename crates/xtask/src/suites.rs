//! `test`: every test there is, and one line at the end that adds them up.

use std::io::{BufRead, BufReader};
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
    let tests = child::cargo(root, &["test", "--workspace", "--no-fail-fast"])?;
    count(
        "tests of every crate (about 10 minutes cold)",
        tests,
        &mut tally,
        Tally::read_cargo_line,
    )?;
    if root.join(CLIENT_SUITES).exists() {
        let suites = child::at_root(root, root.join(CLIENT_SUITES))?;
        count(
            "official clients (minutes)",
            suites,
            &mut tally,
            Tally::read_suite_line,
        )?;
    } else {
        tally.skip(&format!("official clients: {CLIENT_SUITES} is not there"));
    }
    eprintln!("{tally}");
    if tally.failed() > 0 {
        bail!(
            "{} failed: search the output above for `FAILED` or `failed`",
            tally.failed()
        );
    }
    Ok(())
}

/// Runs one runner, passes its output through, and counts its results.
fn count(
    what: &str,
    mut command: Command,
    tally: &mut Tally,
    read_line: fn(&mut Tally, &str),
) -> anyhow::Result<()> {
    eprintln!("xtask: {what}");
    let failed_before = tally.failed();
    let mut running = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?} does not start"))?;
    let output = running.stdout.take().context("the output is not piped")?;
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
