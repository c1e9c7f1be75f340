//! One command, on every replica of a registry group.

use model::{Epoch, MessageId};

use super::table::counters::{Counters, CountersKey};
use super::{Command, Pin, Reply, read};
use crate::Fault;
use crate::kv::Overlay;

/// Carries out a command.
///
/// # Errors
/// [`Fault`] when the state can't be read: the replica must stop.
pub fn apply(overlay: &mut Overlay<'_>, command: &Command) -> Result<Reply, Fault> {
    let mut counters = read::counters(overlay)?;
    let pins = match command {
        Command::Claim(claim) => claim.apply(overlay, &mut counters)?,
        Command::Release(release) => release.apply(overlay, &mut counters)?,
        Command::Move(moves) => moves.apply(overlay, &mut counters)?,
    };
    overlay.put(&CountersKey, &counters);
    Ok(Reply {
        pins,
        as_of: counters.epoch,
        id_floor: counters.id_floor,
    })
}

/// What each command answers: the pins of its keys.
pub(super) type Pins = Result<Vec<Option<Pin>>, Fault>;

impl Counters {
    /// An epoch that no pin of this group ever had.
    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }

    /// A key had messages up to this id, and may go on elsewhere.
    pub(super) fn raise_floor(&mut self, last: MessageId) {
        self.id_floor = self.id_floor.max(last);
    }
}
