//! The list of sabotages: which promise each breaks, and which test must notice.

use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

/// The file of the list, relative to the root of the checkout.
pub(crate) const PATH: &str = "crates/xtask/sabotages.toml";

/// The list as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The packages whose tests are built.
    pub(crate) packages: Vec<String>,
    /// The sabotages.
    #[serde(rename = "sabotage")]
    pub(crate) sabotages: Vec<Sabotage>,
}

/// One fault that can be switched on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sabotage {
    /// The word in the code.
    pub(crate) name: String,
    /// The promise that does not hold while it is on.
    pub(crate) breaks: String,
    /// The test binary: `engine` for the unit tests of that library, `tests/script` for those of the
    /// file or folder of that name.
    pub(crate) binary: String,
    /// The whole path of the test in it, which must fail.
    pub(crate) test: String,
}

impl List {
    /// Reads the list of the checkout.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join(PATH)).context(PATH)?;
        Self::parse(&text).context(PATH)
    }

    /// Reads the text of a list.
    pub(crate) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Keeps what the arguments ask for: everything, or `--only NAME`.
    pub(super) fn choose(&mut self, arguments: &[String]) -> anyhow::Result<()> {
        let only = match arguments {
            [] => return Ok(()),
            [flag, name] if flag == "--only" => name,
            _ => bail!("usage: cargo xtask sabotage [--only NAME]"),
        };
        self.sabotages.retain(|sabotage| sabotage.name == *only);
        if self.sabotages.is_empty() {
            bail!("{PATH} has no sabotage {only:?}");
        }
        Ok(())
    }
}
