//! The chores of the project, each one word: `cargo xtask verify`.
//!
//! They run the same on a developer's machine and in CI. Only `fix` writes into the checkout.

mod child;
mod finding;
mod fix;
mod lint;
mod sabotage;
mod sim;
mod suites;
mod tally;
mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

/// Something that `cargo xtask` does.
pub(crate) struct Chore {
    /// The word that a developer types.
    pub(crate) name: &'static str,
    what: &'static str,
    run: fn(&Path) -> anyhow::Result<()>,
}

/// Every chore, in the order in which the usage text lists them.
pub(crate) const CHORES: [Chore; 7] = [
    Chore {
        name: "verify",
        what: "lint, then test; writes nothing into the checkout",
        run: verify,
    },
    Chore {
        name: "lint",
        what: "formatting, tidy, clippy with warnings as errors, docs",
        run: lint::run,
    },
    Chore {
        name: "test",
        what: "the tests of every crate, then the suites of the official clients",
        run: suites::run,
    },
    Chore {
        name: "tidy",
        what: "the project's own rules only (seconds)",
        run: tidy::run,
    },
    Chore {
        name: "sabotage",
        what: "shows that the tests notice faults put in on purpose; `--only NAME` for one",
        run: sabotage,
    },
    Chore {
        name: "sim",
        what: "runs simulated clusters of whole nodes; `--seed N` runs one again",
        run: simulate,
    },
    Chore {
        name: "fix",
        what: "applies clippy's suggestions, formats, lowers the ratchet",
        run: fix::run,
    },
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match run(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) -> anyhow::Result<()> {
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        bail!("there is no chore {name:?}; the chores are:\n{}", usage());
    };
    (chore.run)(&tree::root()?)
}

fn verify(root: &Path) -> anyhow::Result<()> {
    lint::run(root)?;
    suites::run(root)
}

fn sabotage(root: &Path) -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    sabotage::run(root, &arguments)
}

fn simulate(root: &Path) -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    sim::run(root, &arguments)
}

fn usage() -> String {
    let lines = CHORES.map(|chore| format!("  {:10}{}", chore.name, chore.what));
    lines.join("\n")
}
