//! Whether two replicas hold the same: one number for all of a group's state.

use std::hash::Hasher;

use engine::Fault;
use model::GroupId;
use siphasher::sip::SipHasher24;

use super::Refers;
use crate::core::Core;
use crate::entry::Position;

/// A group's state and the payloads that it refers to, as one number. Replicas that have applied
/// the same entries have the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The last applied entry.
    pub at: Position,
    /// A hash over everything; its key is fixed, so that nodes can compare.
    pub sum: u64,
}

impl Core {
    pub(crate) fn digest(&self, id: GroupId, refers: Refers) -> Result<Option<Digest>, Fault> {
        let mut hasher = SipHasher24::new();
        let mut bytes = Vec::new();
        let at = self.walk_checkpoint(id, refers, &mut |record| {
            bytes.clear();
            record.write(&mut bytes);
            hasher.write(&bytes);
            true
        })?;
        let sum = hasher.finish();
        Ok(at.map(|at| Digest { at, sum }))
    }
}
