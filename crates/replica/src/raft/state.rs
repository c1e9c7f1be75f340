//! Applying: the entries of one batch change the state in one write, and then are answered.

use std::io;
use std::sync::{Arc, Mutex};

use engine::Fault;
use engine::command::{Command, Outcome, Proposal};
use engine::kv::{Overlay, Writes};
use engine::{control, registry, shard};
use futures::{Stream, StreamExt};
use model::GroupId;
use openraft::EntryPayload;
use openraft::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::storage::{EntryResponder, RaftStateMachine};
use store::{Applied, Position, StateView, Store};
use tokio::sync::watch;

use super::checkpoint::{Builder, Checkpoint, Mark};
use super::effects::Effects;
use super::entry::{at, membership_from_store, membership_to_store, position};
use super::{LogId, Membership, Proposed, Types};
use crate::aside::aside;

/// Entries whose changes are written at once. It bounds the memory of a replay; in daily work
/// fewer are in flight.
const APPLIED_AT_ONCE_MAX: usize = 256;

/// The state machine of one group on this node.
pub(super) struct State {
    group: GroupId,
    store: Store,
    view: StateView,
    /// The present state.
    mark: Mark,
    /// A state that is going to be flushed, and then will be a checkpoint.
    unflushed: Option<Mark>,
    /// Whether there was a checkpoint, so that the log may have been cut.
    checkpointed: bool,
    /// Tells how far the state has come, once it can be read.
    progress: watch::Sender<Option<Position>>,
    /// Where the effects of the control group's commands go.
    effects: Effects,
    /// Held for each change, so that a reader can hold them up.
    changes: Arc<Mutex<()>>,
}

/// Why the lock on changes is never poisoned.
pub(super) const UNPOISONED: &str = "a panic in a group's state machine or leader ends its node";

impl State {
    /// The state as it stands on disk, and where to watch how far it has come.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn open(
        store: Store,
        group: GroupId,
        changes: Arc<Mutex<()>>,
        effects: Effects,
    ) -> io::Result<(Self, watch::Receiver<Option<Position>>)> {
        let applied = store.applied(group).map_err(io::Error::other)?;
        let mark = match &applied {
            None => Mark::default(),
            Some(applied) => Mark {
                at: Some(at(applied.at)),
                membership: membership_from_store(&applied.note)?,
            },
        };
        let (progress, watched) = watch::channel(applied.map(|applied| applied.at));
        let state = State {
            view: store.view(group).map_err(io::Error::other)?,
            group,
            store,
            mark,
            unflushed: None,
            checkpointed: false,
            progress,
            effects,
            changes,
        };
        Ok((state, watched))
    }

    fn apply_batch(&mut self, batch: Vec<io::Result<EntryResponder<Types>>>) -> io::Result<()> {
        let mut overlay = Overlay::new(&self.view);
        let mut answers = Vec::with_capacity(batch.len());
        for entry in batch {
            let (entry, answer) = entry?;
            let outcomes = match entry.payload {
                EntryPayload::Blank => Vec::new(),
                EntryPayload::Normal(Proposed(proposal)) => {
                    let outcomes = apply(&mut overlay, self.group, &entry.log_id, &proposal)
                        .map_err(io::Error::other)?;
                    self.effects.add(entry.log_id.index, effects(&outcomes));
                    outcomes
                }
                EntryPayload::Membership(members) => {
                    self.mark.membership = Membership::new(Some(entry.log_id), members);
                    Vec::new()
                }
            };
            self.mark.at = Some(entry.log_id);
            answers.push((answer, outcomes));
        }
        let writes = overlay.into_writes();
        let applied = Applied {
            at: position(&self.mark.at.expect("a batch has an entry")),
            note: membership_to_store(&self.mark.membership),
        };
        self.progress_to(applied, writes)?;
        for (answer, outcomes) in answers {
            if let Some(answer) = answer {
                answer.send(outcomes);
            }
        }
        Ok(())
    }

    fn progress_to(&self, applied: Applied, writes: Writes) -> io::Result<()> {
        let at = applied.at;
        let written = {
            let _change = self.changes.lock().expect(UNPOISONED);
            self.store.write_state(self.group, applied, writes)
        };
        written.map_err(io::Error::other)?;
        self.progress.send_replace(Some(at));
        Ok(())
    }
}

/// Applies the commands of one entry.
fn apply(
    overlay: &mut Overlay<'_>,
    group: GroupId,
    at: &LogId,
    proposal: &Proposal,
) -> Result<Vec<Outcome>, Fault> {
    let mut payload_number = 0;
    let mut outcomes = Vec::with_capacity(proposal.commands.len());
    for (position, command) in (0..).zip(&proposal.commands) {
        outcomes.push(match (group, command) {
            (GroupId::Control, Command::Control(command)) => {
                let index = at.index;
                let at = control::At { index, position };
                Outcome::Control(control::apply(overlay, command, at)?)
            }
            (GroupId::Shard(shard), Command::Shard(command)) => {
                let at = shard::At {
                    shard,
                    term: at.leader_id.term,
                    index: at.index,
                    payload_number,
                    time: proposal.at,
                };
                payload_number += command.payload_count();
                Outcome::Shard(shard::apply(overlay, command, at)?)
            }
            (GroupId::Registry(_), Command::Registry(command)) => {
                Outcome::Registry(registry::apply(overlay, command)?)
            }
            // Each kind of group has proposers of its own, so this is damage.
            _ => {
                return Err(Fault::Missing(format!(
                    "meaning of a command in group {group}"
                )));
            }
        });
    }
    Ok(outcomes)
}

/// What the outcomes of one entry mean for the shards, in order.
fn effects(outcomes: &[Outcome]) -> Vec<shard::Command> {
    let of_control = |outcome: &Outcome| match outcome {
        Outcome::Control(outcome) => outcome.effects.clone(),
        _ => Vec::new(),
    };
    outcomes.iter().flat_map(of_control).collect()
}

impl RaftStateMachine<Types> for State {
    type SnapshotData = Checkpoint;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, Membership)> {
        let mark = self.mark.clone();
        Ok((mark.at, mark.membership))
    }

    async fn apply<S>(&mut self, entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + Send,
    {
        let mut batches = entries.ready_chunks(APPLIED_AT_ONCE_MAX);
        while let Some(batch) = batches.next().await {
            self.apply_batch(batch)?;
        }
        Ok(())
    }

    /// Without `force`, a checkpoint comes in two steps: the present mark is taken down, and
    /// offered the next time, if the store has flushed it meanwhile.
    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        if force {
            return Some(self.get_snapshot_builder().await);
        }
        // A state that can't be read now is a reason not to cut the log; apply will meet it.
        let flushed = self.store.flushed_applied(self.group).ok()?;
        let present = self.mark.clone();
        let due = self.unflushed.get_or_insert_with(|| present.clone());
        if !due.is_flushed(flushed) {
            return None;
        }
        let mark = std::mem::replace(due, present);
        self.checkpointed = true;
        Some(Builder { mark, flush: None })
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.checkpointed = true;
        Builder {
            mark: self.mark.clone(),
            flush: Some(self.store.clone()),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<Types>,
        checkpoint: Checkpoint,
    ) -> io::Result<()> {
        let Checkpoint::Arrived(sealed) = checkpoint else {
            // To take the mark without the rows would be to lose every message before it.
            return Err(io::Error::other(
                "a checkpoint without rows was to be installed",
            ));
        };
        let changes = self.changes.clone();
        let switched = aside(&self.store, move || {
            let _change = changes.lock().expect(UNPOISONED);
            sealed.switch()
        });
        switched.await?.map_err(io::Error::other)?;
        self.mark = Mark {
            at: meta.last_log_id,
            membership: meta.last_membership.clone(),
        };
        self.unflushed = None;
        self.checkpointed = true;
        self.effects.add_everything();
        self.progress
            .send_replace(self.mark.at.as_ref().map(position));
        Ok(())
    }

    /// The present state, which is newer than any checkpoint that let the log be cut: the less is
    /// left to be sent from the log.
    async fn get_current_snapshot(&mut self) -> io::Result<Option<SnapshotOf<Types, Checkpoint>>> {
        let present = self.checkpointed.then(|| self.mark.clone());
        Ok(present.map(Mark::checkpoint))
    }
}
