//! What the store keeps in memory for one group.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use engine::Fault;
use engine::table::garbage::{Garbage, GarbageKey};
use engine::table::run::PayloadAt;
use engine::table::{Row, RowKey};
use model::GroupId;

use crate::backend::Reader;
use crate::entry::{Applied, Position};
use crate::group_log::Log;
use crate::key::{self, Column, Mark};
use crate::row::{Rows, place};

/// One group on this node.
///
/// Lock order: `log`, then the writer's queue; `progress` alone.
pub(crate) struct Group {
    pub(crate) id: GroupId,
    /// Which install of the state is the valid one. Its rows stay for as long as it says so.
    generation: AtomicU32,
    log: Mutex<Log>,
    progress: Mutex<Progress>,
}

/// How far the state has come.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) applied: Option<Applied>,
    /// What is applied after any crash.
    pub(crate) flushed: Option<Position>,
    /// Payloads that the state no longer refers to, once it is flushed, and whose entries are maybe
    /// still there.
    pub(crate) garbage: Vec<PayloadAt>,
}

impl Group {
    /// Reads what the disk says of a group.
    pub(crate) fn load(rows: &Rows, id: GroupId) -> Result<Self, Fault> {
        let generation = read_generation(rows, id)?;
        let log = Log::load(rows, id)?;
        let progress = Progress::load(rows, id, generation)?;
        let group = Group {
            id,
            generation: AtomicU32::new(generation),
            log: Mutex::new(log),
            progress: Mutex::new(progress),
        };
        group.check_log_reaches_state()?;
        Ok(group)
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Another install of the state is valid, as the disk says already.
    pub(crate) fn switch_to(&self, generation: u32, applied: Applied) {
        let mut progress = self.progress();
        *progress = Progress {
            flushed: Some(applied.at),
            applied: Some(applied),
            garbage: Vec::new(),
        };
        self.generation.store(generation, Ordering::Release);
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log
            .lock()
            .expect("a panic with the log in hand ends the node")
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress
            .lock()
            .expect("no holder of the progress panics")
    }

    /// State is flushed only after its entries are synced, so a log that ends before has lost some.
    fn check_log_reaches_state(&self) -> Result<(), Fault> {
        let last = self.log().bounds.last;
        let applied = self.progress().applied.as_ref().map(|applied| applied.at);
        match applied {
            _ if model::sabotage!("log-behind-its-state") => Ok(()),
            Some(applied) if last.is_none_or(|last| last.index < applied.index) => {
                Err(Fault::Missing(format!(
                    "log of {}: the state has applied {}, and the log ends at {}",
                    self.id,
                    applied.index,
                    last.map_or("nothing".into(), |last| last.index.to_string()),
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Progress {
    /// What is read here was flushed, or it would not be there.
    fn load(rows: &Rows, id: GroupId, generation: u32) -> Result<Self, Fault> {
        let applied = read_applied(rows, id, generation)?;
        let from = key::state(id, generation, &[Garbage::TABLE]);
        let end = key::state(id, generation, &[Garbage::TABLE + 1]);
        let garbage = rows.scan(Column::State, &from, &end).map(|found| {
            let (key, _) = found?;
            garbage_key(&key[key::STATE_PREFIX..]).ok_or(Fault::CorruptRow {
                table: Garbage::TABLE,
                key,
            })
        });
        Ok(Progress {
            flushed: applied.as_ref().map(|applied| applied.at),
            applied,
            garbage: garbage.collect::<Result<_, _>>()?,
        })
    }
}

/// The payload that a garbage row names; `None` for the key of another table.
pub(crate) fn garbage_key(row_key: &[u8]) -> Option<PayloadAt> {
    match row_key.split_first() {
        Some((&Garbage::TABLE, rest)) => GarbageKey::read(rest).map(|key| key.0),
        _ => None,
    }
}

/// The body of the row that says how far a state has come: position, then note.
pub(crate) fn applied_parts(applied: &Applied) -> ([u8; Position::BYTES], &[u8]) {
    (applied.at.to_bytes(), &applied.note)
}

/// How far the state of a generation has come, as its rows say.
pub(crate) fn read_applied<R>(
    rows: &Rows<R>,
    id: GroupId,
    generation: u32,
) -> Result<Option<Applied>, Fault>
where
    R: Deref<Target: Reader>,
{
    let Some(body) = rows.get(Column::State, &key::applied(id, generation))? else {
        return Ok(None);
    };
    let Some((at, _)) = body.split_first_chunk::<{ Position::BYTES }>() else {
        return Err(Fault::Unreadable(format!("applied mark of {id} is short")));
    };
    Ok(Some(Applied {
        at: Position::from_bytes(*at),
        note: body.slice(Position::BYTES..),
    }))
}

/// Which install of a group's state is the valid one.
pub(crate) fn read_generation<R>(rows: &Rows<R>, id: GroupId) -> Result<u32, Fault>
where
    R: Deref<Target: Reader>,
{
    let key = key::meta(id, Mark::Generation);
    let Some(body) = rows.get(Column::Meta, &key)? else {
        return Ok(0);
    };
    match <[u8; 4]>::try_from(&body[..]) {
        Ok(bytes) => Ok(u32::from_le_bytes(bytes)),
        Err(_) => Err(malformed(Column::Meta, &key)),
    }
}

pub(crate) fn malformed(column: Column, key: &[u8]) -> Fault {
    Fault::Unreadable(place(column, key) + " is malformed")
}
