//! What installs leave behind: rows of generations that are not valid, and payloads that only the
//! old state referred to.

use std::iter::Peekable;

use engine::Fault;
use engine::table::run::PayloadAt;
use model::GroupId;

use crate::backend::batch::{Batch, Durability};
use crate::core::Core;
use crate::entry::Position;
use crate::fault::WriteFault;
use crate::group::{Group, malformed};
use crate::key::{self, Column, STATE_PREFIX};

/// Payloads that one batch removes: it must not hold up the writer.
const REMOVED_AT_ONCE_MAX: usize = 1_000;

impl Core {
    /// Removes what a crash has left of an install: of one that was not switched to its rows, of
    /// one that was what it had not removed yet.
    pub(crate) fn discard_leftovers(&self, group: &Group) -> Result<(), Fault> {
        let generation = group.generation();
        let (from, to) = (
            key::generation(group.id, generation + 1),
            key::group_end(group.id),
        );
        self.remove_rows(from, to).map_err(unreadable)?;
        self.clean_up(group)
    }

    /// Removes the rows of a generation that is not valid and will not be.
    pub(super) fn discard_generation(
        &self,
        id: GroupId,
        generation: u32,
    ) -> Result<(), WriteFault> {
        let (from, to) = (
            key::generation(id, generation),
            key::generation(id, generation + 1),
        );
        self.remove_rows(from, to)
    }

    /// Removes the rows of generations before the valid one and, if that was installed, the
    /// payloads at or below its index that it does not refer to.
    pub(super) fn clean_up(&self, group: &Group) -> Result<(), Fault> {
        let generation = group.generation();
        let (first, valid) = (
            key::generation(group.id, 0),
            key::generation(group.id, generation),
        );
        self.remove_rows(first, valid).map_err(unreadable)?;
        let mark = key::install(group.id, generation);
        let Some(body) = self.rows.get(Column::State, &mark)? else {
            return Ok(());
        };
        let at = <[u8; Position::BYTES]>::try_from(&body[..]);
        let at = at.map_err(|_| malformed(Column::State, &mark))?;
        self.remove_unreferred(group.id, generation, Position::from_bytes(at))?;
        let end = key::generation(group.id, generation + 1);
        self.remove_rows(mark, end).map_err(unreadable)
    }

    /// Removes the payloads up to an entry that the install did not bring. Both are in the same
    /// order, so one walk over both finds them. Keys begin with the term, and an entry of a lower
    /// term with a higher index was never committed; so all in the range can go.
    fn remove_unreferred(&self, id: GroupId, generation: u32, at: Position) -> Result<(), Fault> {
        let mut brought = self.brought(id, generation).peekable();
        let from = key::message(
            id,
            PayloadAt {
                term: 0,
                index: 0,
                number: 0,
            },
        );
        let to = key::message(
            id,
            PayloadAt {
                term: at.term,
                index: at.index + 1,
                number: 0,
            },
        );
        let mut batch = Batch::default();
        for found in self.backend.scan(Column::Message, &from, &to) {
            let (key, _) = found.map_err(|error| Fault::Unreadable(error.to_string()))?;
            let payload = key::message_payload(&key);
            let payload = payload.ok_or_else(|| malformed(Column::Message, &key))?;
            if skip_to(&mut brought, payload)? {
                continue;
            }
            self.payloads.remove(id, payload);
            batch.delete(Column::Message, key);
            if batch.changes.len() >= REMOVED_AT_ONCE_MAX {
                self.remove_messages(std::mem::take(&mut batch))?;
            }
        }
        self.remove_messages(batch)
    }

    /// The payloads that an install brought, in the order of their keys.
    fn brought(
        &self,
        id: GroupId,
        generation: u32,
    ) -> impl Iterator<Item = Result<PayloadAt, Fault>> {
        let mut from = key::install(id, generation);
        from.push(0);
        let end = key::generation(id, generation + 1);
        self.rows.scan(Column::State, &from, &end).map(|found| {
            let (key, _) = found?;
            let payload = key::read_payload_at(&key[STATE_PREFIX..]);
            payload.ok_or_else(|| malformed(Column::State, &key))
        })
    }

    fn remove_messages(&self, batch: Batch) -> Result<(), Fault> {
        let written = self.backend.write(batch, Durability::Logged);
        written.map_err(|error| unreadable(self.health.fail(&error)))
    }

    /// Removes the rows of `[from, to)` of the state, if there are any: each removal of a range is
    /// a tombstone that reads have to pass.
    fn remove_rows(&self, from: Vec<u8>, to: Vec<u8>) -> Result<(), WriteFault> {
        self.health.check()?;
        if self
            .backend
            .scan(Column::State, &from, &to)
            .next()
            .is_none()
        {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.delete_range(Column::State, from, to);
        let written = self.backend.write(batch, Durability::Unlogged);
        written.map_err(|error| self.health.fail(&error))
    }
}

/// Passes by the payloads before one. Answers whether that one is there.
fn skip_to(
    payloads: &mut Peekable<impl Iterator<Item = Result<PayloadAt, Fault>>>,
    wanted: PayloadAt,
) -> Result<bool, Fault> {
    while let Some(next) = payloads.next_if(|next| next.as_ref().is_ok_and(|next| *next < wanted)) {
        next?;
    }
    match payloads.peek() {
        Some(Ok(next)) => Ok(*next == wanted),
        Some(Err(fault)) => Err(fault.clone()),
        None => Ok(false),
    }
}

fn unreadable(fault: WriteFault) -> Fault {
    Fault::Unreadable(fault.to_string())
}
