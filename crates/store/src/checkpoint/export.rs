//! A checkpoint on its way out: read as it was at one moment, while writes go on.

use bytes::Bytes;
use engine::Fault;
use model::GroupId;

use super::Refers;
use super::chunk::Packer;
use super::record::Record;
use crate::backend::Reader;
use crate::core::Core;
use crate::entry::Position;
use crate::group::{garbage_key, read_applied, read_generation};
use crate::key::{self, Column, STATE_PREFIX};
use crate::log_read::missing_payload;
use crate::row::Rows;

impl Core {
    /// Packs a group's checkpoint into chunks. See [`crate::Store::export`].
    pub(crate) fn export(
        &self,
        id: GroupId,
        refers: Refers,
        send: &mut dyn FnMut(Bytes) -> bool,
    ) -> Result<Option<Position>, Fault> {
        let mut packer = Packer::new(id);
        self.walk_checkpoint(id, refers, &mut |record| {
            // What comes first stands alone: it says how far the checkpoint goes.
            let chunk = match record {
                Record::Mark { .. } | Record::End { .. } => {
                    packer.add(record).or_else(|| Some(packer.finish()))
                }
                Record::Row { .. } | Record::Payload { .. } => packer.add(record),
            };
            chunk.is_none_or(&mut *send)
        })
    }

    /// Shows `each` the records of a group's checkpoint as they are at this moment, until it says
    /// that it wants no more. Answers how far the checkpoint goes, or `None` when nothing was
    /// applied yet.
    pub(super) fn walk_checkpoint(
        &self,
        id: GroupId,
        refers: Refers,
        each: &mut dyn FnMut(&Record<'_>) -> bool,
    ) -> Result<Option<Position>, Fault> {
        let mut walked = Ok(None);
        let frozen = self.backend.freeze(&mut |reader| {
            walked = walk(&Rows::new(reader), id, refers, each);
        });
        frozen.map_err(|error| Fault::Unreadable(error.to_string()))?;
        walked
    }
}

fn walk(
    rows: &Rows<&dyn Reader>,
    id: GroupId,
    refers: Refers,
    each: &mut dyn FnMut(&Record<'_>) -> bool,
) -> Result<Option<Position>, Fault> {
    let generation = read_generation(rows, id)?;
    let Some(applied) = read_applied(rows, id, generation)? else {
        return Ok(None);
    };
    let at = applied.at;
    let note = &applied.note[..];
    if !each(&Record::Mark { at, note }) {
        return Ok(Some(at));
    }
    let mut records = 1;
    let (from, to) = (
        key::state(id, generation, &[]),
        key::install(id, generation),
    );
    for found in rows.scan(Column::State, &from, &to) {
        let (key, value) = found?;
        let key = &key[STATE_PREFIX..];
        // Each disk has its own payloads to remove: an install removes what it does not bring.
        if garbage_key(key).is_some() {
            continue;
        }
        let value = &value[..];
        let mut more = each(&Record::Row { key, value });
        records += 1;
        if let Some(at) = refers(key, value)? {
            let payload = rows.get(Column::Message, &key::message(id, at))?;
            let bytes = &payload.ok_or_else(|| missing_payload(id, at))?[..];
            more = more && each(&Record::Payload { at, bytes });
            records += 1;
        }
        if !more {
            return Ok(Some(at));
        }
    }
    each(&Record::End { records });
    Ok(Some(at))
}
