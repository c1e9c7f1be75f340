//! Strands are sealed: nothing of them changes at their epoch any more.

use model::{Epoch, RegistryNumber, sabotage};
use serde::{Deserialize, Serialize};

use super::{At, Effect, Outcome, Reply, open, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::sealed::{Purpose, Sealed};
use crate::table::strand::{Strand, StrandKey};

/// Seals strands that are open at exactly the given epochs. One that has no row will never open at
/// that epoch.
///
/// What became of each is in the rows: the leader looks there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The group that has the pins.
    pub registry: RegistryNumber,
    /// The strands.
    pub strands: Vec<(StrandKey, Epoch)>,
    /// What for.
    pub purpose: Purpose,
}

impl Seal {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Fault> {
        let mut effects = Vec::new();
        for (key, epoch) in &self.strands {
            match read::strand(overlay, key.topic, key.strand)? {
                None => open::raise_floor(overlay, self.registry, *epoch)?,
                Some(strand) if self.may_seal(&strand, *epoch, at) => {
                    let purpose = self.purpose;
                    overlay.put(key, &Sealed { purpose });
                    let sealed = true;
                    overlay.put(key, &Strand { sealed, ..strand });
                    effects.push(Effect::Sealed { key: *key });
                }
                Some(_) => {}
            }
        }
        let reply = Reply::Done;
        Ok(Outcome { reply, effects })
    }

    /// A publish may have come since the leader found that nobody uses the key.
    fn may_seal(&self, strand: &Strand, epoch: Epoch, at: At) -> bool {
        let may_go = match self.purpose {
            Purpose::Release => strand.is_idle(at.time) || sabotage!("release-of-what-is-wanted"),
            Purpose::Move { .. } => true,
        };
        !strand.sealed && strand.epoch == epoch && may_go
    }
}
