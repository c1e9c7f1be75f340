//! Sealed strands are open again, at an epoch that their registry group has given since.

use serde::{Deserialize, Serialize};

use super::{At, Effect, Opening, Outcome, Reply, open, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::sealed::Sealed;
use crate::table::strand::{Strand, StrandKey};

/// Opens sealed strands without a publish. One that was sealed before the shard got the key anew
/// stays sealed: it is only to be dropped.
///
/// What became of each is in the rows: the leader looks there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopen {
    /// The strands, and the pins as the group has just told them.
    pub strands: Vec<(StrandKey, Opening)>,
}

impl Reopen {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Fault> {
        let mut effects = Vec::new();
        for (key, opening) in &self.strands {
            let strand = read::strand(overlay, key.topic, key.strand)?;
            let Some(strand) = strand.filter(|strand| open::reopens(strand, opening)) else {
                continue;
            };
            open::go_on_above(overlay, opening.id_floor, at)?;
            let (epoch, sealed) = (opening.epoch, false);
            overlay.put(
                key,
                &Strand {
                    epoch,
                    sealed,
                    ..strand
                },
            );
            overlay.delete::<Sealed>(key);
            effects.push(Effect::Opened { key: *key });
        }
        let reply = Reply::Done;
        Ok(Outcome { reply, effects })
    }
}
