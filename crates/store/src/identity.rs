//! Whose data a disk holds, and in which format.
//!
//! It is written down twice at the first start: in a row of `meta`, and in the file `ORDERLY` of
//! the data folder. So a database that was emptied, or swapped for another, is noticed.

use model::{NodeId, NodeName, RegionName};
use thiserror::Error;

/// The format of a whole disk: which columns there are, and what their keys mean. Rows have a
/// format of their own.
pub(crate) const FORMAT: u32 = 1;

/// Whose data a disk holds. Written once, at the first start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, as `init` named it: every call between nodes carries it. One line of text.
    pub cluster: String,
    /// The node. Never reused: an emptied folder comes back as a new node.
    pub node: NodeId,
    /// What its operator calls it; `None` for a node that is a cluster by itself, and for one whose
    /// folder is from the time before this was written down.
    pub called: Option<Called>,
}

/// What the operator of a node calls it. Neither changes as long as the node lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Its name.
    pub name: NodeName,
    /// Its region.
    pub region: RegionName,
}

/// A text is not an identity of this program's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadIdentity {
    /// Written by a later program.
    #[error("format {0} is newer than {FORMAT}")]
    Newer(u32),
    /// Not what was written.
    #[error("does not read as an identity")]
    Malformed,
}

impl Identity {
    /// The text of file and row: a few lines, the last a checksum over those before. A program that
    /// does not know the lines after the third passes them over.
    pub(crate) fn to_text(&self) -> String {
        let Identity {
            cluster,
            node,
            called,
        } = self;
        let called = match called {
            Some(Called { name, region }) => format!("name {name}\nregion {region}\n"),
            None => String::new(),
        };
        let text = format!("orderly format {FORMAT}\ncluster {cluster}\nnode {node}\n{called}");
        let sum = crc32c::crc32c(text.as_bytes());
        format!("{text}crc32c {sum:08x}\n")
    }

    /// Reads what [`Identity::to_text`] wrote.
    pub(crate) fn from_text(text: &str) -> Result<Self, BadIdentity> {
        let (written, sum) = text.rsplit_once("crc32c ").ok_or(BadIdentity::Malformed)?;
        let found = crc32c::crc32c(written.as_bytes());
        if sum != format!("{found:08x}\n") {
            return Err(BadIdentity::Malformed);
        }
        let format = field(written, 0, "orderly format ")
            .and_then(|format| format.parse().ok())
            .ok_or(BadIdentity::Malformed)?;
        if format > FORMAT {
            return Err(BadIdentity::Newer(format));
        }
        let cluster = field(written, 1, "cluster ");
        let node = field(written, 2, "node ").and_then(|node| node.parse().ok());
        match (cluster, node) {
            (Some(cluster), Some(node)) => Ok(Identity {
                cluster: cluster.to_owned(),
                node: NodeId(node),
                called: Called::from_text(written)?,
            }),
            _ => Err(BadIdentity::Malformed),
        }
    }
}

impl Called {
    fn from_text(written: &str) -> Result<Option<Self>, BadIdentity> {
        let (name, region) = (field(written, 3, "name "), field(written, 4, "region "));
        let (Some(name), Some(region)) = (name, region) else {
            return Ok(None);
        };
        let name = NodeName::parse(name).map_err(|_| BadIdentity::Malformed)?;
        let region = RegionName::parse(region).map_err(|_| BadIdentity::Malformed)?;
        Ok(Some(Called { name, region }))
    }
}

/// What stands behind `name` in a line of a text.
fn field<'t>(text: &'t str, line: usize, name: &str) -> Option<&'t str> {
    text.lines().nth(line)?.strip_prefix(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cluster: "3f2a".into(),
            node: NodeId(7),
            called: Some(Called {
                name: NodeName::parse("north-1").unwrap(),
                region: RegionName::parse("north").unwrap(),
            }),
        }
    }

    #[test]
    fn an_identity_reads_back() {
        assert_eq!(Identity::from_text(&identity().to_text()), Ok(identity()));
        let alone = Identity {
            called: None,
            ..identity()
        };
        assert_eq!(Identity::from_text(&alone.to_text()), Ok(alone));
    }

    #[test]
    fn a_folder_from_before_names_were_written_down_is_read() {
        let text = "orderly format 1\ncluster 3f2a\nnode 7\n";
        let text = format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()));
        let read = Identity::from_text(&text).unwrap();
        assert_eq!((read.node, read.called), (NodeId(7), None));
    }

    #[test]
    fn a_changed_text_is_malformed() {
        let changed = identity().to_text().replace("node 7", "node 8");
        assert_eq!(Identity::from_text(&changed), Err(BadIdentity::Malformed));
        assert_eq!(Identity::from_text(""), Err(BadIdentity::Malformed));
    }

    #[test]
    fn a_later_format_is_named_whatever_else_it_says() {
        let text = "orderly format 9\nregion north\n";
        let text = format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()));
        assert_eq!(Identity::from_text(&text), Err(BadIdentity::Newer(9)));
    }
}
