//! The log of one shard and the state that it makes. It loses nothing that was committed; what was
//! only proposed is the leader's, and may be lost with it.

use engine::Fault;
use engine::command::{Command, Proposal};
use engine::kv::Overlay;
use engine::kv::memory::MemoryView;
use engine::shard::{self, At, Outcome};
use engine::table::run::PayloadAt;
use model::run::RunPayload;
use model::{ShardNumber, Term, Timestamp};

/// Entries that may be replayed before a checkpoint is taken.
const REPLAYED_MAX: usize = 300;

pub(super) struct Log {
    shard: ShardNumber,
    index: u64,
    view: MemoryView,
    /// The state as of some earlier entry, and all entries since.
    checkpoint: MemoryView,
    since: Vec<Entry>,
}

/// An entry as it is on disk: the commands, and their payloads beside them.
struct Entry {
    term: Term,
    index: u64,
    bytes: Vec<u8>,
    payloads: Vec<RunPayload>,
}

impl Log {
    pub(super) fn new(shard: ShardNumber) -> Self {
        Log {
            shard,
            index: 0,
            view: MemoryView::default(),
            checkpoint: MemoryView::default(),
            since: Vec::new(),
        }
    }

    pub(super) fn view(&self) -> &MemoryView {
        &self.view
    }

    /// Commits and applies an entry.
    pub(super) fn commit(
        &mut self,
        term: Term,
        at: Timestamp,
        commands: Vec<shard::Command>,
    ) -> Result<Vec<Outcome>, Fault> {
        let commands = commands.into_iter().map(Command::Shard).collect();
        let proposal = Proposal { at, commands };
        self.index += 1;
        let entry = Entry {
            term,
            index: self.index,
            bytes: proposal.encode(),
            payloads: proposal.payloads().cloned().collect(),
        };
        let outcomes = entry.apply(self.shard, &mut self.view)?;
        if self.since.len() >= REPLAYED_MAX {
            self.checkpoint = self.view.clone();
            self.since.clear();
        } else {
            self.since.push(entry);
        }
        Ok(outcomes)
    }

    /// A replica that restarts from its checkpoint comes to the same state.
    ///
    /// # Panics
    /// When it does not.
    pub(super) fn assert_replay_agrees(&self) -> Result<(), Fault> {
        let mut replayed = self.checkpoint.clone();
        for entry in &self.since {
            entry.apply(self.shard, &mut replayed)?;
        }
        assert!(replayed == self.view, "replay makes another state");
        Ok(())
    }
}

impl Entry {
    fn apply(&self, shard: ShardNumber, view: &mut MemoryView) -> Result<Vec<Outcome>, Fault> {
        for (number, payload) in self.payloads.iter().enumerate() {
            let at = PayloadAt {
                term: self.term.0,
                index: self.index,
                number: number as u32,
            };
            view.store_payload(at, payload.clone());
        }
        let proposal = Proposal::decode(&self.bytes).expect("the log gives back what it got");
        let mut overlay = Overlay::new(view);
        let mut outcomes = Vec::with_capacity(proposal.commands.len());
        let mut payload_number = 0;
        for command in &proposal.commands {
            let Command::Shard(command) = command else {
                unreachable!("a shard's log has a shard's commands");
            };
            let at = At {
                shard,
                term: self.term.0,
                index: self.index,
                payload_number,
                time: proposal.at,
            };
            outcomes.push(shard::apply(&mut overlay, command, at)?);
            payload_number += command.payload_count();
        }
        let writes = overlay.into_writes();
        view.commit(writes);
        Ok(outcomes)
    }
}
