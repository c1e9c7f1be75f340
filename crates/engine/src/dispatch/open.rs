//! Sessions that come and go.

use model::limits::ENDED_SESSION_RELEASE;
use model::{AckId, ClientId, SessionId};

use super::dispatcher::Dispatcher;
use super::flow::RESPONSE;
use super::lane::Holder;
use super::session::{Flow, Session};
use super::step::Step;
use super::{Ended, OpenSession, Output, SessionKind};
use crate::shard::FailCause;

impl Dispatcher {
    /// A client pulls. Answers the session that this one replaces.
    pub(super) fn open_session(
        &mut self,
        step: &mut Step<'_>,
        open: OpenSession,
    ) -> Option<SessionId> {
        let successor = Holder {
            session: open.session,
            kind: open.kind,
            client: open.client.clone(),
        };
        let session = Session {
            kind: open.kind,
            client: open.client,
            first: open.first,
            ack_deadline: open.ack_deadline,
            flow: Flow::Idle,
            starved: false,
            appetite: RESPONSE.messages,
        };
        let client = successor.client.as_ref();
        let of_client = client.and_then(|client| self.sessions.of_client(client));
        let predecessor = of_client.or_else(|| match successor.kind {
            SessionKind::Stream => self.sessions.of_first(open.first),
            SessionKind::Pull => None,
        });
        if let Some(predecessor) = predecessor {
            self.end_session(step, predecessor);
            step.out.push(Output::Ended {
                session: predecessor,
                why: Ended::TakenOver,
            });
        }
        self.sessions.insert(open.session, session);
        self.tell_properties(step, open.session);
        if let Some(client) = &successor.client {
            self.take_over(client, &successor);
        }
        if successor.kind == SessionKind::Stream {
            self.come_back(step, open.first, open.received);
            self.refresh_all();
        }
        predecessor
    }

    /// A session has ended; `returned` never reached its client.
    pub(super) fn close_session(
        &mut self,
        step: &mut Step<'_>,
        session: SessionId,
        mut returned: Vec<AckId>,
    ) {
        self.end_session(step, session);
        // The first message of a lane takes the later ones along.
        returned.sort_unstable_by_key(|id| id.message);
        for id in returned {
            self.give_up(step, &id, FailCause::Returned, None);
        }
    }

    /// Tells a session how its subscription is.
    pub(super) fn tell_properties(&self, step: &mut Step<'_>, session: SessionId) {
        step.out.push(Output::Properties {
            session,
            exactly_once: self.attachment.settings.exactly_once,
            ordered: self.attachment.settings.ordered,
        });
    }

    /// Keys that the client holds from an earlier stream go on at this one.
    fn take_over(&mut self, client: &ClientId, successor: &Holder) {
        for lane in self.lanes.values_mut() {
            if let Some(holder) = &mut lane.holder
                && holder.client.as_ref() == Some(client)
            {
                *holder = successor.clone();
            }
        }
    }

    fn end_session(&mut self, step: &Step<'_>, session: SessionId) {
        let Some(ended) = self.sessions.remove(session) else {
            return;
        };
        if let Flow::Logging { deliveries, .. } = &ended.flow {
            self.orphan(session, deliveries);
        }
        // What a Pull was answered with is the client's until it runs out. A stream breaks at any
        // moment: of what the client never confirmed, nobody knows whether it arrived.
        if ended.kind == SessionKind::Stream && !model::sabotage!("ended-stream-keeps-leases") {
            let release = step.now.plus(ENDED_SESSION_RELEASE);
            let of_session = self.leases.iter();
            let of_session = of_session.filter(|(_, lease)| lease.is_unconfirmed_of(ended.first));
            let unconfirmed: Vec<_> = of_session.map(|(message, _)| message).collect();
            for message in unconfirmed {
                self.leases.doubt(message, release);
            }
            self.refresh_all();
        }
    }
}
