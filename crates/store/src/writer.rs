//! The one writer: everything that waits, of all groups, becomes one batch and one fsync.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use model::GroupId;

use crate::backend::Backend;
use crate::backend::batch::{Batch, Durability};
use crate::entry::Position;
use crate::fault::WriteFault;
use crate::health::Health;
use crate::key::{self, Column, Mark};
use crate::settings::Limits;
use crate::sync_times::SyncClock;

/// Told once, when a write is on the disk (fsync included) or is known to have failed. Called on
/// the writer's thread: it must not block.
pub type Done = Box<dyn FnOnce(Result<(), WriteFault>) + Send>;

/// Who writes, and when.
#[derive(Clone)]
pub(crate) enum Turn {
    /// A thread of the store, as soon as it can.
    Thread,
    /// The caller, at once.
    Caller,
    /// Whoever is told that a batch waits, by [`Writer::write_waiting`].
    Driver(Arc<dyn Fn() + Send + Sync>),
}

/// The one writer.
pub(crate) struct Writer {
    backend: Arc<dyn Backend>,
    health: Arc<Health>,
    limits: Limits,
    turn: Turn,
    queue: Mutex<Queue>,
    /// Held from taking a batch to its end: batches reach the disk in the order of their tickets,
    /// also where callers on several threads write.
    writing: Mutex<()>,
    /// Told when the queue has grown, and when it has shrunk.
    changed: Condvar,
    /// The number of the last ticket that was written.
    written: AtomicU64,
    /// How long batches take.
    pub(crate) clock: SyncClock,
}

/// The place of a write in the order of all writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// The last ticket given out.
    ticket: u64,
    /// What the waiting batches weigh.
    bytes: usize,
    /// Not worth an fsync: rides on the next batch.
    committed: BTreeMap<GroupId, Position>,
    /// Whether the driver was told of what waits.
    told: bool,
    closed: bool,
}

struct Job {
    ticket: u64,
    batch: Batch,
    done: Done,
}

/// The ticket of a job whose batch was taken, and whom to tell.
type Written = (u64, Done);

impl Writer {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        health: Arc<Health>,
        limits: Limits,
        turn: Turn,
    ) -> Self {
        Writer {
            backend,
            health,
            limits,
            turn,
            queue: Mutex::default(),
            writing: Mutex::default(),
            changed: Condvar::new(),
            written: AtomicU64::new(0),
            clock: SyncClock::default(),
        }
    }

    /// Queues a write. The caller may hold locks, and calls [`Writer::take_turn`] without them.
    pub(crate) fn submit(&self, batch: Batch, done: Done) -> Ticket {
        let mut queue = self.queue();
        queue.ticket += 1;
        queue.bytes += batch.bytes;
        let ticket = queue.ticket;
        queue.waiting.push_back(Job {
            ticket,
            batch,
            done,
        });
        Ticket(ticket)
    }

    /// Sees to it that what was queued is written.
    pub(crate) fn take_turn(&self) {
        match &self.turn {
            Turn::Thread => self.changed.notify_all(),
            Turn::Caller => while self.write_waiting() {},
            Turn::Driver(tell) => {
                let mut queue = self.queue();
                let news = !queue.told && !queue.waiting.is_empty();
                queue.told |= news;
                drop(queue);
                if news {
                    tell();
                }
            }
        }
    }

    /// Waits until the queue has room. Only a caller far ahead of the disk gets here.
    pub(crate) fn wait_for_room(&self) {
        self.wait_until(|queue| queue.bytes <= self.limits.queue_bytes);
    }

    /// Whether a write can be read from the disk. It need not be synced.
    pub(crate) fn is_written(&self, ticket: Ticket) -> bool {
        self.written.load(Ordering::Acquire) >= ticket.0
    }

    /// Waits until a write can be read from the disk.
    pub(crate) fn wait_for(&self, ticket: Ticket) -> Result<(), WriteFault> {
        if !self.is_written(ticket) {
            self.wait_until(|_| self.is_written(ticket));
        }
        match self.is_written(ticket) {
            true => Ok(()),
            false => self.health.check().and(Err(WriteFault::Closed)),
        }
    }

    /// Notes a group's last committed entry, to be written with whatever is synced next.
    pub(crate) fn note_committed(&self, group: GroupId, at: Position) {
        self.queue().committed.insert(group, at);
    }

    /// Writes one batch of what waits. Answers whether there was anything.
    pub(crate) fn write_waiting(&self) -> bool {
        let Some((outcome, jobs)) = self.write_batch() else {
            return false;
        };
        // The lock makes sure that nobody is between a look at the queue and the wait for it.
        drop(self.queue());
        self.changed.notify_all();
        for (_, done) in jobs {
            done(outcome.clone());
        }
        self.take_turn_again();
        true
    }

    /// Writes one batch, and answers how it went and who is to be told.
    fn write_batch(&self) -> Option<(Result<(), WriteFault>, Vec<Written>)> {
        let _writing = self.writing.lock().expect("no writer panics");
        let (batch, jobs) = self.next_batch()?;
        let outcome = self.health.check().and_then(|()| {
            let durability = match model::sabotage!("answered-before-the-fsync") {
                true => Durability::Logged,
                false => Durability::Synced,
            };
            let begin = Instant::now();
            let written = self.backend.write(batch, durability);
            self.clock.add(begin.elapsed());
            written.map_err(|error| self.health.fail(&error))
        });
        if let (Ok(()), Some((ticket, _))) = (&outcome, jobs.last()) {
            self.written.store(*ticket, Ordering::Release);
        }
        Some((outcome, jobs))
    }

    /// The loop of the store's thread. Ends when the writer is closed and nothing waits.
    pub(crate) fn run(&self) {
        loop {
            while self.write_waiting() {}
            let queue = self.queue();
            if !queue.waiting.is_empty() {
                continue;
            }
            if queue.closed {
                return;
            }
            drop(self.changed.wait(queue));
        }
    }

    /// Lets the thread end, once nothing waits.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Takes jobs off the queue, up to the limit of a batch.
    fn next_batch(&self) -> Option<(Batch, Vec<Written>)> {
        let mut queue = self.queue();
        queue.told = false;
        let mut batch = Batch::default();
        let mut jobs = Vec::new();
        while let Some(job) = queue.waiting.front() {
            if !jobs.is_empty() && batch.bytes + job.batch.bytes > self.limits.batch_bytes {
                break;
            }
            let job = queue.waiting.pop_front().expect("it has a front");
            queue.bytes -= job.batch.bytes;
            batch.extend(job.batch);
            jobs.push((job.ticket, job.done));
        }
        if jobs.is_empty() {
            return None;
        }
        for (group, at) in std::mem::take(&mut queue.committed) {
            let key = key::meta(group, Mark::Committed);
            batch.put(Column::Meta, key, &[&at.to_bytes()]);
        }
        Some((batch, jobs))
    }

    /// Tells the driver when more waits behind the batch that was written. Other turns need no
    /// telling: both write until nothing waits.
    fn take_turn_again(&self) {
        if matches!(self.turn, Turn::Driver(_)) {
            self.take_turn();
        }
    }

    /// Waits for what only writing brings about, or for the end of writing.
    fn wait_until(&self, come: impl Fn(&Queue) -> bool) {
        let mut queue = self.queue();
        while !come(&queue) && self.health.check().is_ok() && !queue.closed {
            match self.turn {
                // The timeout only guards against a lost writer thread.
                Turn::Thread => {
                    let waited = self.changed.wait_timeout(queue, Duration::from_millis(100));
                    queue = waited.expect("no holder of the queue panics").0;
                }
                Turn::Caller | Turn::Driver(_) => {
                    drop(queue);
                    if !self.write_waiting() {
                        return;
                    }
                    queue = self.queue();
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of the queue panics")
    }
}
