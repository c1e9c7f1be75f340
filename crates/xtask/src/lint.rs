//! `lint`: what can be judged without running the product.

use std::path::Path;

use crate::{child, tidy};

/// The suite of the Rust client: a workspace of its own, so that its many dependencies stay out of ours.
const CLIENT_SUITE: &str = "--manifest-path=crates/compat/rust/Cargo.toml";

/// Checks formatting, the project's own rules, clippy and the docs, cheapest first.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let cargo = |arguments: &[&str]| child::cargo(root, arguments);
    let formatting = cargo(&["fmt", "--all", "--check"])?;
    child::run("formatting (seconds)", formatting)?;
    let formatting = cargo(&["fmt", CLIENT_SUITE, "--check"])?;
    child::run("formatting of the client suite (seconds)", formatting)?;
    tidy::run(root)?;
    let clippy = cargo(&[
        "clippy",
        "--workspace",
        child::WITH_NODES,
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    child::run("clippy (about 6 minutes cold, seconds warm)", clippy)?;
    let clippy = cargo(&["clippy", CLIENT_SUITE, "--locked", "--", "-D", "warnings"])?;
    child::run("clippy of the client suite (about 3 minutes cold)", clippy)?;
    let mut docs = cargo(&[
        "doc",
        "--workspace",
        child::WITH_NODES,
        "--no-deps",
        "--quiet",
    ])?;
    docs.env("RUSTDOCFLAGS", "-D warnings");
    child::run("docs (a minute)", docs)
}
