//! Who wants a command in the control group's log, and is to hear of its fate.

use engine::control::{Asleep, Awake, Command};
use model::{Boot, NodeId, Timestamp};

use super::grants::Grants;
use super::request::AnswerTo;
use crate::Unavailable;

/// Who wants a command in the log.
pub(super) enum Asker {
    /// A caller, who brought the command, and is answered when every node has it.
    Caller(AnswerTo),
    /// This life of a node, which may be granted a lease from then on.
    Waker(NodeId, Boot),
    /// This life of a node, which has no lease any more: it may have said so itself.
    Sleeper(NodeId, Boot, Option<AnswerTo>),
}

impl Asker {
    /// What the log must say of the node that this is about.
    pub(super) fn command(&self) -> Option<Command> {
        match *self {
            Asker::Caller(_) => None,
            Asker::Waker(node, boot) => Some(Command::Awake(Awake { node, boot })),
            Asker::Sleeper(node, boot, _) => Some(Command::Asleep(Asleep { node, boot })),
        }
    }

    /// The command was not seen to be applied.
    pub(super) fn not_done(self, grants: &mut Grants, unknown: bool, now: Timestamp) {
        match self {
            Asker::Caller(answer) => {
                let _ = answer.send(Err(Unavailable { unknown }));
            }
            Asker::Waker(node, boot) => grants.woken(node, boot, false, now),
            Asker::Sleeper(node, boot, answer) => {
                // What the log may still say must not be contradicted by a lease.
                if !unknown {
                    grants.not_slept(node, boot, now);
                }
                if let Some(answer) = answer {
                    let _ = answer.send(Err(Unavailable { unknown }));
                }
            }
        }
    }
}
