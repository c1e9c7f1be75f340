//! Publishes that wait for the next log entry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::Timestamp;
use model::limits::{PROPOSAL_BYTES_MAX, PROPOSAL_REQUESTS_MAX, SHARD_WAITING_BYTES_MAX};

use super::{Output, PublishRequest, Refused};
use crate::shard::{Command, Opening, Publish};
use crate::table::strand::StrandKey;

/// In order of arrival; at most [`SHARD_WAITING_BYTES_MAX`] bytes.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    waiting: VecDeque<Ready>,
    bytes: usize,
    /// The openings that publishes carry, waiting or in the log, and how many do.
    openings: BTreeMap<StrandKey, (Opening, usize)>,
}

/// A publish that can be proposed.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) request: PublishRequest,
    /// How its strand opens, if it is not open yet.
    opening: Option<Opening>,
}

impl Publishes {
    /// Takes a publish in, or refuses it because too much waits.
    pub(super) fn push(
        &mut self,
        request: PublishRequest,
        opening: Option<Opening>,
        out: &mut Vec<Output>,
    ) {
        let bytes = request.bytes();
        if self.bytes + bytes > SHARD_WAITING_BYTES_MAX {
            return request.refuse(Refused::Overloaded, out);
        }
        self.bytes += bytes;
        if let Some(opening) = opening {
            // Any of them may turn out to be late, so that each must be able to open the strand.
            let entry = self.openings.entry(request.key());
            let (newest, publishes) = entry.or_insert((opening, 0));
            *newest = opening;
            *publishes += 1;
        }
        self.waiting.push_back(Ready { request, opening });
    }

    /// How a strand opens once what waits is in the log.
    pub(super) fn opening_of(&self, key: &StrandKey) -> Option<Opening> {
        self.openings.get(key).map(|(opening, _)| *opening)
    }

    /// A publish that carried an opening has been through the log.
    pub(super) fn opened(&mut self, key: &StrandKey) {
        let (_, publishes) = self.openings.get_mut(key).expect("it is counted");
        *publishes -= 1;
        if *publishes == 0 {
            self.openings.remove(key);
        }
    }

    /// The next publish whose caller still waits for it, if its payload fits into `room` bytes.
    pub(super) fn pop(
        &mut self,
        now: Timestamp,
        room: usize,
        out: &mut Vec<Output>,
    ) -> Option<Ready> {
        while let Some(next) = self.waiting.front() {
            let bytes = next.request.bytes();
            let late = next.request.is_late(now);
            if bytes > room && !late {
                return None;
            }
            self.bytes -= bytes;
            let next = self.waiting.pop_front().expect("it was just seen");
            if !late {
                return Some(next);
            }
            if let Some(key) = next.opens() {
                self.opened(&key);
            }
            next.request.refuse(Refused::DeadlinePassed, out);
        }
        None
    }

    /// The strands of the publishes that wait.
    pub(super) fn keys(&self) -> BTreeSet<StrandKey> {
        self.waiting
            .iter()
            .map(|ready| ready.request.key())
            .collect()
    }

    /// Whether there is enough for an entry that can't get fuller.
    pub(super) fn fill_an_entry(&self) -> bool {
        self.bytes >= PROPOSAL_BYTES_MAX || self.waiting.len() >= PROPOSAL_REQUESTS_MAX
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl Ready {
    /// The strand that the publish opens, if it carries how.
    pub(super) fn opens(&self) -> Option<StrandKey> {
        self.opening.map(|_| self.request.key())
    }

    /// The command that stores the messages.
    pub(super) fn into_command(self) -> Command {
        let Ready { request, opening } = self;
        let payload = request.payload;
        let sizes = (0..payload.len()).map(|at| payload.message_bytes(at) as u64);
        Command::Publish(Publish {
            topic: request.topic,
            strand: request.strand,
            keyed: request.keyed,
            opening,
            count: payload.len() as u32,
            bytes: sizes.sum(),
            payload,
        })
    }
}
