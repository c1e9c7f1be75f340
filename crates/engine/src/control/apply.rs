//! One command after another: what each replica of the control group does.

use super::command::Change;
use super::rejected::Stop;
use super::table::changes::{Changes, ChangesKey};
use super::{At, Command, Outcome, Reply};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};

/// Applies the command that stands at `at`. A refused one writes nothing.
///
/// # Errors
/// [`Fault`] when the state can't be read; it stops the replica.
pub fn apply(overlay: &mut Overlay<'_>, command: &Command, at: At) -> Result<Outcome, Fault> {
    let applied = match command {
        Command::Found(command) => command.apply(overlay),
        Command::Join(command) => command.apply(overlay),
        Command::UpdateNode(command) => command.apply(overlay),
        Command::SetNodeState(command) => command.apply(overlay),
        Command::Place(command) => command.apply(overlay),
        Command::Founded(command) => command.apply(overlay),
        Command::AddShards(command) => command.apply(overlay),
        Command::CreateTopic(command) => command.apply(overlay, at),
        Command::UpdateTopic(command) => command.apply(overlay, at),
        Command::DeleteTopic(command) => command.apply(overlay, at),
        Command::CreateSubscription(command) => command.apply(overlay, at),
        Command::UpdateSubscription(command) => command.apply(overlay, at),
        Command::DeleteSubscription(command) => command.apply(overlay),
        Command::DetachSubscription(command) => command.apply(overlay, at),
        Command::Awake(command) => command.apply(overlay),
        Command::Asleep(command) => command.apply(overlay),
        Command::RaiseFormat(command) => command.apply(overlay),
    };
    match applied {
        Ok(outcome) => {
            note(overlay, command.change(), at)?;
            Ok(outcome)
        }
        Err(Stop::Rejected(rejected)) => Ok(Outcome::only(Reply::Rejected(rejected))),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

/// Notes when topics and subscriptions changed last.
fn note(overlay: &mut Overlay<'_>, change: Change, at: At) -> Result<(), Fault> {
    if change == Change::None {
        return Ok(());
    }
    let mut changes: Changes = overlay.row(&ChangesKey)?.unwrap_or_default();
    changes.last = at.index;
    if change == Change::Deleted {
        changes.last_deletion = at.index;
    }
    overlay.put(&ChangesKey, &changes);
    Ok(())
}
