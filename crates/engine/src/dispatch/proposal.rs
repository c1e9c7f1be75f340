//! Log entries: what waits together is proposed together, and their outcomes find the way back.

use std::collections::VecDeque;

use model::Incarnation;
use model::limits::{PROPOSAL_BYTES_MAX, PROPOSAL_REQUESTS_MAX, PROPOSALS_IN_FLIGHT_MAX};

use super::arrivals::Arriving;
use super::outbox::Logging;
use super::seals::Sealing;
use super::sweep::Cleaning;
use super::{Output, ProposalId, RequestId};
use crate::shard::Command;
use crate::table::strand::StrandKey;

/// Who waits for the outcome of a command.
#[derive(Debug)]
pub(super) enum Waiting {
    Publish {
        request: RequestId,
        /// The strand whose opening the publish carries.
        opens: Option<StrandKey>,
    },
    Catalogue(RequestId),
    Dispatcher(Incarnation, Logging),
    Cleaner(Cleaning),
    Seal(Sealing),
    Arrival(Arriving),
}

/// An entry that is being put together.
#[derive(Debug)]
pub(super) struct Entry {
    commands: Vec<Command>,
    waiting: Vec<Waiting>,
    /// Bytes of payload that still fit.
    room: usize,
    has_payload: bool,
}

impl Entry {
    pub(super) fn new() -> Self {
        Entry {
            commands: Vec::new(),
            waiting: Vec::new(),
            room: PROPOSAL_BYTES_MAX,
            has_payload: false,
        }
    }

    pub(super) fn push(&mut self, command: Command, waiting: Waiting) {
        for payload in command.payloads() {
            self.room = self.room.saturating_sub(payload.as_bytes().len());
            self.has_payload = true;
        }
        self.commands.push(command);
        self.waiting.push(waiting);
    }

    /// Bytes of payload that still fit. A single publish always fits: it may be larger than an
    /// entry should be.
    pub(super) fn room(&self) -> usize {
        match self.has_payload {
            true => self.room,
            false => usize::MAX,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.commands.len() >= PROPOSAL_REQUESTS_MAX || self.room == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// The entries on their way through the log, in order.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    proposed: u64,
    in_flight: VecDeque<(ProposalId, Vec<Waiting>)>,
}

impl Proposals {
    pub(super) fn may_propose(&self) -> bool {
        self.in_flight.len() < PROPOSALS_IN_FLIGHT_MAX
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(super) fn propose(&mut self, entry: Entry, out: &mut Vec<Output>) {
        self.proposed += 1;
        let proposal = ProposalId(self.proposed);
        self.in_flight.push_back((proposal, entry.waiting));
        let commands = entry.commands;
        out.push(Output::Propose { proposal, commands });
    }

    /// Who waits for the outcomes of a proposal.
    ///
    /// # Panics
    /// When it is not the oldest one: outcomes come in the order of the proposals.
    pub(super) fn applied(&mut self, proposal: ProposalId) -> Vec<Waiting> {
        match self.in_flight.pop_front() {
            Some((oldest, waiting)) if oldest == proposal => waiting,
            other => panic!("outcomes of {proposal:?}, but {other:?} is the oldest"),
        }
    }
}
