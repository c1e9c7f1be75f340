//! The disk of a simulated node: in memory, outliving the node's processes, and as slow as its
//! faults say, in virtual time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node::start;
use store::{Faults, MemoryDisk, Pace, Store};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{interval, sleep};

/// How long an fsync takes on a disk that is well.
pub(super) const SYNC_TAKES: Duration = Duration::from_millis(2);

/// A disk, and the store that a process has open on it. Clones are the same.
#[derive(Clone)]
pub(super) struct Disk {
    memory: Arc<Mutex<MemoryDisk>>,
    open: Arc<Mutex<Option<Open>>>,
    flush_every: Duration,
}

struct Open {
    store: Store,
    working: AbortHandle,
}

impl Disk {
    /// An empty one, where the state is flushed so often.
    pub(super) fn new(flush_every: Duration) -> Self {
        let disk = Disk {
            memory: Arc::default(),
            open: Arc::default(),
            flush_every,
        };
        disk.set_faults(Faults::default());
        disk
    }

    /// How a node opens it.
    pub(super) fn for_node(&self) -> start::Disk {
        let disk = self.clone();
        start::Disk::new(move |settings| {
            let (tell, told) = mpsc::unbounded_channel();
            let pace = Pace::Driven(Arc::new(move |takes| {
                // Nobody listens any more when the process has ended.
                let _ = tell.send(takes);
            }));
            let store = Store::memory(&disk.memory(), settings, pace)?;
            let working = tokio::spawn(work(store.clone(), told, disk.flush_every));
            *disk.open() = Some(Open {
                store: store.clone(),
                working: working.abort_handle(),
            });
            Ok(store)
        })
    }

    /// From now on the disk has these faults, beside the time that it takes.
    pub(super) fn set_faults(&self, faults: Faults) {
        let sync_takes = faults.sync_takes.max(SYNC_TAKES);
        self.memory().set_faults(Faults {
            sync_takes,
            ..faults
        });
    }

    /// The process that has it open has ended: what it had handed to the disk stays.
    pub(super) fn end_process(&self) {
        self.close();
        self.memory().end_process();
    }

    /// The power goes: of what was not synced, some survives; `seed` decides how much.
    pub(super) fn lose_power(&self, seed: u64) {
        self.close();
        self.memory().lose_power(seed);
    }

    /// Another disk is in its place, an empty one.
    pub(super) fn replace(&self) {
        self.close();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.end_process();
        *memory = MemoryDisk::new();
        drop(memory);
        self.set_faults(Faults::default());
    }

    /// Bytes on it.
    pub(super) fn used(&self) -> u64 {
        self.memory().used()
    }

    /// The store that is open on it.
    pub(super) fn store(&self) -> Option<Store> {
        self.open().as_ref().map(|open| open.store.clone())
    }

    fn memory(&self) -> MemoryDisk {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.clone()
    }

    fn close(&self) {
        if let Some(open) = self.open().take() {
            open.working.abort();
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what the threads of a store on a real disk do, in virtual time.
async fn work(store: Store, mut told: mpsc::UnboundedReceiver<Duration>, flush_every: Duration) {
    let mut flush = interval(flush_every);
    loop {
        tokio::select! {
            biased;
            takes = told.recv() => {
                let Some(takes) = takes else { return };
                sleep(takes).await;
                store.write_waiting();
            }
            _ = flush.tick() => {
                // A failure is noted, and stops every later write.
                let _ = store.flush_state();
            }
        }
    }
}
