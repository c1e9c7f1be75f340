//! openraft's own suite over our log and state, in memory and on disk.
//!
//! The suite cuts logs at will. Our store refuses to cut what its state has not applied, so the
//! state is first brought there, as a checkpoint would have it. Left out are three kinds of test:
//! those that hand a checkpoint from one state to another without a network between them, of a log
//! that loses its first entry, and of a state that is behind the cut.

use std::io;
use std::sync::{Arc, Mutex};

use model::{GroupId, NodeId, ShardNumber};
use openraft::StorageError;
use openraft::errors::ErrorSource;
use openraft::impls::BoxedErrorSource;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::testing::log::{StoreBuilder, Suite};
use store::{Applied, Identity, MemoryDisk, Pace, Start, Store};
use tempfile::TempDir;

use super::effects::Effects;
use super::entry::{membership_to_store, position};
use super::log::Log;
use super::state::State;
use super::{Entry, LogId, Membership, Types, Vote};

const GROUP: GroupId = GroupId::Shard(ShardNumber(7));

/// A log that is never cut before its state is on disk.
struct CutLater {
    log: Log,
    store: Store,
}

impl CutLater {
    fn flush_state(&self, through: &LogId) -> io::Result<()> {
        let at = position(through);
        let applied = self.store.applied(GROUP).map_err(io::Error::other)?;
        if applied.is_none_or(|applied| applied.at < at) {
            let note = membership_to_store(&Membership::default());
            let applied = Applied { at, note };
            let written = self.store.write_state(GROUP, applied, Default::default());
            written.map_err(io::Error::other)?;
        }
        self.store.flush_state().map_err(io::Error::other)
    }
}

impl RaftLogStorage<Types> for CutLater {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        self.log.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> Log {
        self.log.get_log_reader().await
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.log.save_vote(vote).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        self.log.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        self.log.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        self.log.append(entries, flushed).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.log.truncate_after(last).await
    }

    async fn purge(&mut self, through: LogId) -> io::Result<()> {
        self.flush_state(&through)?;
        self.log.purge(through).await
    }
}

/// Where each test's store lies.
#[derive(Clone, Copy)]
enum Medium {
    Memory,
    Folder,
}

type Opened = (Option<TempDir>, CutLater, State);

impl Medium {
    fn open(self) -> io::Result<Opened> {
        let start = Start::New(Identity {
            cluster: "test".to_owned(),
            node: NodeId(0),
            called: None,
        });
        let (folder, store) = match self {
            Medium::Memory => {
                let settings = store::Settings::new("memory", start);
                let store = Store::memory(&MemoryDisk::new(), settings, Pace::AtOnce);
                (None, store)
            }
            Medium::Folder => {
                let folder = TempDir::new()?;
                let store = Store::open(store::Settings::new(folder.path(), start));
                (Some(folder), store)
            }
        };
        let store = store.map_err(io::Error::other)?;
        let (state, _) = State::open(
            store.clone(),
            GROUP,
            Arc::new(Mutex::new(())),
            Effects::default(),
        )?;
        let log = Log::new(store.clone(), GROUP);
        Ok((folder, CutLater { log, store }, state))
    }
}

impl StoreBuilder<Types, CutLater, State, Option<TempDir>> for Medium {
    async fn build(&self) -> Result<Opened, StorageError<Types>> {
        let opened = self.open();
        opened.map_err(|error| StorageError::read(BoxedErrorSource::from_error(&error)))
    }
}

type OurSuite = Suite<Types, CutLater, State, Medium, Option<TempDir>>;

macro_rules! conforms {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $test() {
                let (_folder, log, state) = super::Medium::Memory.open().unwrap();
                super::OurSuite::$test(log, state).await.unwrap();
            })*
        }

        mod folder {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn $test() {
                let (_folder, log, state) = super::Medium::Folder.open().unwrap();
                super::OurSuite::$test(log, state).await.unwrap();
            })*
        }
    };
}

conforms!(
    last_membership_in_log_initial,
    last_membership_in_log,
    last_membership_in_log_multi_step,
    get_membership_initial,
    get_membership_from_log_and_empty_sm,
    get_membership_from_empty_log_and_sm,
    get_membership_from_log_le_sm_last_applied,
    get_membership_from_log_gt_sm_last_applied_1,
    get_membership_from_log_gt_sm_last_applied_2,
    get_initial_state_without_init,
    get_initial_state_with_state,
    get_initial_state_membership_from_empty_log_and_sm,
    get_initial_state_membership_from_sm_inlog_is_smaller,
    get_initial_state_membership_from_log_insm_is_smaller,
    get_initial_state_last_log_gt_sm,
    get_initial_state_last_log_lt_sm,
    get_initial_state_inverted_log_order,
    get_initial_state_conflict_at_same_index,
    get_initial_state_log_ids,
    get_initial_state_re_apply_committed,
    save_vote,
    get_log_entries,
    limited_get_log_entries,
    leader_bounded_stream,
    entries_stream,
    try_get_log_entry,
    log_reader_reads_new_entries,
    initial_logs,
    get_log_state,
    get_log_id,
    last_id_in_log,
    last_applied_state,
    purge_logs_upto_0,
    purge_logs_upto_5,
    purge_logs_upto_20,
    delete_logs_after_11,
    delete_logs_after_5,
    delete_logs_after_0,
    append_to_log,
    snapshot_meta,
    snapshot_meta_optional,
    apply_single,
    apply_multiple,
);
