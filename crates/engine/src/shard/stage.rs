//! A part of a copy is stored, until the copy is opened or is not wanted any more.

use model::run::RunPayload;
use model::{Term, sabotage};
use serde::{Deserialize, Serialize};

use super::run_release::drop_payload;
use super::{At, Outcome, Reply, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::registry::MoveId;
use crate::table::run::{PayloadAt, Run};
use crate::table::staged::{CopyHead, Place, Staged, StagedItem, StagedItemKey, StagedKey};

/// Stores items of a copy behind those that have come. Anything else is a repetition, or of
/// another leader of the source, and changes nothing; only the beginning begins anew.
///
/// Refused where the strand is open at a later epoch: the copy is too late, and would stay for
/// ever. What became of it is in the rows: the leader looks there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The copy.
    pub copy: StagedKey,
    /// The move that it belongs to.
    pub id: MoveId,
    /// The term of the source's leader that sends it.
    pub term: Term,
    /// How many items come before these.
    pub from: u64,
    /// The items.
    pub items: Vec<StagedItem>,
    /// Comes with the last of them.
    pub head: Option<CopyHead>,
    /// The messages of those items that are runs, in order; stored beside the log.
    #[serde(skip)]
    pub payloads: Vec<RunPayload>,
}

/// A copy goes that is not wanted any more: its move was undone, or has been finished otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unstage {
    /// The copy.
    pub copy: StagedKey,
}

impl Stage {
    /// How many of the items have a payload.
    #[must_use]
    pub fn payload_count(&self) -> u32 {
        self.items.iter().filter(|item| is_run(item)).count() as u32
    }

    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Fault> {
        let payloads = (at.payload_number..).map(|number| PayloadAt {
            number,
            ..at.payload()
        });
        let Some(before) = self.goes_on(overlay)? else {
            for payload in payloads.take(self.payload_count() as usize) {
                drop_payload(overlay, payload);
            }
            return Ok(Reply::Done.into());
        };
        let mut payloads = payloads;
        for (place, item) in (before.items..).map(Place).zip(&self.items) {
            let item = match item {
                StagedItem::Run { first, run } => StagedItem::Run {
                    first: *first,
                    run: Run {
                        payload: payloads.next().expect("there is no end of them"),
                        ..run.clone()
                    },
                },
                other => other.clone(),
            };
            overlay.put(&self.copy.item(place), &item);
        }
        let items = before.items + self.items.len() as u64;
        let whole = self.head.clone().filter(|head| head.items == items);
        let (id, term) = (self.id, self.term);
        let after = Staged {
            id,
            term,
            items,
            whole,
        };
        overlay.put(&self.copy, &after);
        Ok(Reply::Done.into())
    }

    /// How far the copy had come, if these are its next items.
    fn goes_on(&self, overlay: &mut Overlay<'_>) -> Result<Option<Staged>, Fault> {
        let strand = read::strand(overlay, self.copy.topic, self.copy.strand)?;
        let is_late = strand.is_some_and(|strand| strand.epoch > self.copy.epoch);
        if is_late && !sabotage!("late-copy-is-staged") {
            return Ok(None);
        }
        let staged = overlay.row::<Staged>(&self.copy)?;
        let is_next = |staged: &Staged| {
            (staged.id, staged.term, staged.items) == (self.id, self.term, self.from)
        };
        Ok(match staged {
            Some(staged) if staged.whole.is_some() => None,
            Some(staged) if is_next(&staged) => Some(staged),
            _ if self.from > 0 => None,
            Some(_) => {
                drop_copy(overlay, &self.copy, true)?;
                Some(self.nothing())
            }
            None => Some(self.nothing()),
        })
    }

    fn nothing(&self) -> Staged {
        Staged {
            id: self.id,
            term: self.term,
            items: 0,
            whole: None,
        }
    }
}

impl Unstage {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Fault> {
        drop_copy(overlay, &self.copy, true)?;
        Ok(Reply::Done.into())
    }
}

impl StagedKey {
    /// The key of one of the copy's items.
    #[must_use]
    pub fn item(&self, place: Place) -> StagedItemKey {
        StagedItemKey {
            topic: self.topic,
            strand: self.strand,
            epoch: self.epoch,
            place,
        }
    }
}

/// The items of a copy, in order.
pub(super) fn items(
    overlay: &Overlay<'_>,
    copy: &StagedKey,
) -> Result<Vec<(StagedItemKey, StagedItem)>, Fault> {
    let (from, to) = (copy.item(Place(0)), copy.item(Place(u64::MAX)));
    overlay.rows::<StagedItem>(&from, &to).collect()
}

/// Removes a copy, with its payloads unless runs refer to them now.
pub(super) fn drop_copy(
    overlay: &mut Overlay<'_>,
    copy: &StagedKey,
    with_payloads: bool,
) -> Result<(), Fault> {
    for (key, item) in items(overlay, copy)? {
        overlay.delete::<StagedItem>(&key);
        match item {
            StagedItem::Run { run, .. } if with_payloads => drop_payload(overlay, run.payload),
            _ => {}
        }
    }
    overlay.delete::<Staged>(copy);
    Ok(())
}

fn is_run(item: &StagedItem) -> bool {
    matches!(item, StagedItem::Run { .. })
}
