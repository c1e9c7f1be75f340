//! Publishes that wait for the next log entry.

use std::collections::VecDeque;

use model::Timestamp;
use model::limits::{PROPOSAL_BYTES_MAX, PROPOSAL_REQUESTS_MAX, SHARD_WAITING_BYTES_MAX};

use super::{Output, PublishReply, PublishRequest, Refused, pin};
use crate::shard::{Command, Publish};

/// In order of arrival; at most [`SHARD_WAITING_BYTES_MAX`] bytes.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    waiting: VecDeque<PublishRequest>,
    bytes: usize,
}

impl Publishes {
    /// Takes a publish in, or refuses it because too much waits.
    pub(super) fn push(&mut self, request: PublishRequest, out: &mut Vec<Output>) {
        let bytes = request.payload.as_bytes().len();
        if self.bytes + bytes > SHARD_WAITING_BYTES_MAX {
            return refuse(&request, Refused::Overloaded, out);
        }
        self.bytes += bytes;
        self.waiting.push_back(request);
    }

    /// The next publish whose caller still waits for it, if its payload fits into `room` bytes.
    pub(super) fn pop(
        &mut self,
        now: Timestamp,
        room: usize,
        out: &mut Vec<Output>,
    ) -> Option<PublishRequest> {
        while let Some(next) = self.waiting.front() {
            let bytes = next.payload.as_bytes().len();
            let late = next.deadline.is_some_and(|deadline| {
                deadline <= now && !model::sabotage!("late-publish-is-stored")
            });
            if bytes > room && !late {
                return None;
            }
            self.bytes -= bytes;
            let next = self.waiting.pop_front().expect("it was just seen");
            if !late {
                return Some(next);
            }
            refuse(&next, Refused::DeadlinePassed, out);
        }
        None
    }

    /// Whether there is enough for an entry that can't get fuller.
    pub(super) fn fill_an_entry(&self) -> bool {
        self.bytes >= PROPOSAL_BYTES_MAX || self.waiting.len() >= PROPOSAL_REQUESTS_MAX
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

fn refuse(request: &PublishRequest, why: Refused, out: &mut Vec<Output>) {
    out.push(Output::Published {
        request: request.request,
        reply: PublishReply::Refused(why),
    });
}

/// The command that stores the messages of a request.
pub(super) fn command(request: PublishRequest) -> Command {
    let payload = request.payload;
    let sizes = (0..payload.len()).map(|at| payload.message_bytes(at) as u64);
    Command::Publish(Publish {
        topic: request.topic,
        strand: request.strand,
        keyed: request.keyed,
        epoch: pin::epoch(request.keyed),
        count: payload.len() as u32,
        bytes: sizes.sum(),
        payload,
    })
}
