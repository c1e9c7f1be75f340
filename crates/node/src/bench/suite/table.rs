//! The table, in Markdown.

use std::fmt::Write;
use std::fs;
use std::thread;

use super::row::{Line, Row};

/// Everything that was measured, and on what.
pub(crate) fn markdown(lines: &[(&Row, Line)], quick: bool) -> String {
    let mut out = String::from("# How fast Orderly is\n\n");
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // Writing into a string does not fail.
    let _ = writeln!(
        out,
        "Made by `make bench` on one machine that also ran the load generator: {processors} \
         processors ({}), {}. Every answered publish and ack was fsynced; Google's emulator keeps \
         all in memory. Messages have 1,000 bytes that do not compress, unless a command says \
         otherwise; the order of every key was checked.\n",
        processor().unwrap_or_else(|| "of unknown make".into()),
        memory().unwrap_or_else(|| "unknown memory".into()),
    );
    if quick {
        out.push_str("**A quick run: it shows that the rows run, not how fast a node is.**\n\n");
    }
    out.push_str(
        "| Work | Orderly | Target | Google's emulator | Command |\n|---|---|---|---|---|\n",
    );
    for (row, line) in lines {
        let emulator = line.emulator.as_deref().unwrap_or("");
        let Line {
            work,
            orderly,
            command,
            ..
        } = line;
        let target = row.target;
        let _ = writeln!(
            out,
            "| {work} | {orderly} | {target} | {emulator} | `{command}` |"
        );
    }
    out
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory() -> Option<String> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    Some(format!("{} GB of memory", kibibytes / 1_000_000))
}
