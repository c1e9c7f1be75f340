//! The cluster's format level rises.

use model::FormatLevel;
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::format::{Format, FormatKey};
use super::{Outcome, Reply, read};
use crate::Fault;
use crate::kv::Overlay;

/// Raises the format level by one. From this entry on, nodes may write what only programs of that
/// level read; it is proposed when each node has said that it runs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaiseFormat {
    /// The level, one above the present one.
    pub to: FormatLevel,
}

impl RaiseFormat {
    pub(super) fn apply(self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let present = read::format_level(overlay)?;
        let to = self.to;
        if to != present.next() {
            return Err(NodeRejected::FormatLevel { present, to }.into());
        }
        if to > FormatLevel::KNOWN {
            // A node that went back to an older program: it must not guess at what comes next.
            return Err(Fault::UnknownFormat(to).into());
        }
        overlay.put(&FormatKey, &Format { level: to });
        Ok(Outcome::only(Reply::Done))
    }
}
