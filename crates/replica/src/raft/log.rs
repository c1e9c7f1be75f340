//! The log on disk.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use model::GroupId;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use store::{Done, Payloads, Position, Store, WriteFault};
use tokio::sync::oneshot;

use super::entry::{at, from_store, position, to_store, vote_from_store, vote_to_store};
use super::{Entry, LogId, Types, Vote};

/// Bytes of entries that are read at once, to be replicated or applied.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The log and the vote of one group. Clones read and write the same.
#[derive(Clone)]
pub(super) struct Log {
    store: Store,
    group: GroupId,
}

impl Log {
    pub(super) fn new(store: Store, group: GroupId) -> Self {
        Log { store, group }
    }

    fn read(
        &self,
        range: Range<u64>,
        bytes_max: usize,
        payloads: Payloads,
    ) -> io::Result<Vec<Entry>> {
        let stored = self.store.read_log(self.group, range, bytes_max, payloads);
        let stored = stored.map_err(io::Error::other)?;
        stored.into_iter().map(from_store).collect()
    }

    /// The entries of `range` without their payloads, read piece by piece.
    fn pieces(&self, range: Range<u64>) -> impl Stream<Item = io::Result<Entry>> + use<> {
        let log = self.clone();
        let pieces = stream::try_unfold(range.start, move |next| {
            let piece = match next < range.end {
                true => log.read(next..range.end, READ_BYTES_MAX, Payloads::LeftOut),
                false => Ok(Vec::new()),
            };
            let piece = piece.map(|piece| {
                let last = piece.last()?.log_id.index;
                Some((stream::iter(piece).map(Ok), last + 1))
            });
            std::future::ready(piece)
        });
        pieces.try_flatten()
    }
}

impl RaftLogReader<Types> for Log {
    /// Without payloads: openraft asks in this way at its start only, for who may vote and for
    /// what is to be applied again.
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: R,
    ) -> io::Result<Vec<Entry>> {
        self.read(half_open(&range), usize::MAX, Payloads::LeftOut)
    }

    /// Without payloads: openraft applies what it reads here.
    async fn entries_stream<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: R,
    ) -> impl Stream<Item = io::Result<Entry>> + Send {
        Box::pin(self.pieces(half_open(&range)))
    }

    /// Whole: openraft replicates what it reads here.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(start..end, READ_BYTES_MAX, Payloads::Joined)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        let vote = self.store.vote(self.group).map_err(io::Error::other)?;
        vote.map(|vote| vote_from_store(&vote)).transpose()
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let bounds = self.store.log_bounds(self.group);
        let bounds = bounds.map_err(io::Error::other)?;
        Ok(LogState {
            last_purged_log_id: bounds.purged.map(at),
            last_log_id: bounds.last.map(at),
        })
    }

    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let vote = vote_to_store(vote);
        written(|done| self.store.save_vote(self.group, vote, done)).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        if let Some(committed) = &committed {
            self.store.save_committed(self.group, position(committed));
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        let committed = self.store.committed(self.group);
        Ok(committed.map_err(io::Error::other)?.map(at))
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries = entries.into_iter().map(|entry| to_store(&entry)).collect();
        let done: Done = Box::new(|written| flushed.io_completed(told(written)));
        self.store.append(self.group, entries, done);
        Ok(())
    }

    /// An entry that stays there must be: the first one founded the group, and to drop it would
    /// be to follow another group's leader.
    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let Some(last) = last.map(|last| last.index) else {
            return Err(io::Error::other(
                "the founding of the group is not to be undone",
            ));
        };
        written(|done| self.store.truncate_after(self.group, last, done)).await
    }

    async fn purge(&mut self, through: LogId) -> io::Result<()> {
        let through: Position = position(&through);
        written(|done| self.store.purge(self.group, through, done)).await
    }
}

/// Starts a write and waits until it is on the disk.
async fn written(write: impl FnOnce(Done)) -> io::Result<()> {
    let (done, told_when) = oneshot::channel();
    write(Box::new(move |written| {
        // Who waited may be gone; the write is done nevertheless.
        let _ = done.send(written);
    }));
    told(told_when.await.unwrap_or(Err(WriteFault::Closed)))
}

fn told(written: Result<(), WriteFault>) -> io::Result<()> {
    written.map_err(io::Error::other)
}

fn half_open(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}
