//! `lint`: what can be judged without running the product.

use std::path::Path;

use crate::{child, tidy};

/// Checks formatting, the project's own rules, clippy and the docs, cheapest first.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    child::run(
        "formatting (seconds)",
        child::cargo(root, &["fmt", "--all", "--check"])?,
    )?;
    tidy::run(root)?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    child::run(
        "clippy (about 6 minutes cold, seconds warm)",
        child::cargo(root, &clippy)?,
    )?;
    let mut docs = child::cargo(root, &["doc", "--workspace", "--no-deps", "--quiet"])?;
    docs.env("RUSTDOCFLAGS", "-D warnings");
    child::run("docs (a minute)", docs)
}
