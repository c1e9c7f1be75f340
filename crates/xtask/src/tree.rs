//! The text files of the checkout, as the rules of tidy see them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The root of the checkout that `cargo xtask` was called in.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    // Asked at run time: several checkouts may share one target folder, and so one binary.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").context("run it as `cargo xtask`")?;
    let root = Path::new(&package)
        .ancestors()
        .nth(2)
        .context("xtask is not in crates/xtask")?;
    Ok(root.to_owned())
}

/// Text by path, both relative to the root with `/` between folders, in the order of their names.
#[derive(Debug)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads every text file that git tracks or would track; ignored and binary files are left out.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("git does not start; tidy asks it which files are the project's")?;
        if !output.status.success() {
            bail!(
                "git ls-files: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let files = String::from_utf8(output.stdout)?
            .split_terminator('\0')
            .filter_map(|path| {
                let text = std::fs::read_to_string(root.join(path)).ok()?;
                Some((path.to_owned(), text))
            })
            .collect();
        Ok(Self { files })
    }

    /// A tree of the given files, for tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        Self { files }
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file, with its text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files below a folder (named with its trailing `/`): path within the folder, and text.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files()
            .filter_map(move |(path, text)| Some((path.strip_prefix(folder)?, text)))
    }
}

/// The first line (counted from 1) on which `needle` stands, or the first line of all.
pub(crate) fn line_of(text: &str, needle: &str) -> usize {
    text.lines()
        .position(|line| line.contains(needle))
        .map_or(1, |index| index + 1)
}
