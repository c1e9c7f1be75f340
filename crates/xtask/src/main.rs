//! The chores of the project, each one word: `cargo xtask verify`, `lint`, `test`, `tidy`, `fix`.
//!
//! They run the same on a developer's machine and in CI. Only `fix` writes into the checkout.

mod child;
mod finding;
mod fix;
mod lint;
mod suites;
mod tally;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::bail;

/// The chores by name, with what they do, in the order in which the usage text lists them.
pub(crate) const CHORES: [(&str, &str); 5] = [
    (
        "verify",
        "lint, then test; writes nothing into the checkout",
    ),
    (
        "lint",
        "formatting, clippy with warnings as errors, docs, tidy",
    ),
    (
        "test",
        "the tests of every crate, then the suites of the official clients",
    ),
    ("tidy", "the project's own rules only (seconds)"),
    (
        "fix",
        "formats, applies clippy's suggestions, lowers the ratchet",
    ),
];

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    match run(&chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {chore}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: &str) -> anyhow::Result<()> {
    let root = tree::root()?;
    match chore {
        "verify" => {
            lint::run(&root)?;
            suites::run(&root)
        }
        "lint" => lint::run(&root),
        "test" => suites::run(&root),
        "tidy" => tidy::run(&root),
        "fix" => fix::run(&root),
        other => bail!("there is no chore {other:?}; the chores are:\n{}", usage()),
    }
}

fn usage() -> String {
    CHORES
        .map(|(name, what)| format!("  {name:8}{what}"))
        .join("\n")
}
