//! Serving messages outside lanes: each goes when it can, waiting for no other.

use model::MessageId;

use super::dispatcher::Dispatcher;
use super::serve::{Candidate, Serving};
use super::step::Step;
use crate::Fault;
use crate::kv::ViewExt;
use crate::shard::read;
use crate::table::run::{Run, RunKey};

impl Dispatcher {
    /// Serves one message that is sent again; whether there was one.
    pub(super) fn serve_again(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
    ) -> Result<bool, Fault> {
        let Some((id, _)) = self.loose.pop() else {
            return Ok(false);
        };
        serving.count_run();
        // Without its run the message is settled.
        if let Some((key, run)) = read::run_of(step.view, self.topic, id)?
            && let Some(payload) = read::payload(step.view, key, &run)?
        {
            let attempts = self.attempts(step, id, id)?;
            let number = (id.counter() - key.first.counter()) as usize;
            let candidate = Candidate {
                id,
                message: payload.message(number),
                attempts: attempts.get(&id).copied().unwrap_or(0),
            };
            self.send_loose(step, serving, &run, candidate);
        }
        Ok(true)
    }

    /// Serves the run whose turn it is; whether there was one.
    pub(super) fn serve_fresh(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
    ) -> Result<bool, Fault> {
        let Some(mut ahead) = self.reader.pop() else {
            return self.fill(step);
        };
        serving.count_run();
        let (topic, first) = (self.topic, ahead.first);
        let key = RunKey { topic, first };
        // Without its row the run is settled.
        let Some(run) = step.view.row::<Run>(&key)? else {
            return Ok(true);
        };
        let Some(payload) = read::payload(step.view, key, &run)? else {
            return Ok(true);
        };
        let attempts = self.attempts(step, first, run.last(first))?;
        for message in payload.messages().skip(ahead.at as usize) {
            if !serving.batch.has_room() {
                break;
            }
            let id = first.plus(ahead.at);
            let settled = ahead.is_settled(ahead.at);
            ahead.at += 1;
            if settled || self.is_known(id) {
                continue;
            }
            let candidate = Candidate {
                id,
                message,
                attempts: attempts.get(&id).copied().unwrap_or(0),
            };
            self.send_loose(step, serving, &run, candidate);
        }
        self.reader.put_back(ahead);
        Ok(true)
    }

    /// Whether the reader meets a message whose lease an earlier leader has logged.
    fn is_known(&self, id: MessageId) -> bool {
        id <= self.inherited && (self.leases.contains(id) || self.loose.contains(id))
    }

    fn send_loose(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
        run: &Run,
        candidate: Candidate,
    ) {
        let (id, bytes) = (candidate.id, candidate.message.len() as u64);
        if self.loose.is_being_acknowledged(id) && !model::sabotage!("sent-again-during-its-ack") {
            self.loose.wait_for_ack(id, bytes);
        } else if self.is_dead(id, candidate.attempts) {
            self.loose.wait_for_forward(id, bytes);
            self.bury(step, id, run, false, candidate.message, candidate.attempts);
        } else {
            self.send(step, serving, run, None, candidate);
        }
    }
}
