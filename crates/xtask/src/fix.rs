//! `fix`: what a machine can mend.

use std::path::Path;

use crate::{child, tidy};

/// Applies clippy's suggestions, formats, and lowers the ratchet to what is there.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let clippy = [
        "clippy",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
    ];
    child::run(
        "clippy's suggestions (minutes)",
        child::cargo(root, &clippy)?,
    )?;
    child::run(
        "formatting (seconds)",
        child::cargo(root, &["fmt", "--all"])?,
    )?;
    tidy::lower_ratchet(root)
}
