//! Keys that move away: their copies on the way to other shards, until the strands here go.

use std::collections::BTreeMap;
use std::time::Duration;

use model::limits::{MOVE_PART_BYTES, MOVE_PART_ITEMS};
use model::{Epoch, ShardNumber, Term, Timestamp};

use super::{MoveReply, Output, PublishReply, RequestId, TransferMessage};
use crate::Fault;
use crate::kv::View;
use crate::registry::MoveId;
use crate::shard::copy::{self, StrandCopy};
use crate::shard::{Opening, Stage};
use crate::table::staged::{CopyHead, StagedItem, StagedKey};
use crate::table::strand::{Strand, StrandKey};

/// A move is undone whose copy is not whole after this long: the key stands still meanwhile.
const UNDO_AFTER: Duration = Duration::from_secs(2);

/// The moves that this leader has to do with.
#[derive(Debug)]
pub(super) struct Transfers {
    shard: ShardNumber,
    term: Term,
    begun: u64,
    moves: BTreeMap<StrandKey, Transfer>,
}

/// One move.
#[derive(Debug)]
struct Transfer {
    id: MoveId,
    to: ShardNumber,
    /// Since when this leader sends the copy.
    since: Option<Timestamp>,
    /// What is sent. Nothing changes in it while the strand is sealed.
    copy: Option<StrandCopy>,
    /// How many items the other side has.
    sent: u64,
    whole: bool,
    pin: Pinned,
    /// The other side has opened the copy.
    is_open: bool,
    /// Who asked for the move.
    asked_by: Vec<RequestId>,
}

/// Where the key is pinned, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    Unknown,
    Here,
    There(Opening),
}

/// What is to be asked of the registry group next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextQuestion {
    /// Nothing: first the copy must be whole.
    None,
    /// How the pin is.
    Look,
    /// The move itself.
    Move(MoveId, ShardNumber),
    /// Its end, as long as it has not happened.
    Undo,
}

impl Transfers {
    pub(super) fn new(shard: ShardNumber, term: Term) -> Self {
        Transfers {
            shard,
            term,
            begun: 0,
            moves: BTreeMap::new(),
        }
    }

    /// Somebody wants a key to move: how it is called.
    pub(super) fn begin(&mut self, key: StrandKey, to: ShardNumber, by: RequestId) -> MoveId {
        self.begun += 1;
        let id = MoveId {
            shard: self.shard,
            term: self.term,
            number: self.begun,
        };
        let mut transfer = Transfer::new(id, to);
        // Where it isn't any more, the registry group answers so, and changes nothing.
        transfer.pin = Pinned::Here;
        transfer.asked_by.push(by);
        self.moves.insert(key, transfer);
        id
    }

    /// Whether a key is moving to a shard; the caller is answered with the others then.
    pub(super) fn joins(&mut self, key: &StrandKey, to: ShardNumber, by: RequestId) -> bool {
        let transfer = self.moves.get_mut(key);
        let transfer = transfer.filter(|transfer| transfer.to == to);
        transfer.is_some_and(|transfer| {
            transfer.asked_by.push(by);
            true
        })
    }

    /// A strand is not sealed any more: whoever wanted it to move hears of it.
    pub(super) fn end(&mut self, key: &StrandKey, reply: MoveReply, out: &mut Vec<Output>) {
        let transfer = self.moves.remove(key);
        for request in transfer.into_iter().flat_map(|transfer| transfer.asked_by) {
            out.push(Output::KeyMoved { request, reply });
        }
    }

    /// Goes on with a move whose strand is sealed: says what the other side lacks, and what is to
    /// be asked.
    pub(super) fn go_on(
        &mut self,
        (now, view): (Timestamp, &dyn View),
        (key, strand): (&StrandKey, &Strand),
        (id, to): (MoveId, ShardNumber),
        out: &mut Vec<Output>,
    ) -> Result<NextQuestion, Fault> {
        let term = self.term;
        let transfer = self.moves.entry(*key);
        let transfer = transfer.or_insert_with(|| Transfer::new(id, to));
        let copy = copy_key(key, strand.epoch);
        let since = *transfer.since.get_or_insert(now);
        if let Pinned::There(opening) = transfer.pin {
            let message = TransferMessage::Activate { copy, id, opening };
            out.push(Output::Tell { to, message });
        }
        if !transfer.whole {
            transfer.send_part(view, (key, &copy), term, out)?;
        }
        let is_late = since.plus(UNDO_AFTER) <= now;
        Ok(match transfer.pin {
            Pinned::Unknown | Pinned::There(_) => NextQuestion::Look,
            Pinned::Here if transfer.whole => NextQuestion::Move(id, to),
            Pinned::Here if is_late => NextQuestion::Undo,
            Pinned::Here => NextQuestion::None,
        })
    }

    /// The pin is still as it was when the strand was sealed. Whether that is news, and something
    /// is to be done now.
    pub(super) fn is_here(&mut self, key: &StrandKey) -> bool {
        self.moves.get_mut(key).is_some_and(|transfer| {
            let before = std::mem::replace(&mut transfer.pin, Pinned::Here);
            transfer.whole && before == Pinned::Unknown
        })
    }

    /// The pin names the copy.
    pub(super) fn is_there(&mut self, key: &StrandKey, opening: Opening) {
        if let Some(transfer) = self.moves.get_mut(key) {
            transfer.pin = Pinned::There(opening);
        }
    }

    /// The other side has opened the copy: whoever wanted the move hears of it, though the strand
    /// here is still to go.
    pub(super) fn opened(&mut self, key: &StrandKey, out: &mut Vec<Output>) {
        let transfer = self.moves.get_mut(key);
        let transfer = transfer.filter(|transfer| matches!(transfer.pin, Pinned::There(_)));
        if let Some(transfer) = transfer {
            transfer.is_open = true;
            for request in transfer.asked_by.drain(..) {
                let reply = MoveReply::Moved;
                out.push(Output::KeyMoved { request, reply });
            }
        }
    }

    /// What publishes of a key are answered whose copy the other side has opened.
    pub(super) fn elsewhere(&self, key: &StrandKey) -> Option<PublishReply> {
        let transfer = self.moves.get(key).filter(|transfer| transfer.is_open)?;
        match transfer.pin {
            Pinned::There(Opening { epoch, .. }) => Some(PublishReply::Moved {
                shard: transfer.to,
                epoch,
            }),
            Pinned::Unknown | Pinned::Here => None,
        }
    }

    /// The other side has so much of a copy. Whether there is something to be done now.
    pub(super) fn staged(
        &mut self,
        (copy, id, term): (&StagedKey, MoveId, Term),
        items: u64,
        whole: bool,
    ) -> bool {
        let transfer = self.moves.get_mut(&copy.strand_key());
        let Some(transfer) = transfer.filter(|transfer| transfer.id == id) else {
            return false;
        };
        let is_news = whole && !transfer.whole || term == self.term && items > transfer.sent;
        transfer.whole |= whole;
        if term == self.term {
            transfer.sent = transfer.sent.max(items);
        }
        is_news
    }
}

impl Transfer {
    fn new(id: MoveId, to: ShardNumber) -> Self {
        Transfer {
            id,
            to,
            since: None,
            copy: None,
            sent: 0,
            whole: false,
            pin: Pinned::Unknown,
            is_open: false,
            asked_by: Vec::new(),
        }
    }

    /// Says the next part of the copy.
    fn send_part(
        &mut self,
        view: &dyn View,
        (key, copy): (&StrandKey, &StagedKey),
        term: Term,
        out: &mut Vec<Output>,
    ) -> Result<(), Fault> {
        if self.copy.is_none() {
            self.copy = copy::of_strand(view, key)?;
        }
        // One that has grown too large since it was looked at is undone.
        let Some(strand) = &self.copy else {
            return Ok(());
        };
        let from = usize::try_from(self.sent).unwrap_or(usize::MAX);
        let rest = strand.items.get(from..).unwrap_or_default();
        let (items, payloads) = part_of(view, rest)?;
        let is_last = items.len() == rest.len();
        let head: Option<CopyHead> = is_last.then(|| strand.head.clone());
        let part = Stage {
            copy: *copy,
            id: self.id,
            term,
            from: self.sent,
            items,
            head,
            payloads: Vec::new(),
        };
        let message = TransferMessage::Copy { part, payloads };
        out.push(Output::Tell {
            to: self.to,
            message,
        });
        Ok(())
    }
}

/// As many items as fit into one part, with the messages of the runs among them.
fn part_of(view: &dyn View, rest: &[StagedItem]) -> Result<(Vec<StagedItem>, Vec<Vec<u8>>), Fault> {
    let (mut items, mut payloads, mut bytes) = (Vec::new(), Vec::new(), 0);
    for item in rest.iter().take(MOVE_PART_ITEMS) {
        if let StagedItem::Run { run, .. } = item {
            if bytes > 0 && bytes + run.bytes as usize > MOVE_PART_BYTES {
                break;
            }
            let payload = view.payload(run.payload)?.as_bytes().to_vec();
            bytes += payload.len();
            payloads.push(payload);
        }
        items.push(item.clone());
    }
    Ok((items, payloads))
}

pub(super) fn copy_key(key: &StrandKey, epoch: Epoch) -> StagedKey {
    StagedKey {
        topic: key.topic,
        strand: key.strand,
        epoch,
    }
}
