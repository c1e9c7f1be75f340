//! `tidy`: rules of this project that no compiler knows, one file each.

mod changelog;
mod decisions;
mod direction;
mod links;
mod map;
mod ratchet;
mod readme;
mod sabotages;
mod words;

use std::path::Path;

use anyhow::bail;

use crate::finding::Finding;
use crate::tree::Tree;

/// A rule: reads the tree, returns what is broken.
type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [Rule; 9] = [
    direction::check,
    map::check,
    ratchet::check,
    decisions::check,
    words::check,
    changelog::check,
    readme::check,
    links::check,
    sabotages::check,
];

/// Checks every rule, prints every finding, and fails if there is one.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    eprintln!("xtask: tidy (seconds)");
    let tree = Tree::read(root)?;
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    Ok(())
}

/// Lowers the ratchet's numbers to what is there; it never raises one.
pub(crate) fn lower_ratchet(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    if let Some(text) = ratchet::lowered(&tree) {
        std::fs::write(root.join(ratchet::PATH), text)?;
    }
    Ok(())
}
