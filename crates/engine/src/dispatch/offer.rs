//! Offers: telling sessions that there is something for them, without flooding them all for the
//! sake of one message.

use std::time::Duration;

use model::{SessionId, Timestamp};

use super::dispatcher::Dispatcher;
use super::flow::RESPONSE;
use super::session::Flow;
use super::step::Step;
use super::{Credit, Output};

/// A session that leaves an offer open for longer seems to have no credit, and others are asked.
/// Longer than the round trip between regions, and well below the second within which a
/// deliverable message must go out.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

impl Dispatcher {
    /// Offers to sessions without an open offer what waits for them, and what waits for anybody as
    /// far as nobody else is just about to take it. A session that has little credit does not keep
    /// the rest from the others.
    pub(super) fn offer(&mut self, step: &mut Step<'_>) {
        // The outcome of what is being settled comes back here.
        if self.outbox.settles_enough() {
            return;
        }
        let mut shared = self.shared();
        if shared.messages == 0 && self.ready.len() == 0 {
            return;
        }
        shared.messages = shared.messages.saturating_sub(self.spoken_for());
        for id in self.sessions.idle_in_turn() {
            let own = self.ready.waiting(Some(id));
            let mut waiting = own;
            if shared.messages > 0 {
                waiting.add(shared);
            }
            if waiting.messages == 0 {
                continue;
            }
            let waiting = waiting.at_most(RESPONSE);
            let taken = waiting.messages.min(self.sessions.appetite(id));
            let taken = taken.saturating_sub(own.messages);
            shared.messages -= taken.min(shared.messages);
            self.sessions.offered(id, step.now, waiting.messages, taken);
            step.out.push(Output::Offer {
                session: id,
                waiting: Credit {
                    bytes: waiting.bytes.max(1),
                    ..waiting
                },
            });
        }
    }

    /// Notes how much of its offer a session takes.
    pub(super) fn answered(&mut self, session: SessionId, credit: Credit) {
        if let Some(session) = self.sessions.get_mut(session)
            && let Flow::Offered { messages, .. } = session.flow
        {
            let took_all = credit.messages >= messages;
            session.appetite = if took_all {
                RESPONSE.messages
            } else {
                credit.messages
            };
        }
    }

    /// Notes which sessions don't answer: what waits for them can go elsewhere.
    pub(super) fn starve(&mut self, now: Timestamp) {
        let mut starved = Vec::new();
        for (id, session) in self.sessions.iter_mut() {
            if let Flow::Offered { since, .. } = session.flow
                && !session.starved
                && since.plus(PATIENCE) <= now
            {
                session.starved = true;
                starved.push(id);
            }
        }
        for session in starved {
            self.replace_lanes_of(session);
        }
    }

    /// A session has answered. What waits for those that don't is for it to take.
    pub(super) fn end_starvation(&mut self, session: SessionId) {
        let Some(answered) = self.sessions.get_mut(session) else {
            return;
        };
        answered.starved = false;
        let starved: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.starved)
            .map(|(id, _)| id)
            .collect();
        for session in starved {
            self.replace_lanes_of(session);
        }
    }

    /// When the next session will seem to have no credit.
    pub(super) fn next_starved(&self) -> Option<Timestamp> {
        let patience_ends = self.sessions.iter().filter_map(|(_, session)| {
            let Flow::Offered { since, .. } = session.flow else {
                return None;
            };
            (!session.starved).then(|| since.plus(PATIENCE))
        });
        patience_ends.min()
    }

    /// About what waits for whoever asks first.
    pub(super) fn shared(&self) -> Credit {
        let mut shared = self.ready.waiting(None);
        shared.add(self.loose.ready());
        shared.add(self.reader.waiting());
        shared
    }

    /// How many of the shared messages sessions are about to take.
    fn spoken_for(&self) -> u32 {
        let of_session = |session: &super::session::Session| match session.flow {
            Flow::Offered { shared, .. } if !session.starved => shared,
            _ => 0,
        };
        let offers = self.sessions.iter().map(|(_, session)| of_session(session));
        offers.fold(0, u32::saturating_add)
    }

    fn replace_lanes_of(&mut self, session: SessionId) {
        for strand in self.ready.lanes(Some(session)) {
            self.refresh(strand);
        }
    }
}
