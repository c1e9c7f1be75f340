//! Sessions that come and go.

use model::limits::ENDED_SESSION_RELEASE;
use model::{AckId, ClientId, SessionId};

use super::dispatcher::Dispatcher;
use super::flow::RESPONSE;
use super::lane::Holder;
use super::session::{Flow, Session, SessionEnd};
use super::step::Step;
use super::{Credit, Ended, OpenSession, Output, SessionKind};
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
            client: open.client.clone(),
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
            self.forget_session(step, predecessor, SessionEnd::Closed);
            step.out.push(Output::Ended {
                session: predecessor,
                why: Ended::TakenOver,
            });
        }
        self.sessions.insert(open.session, session);
        if let Some(client) = &successor.client {
            self.take_over(client, &successor);
        }
        let outstanding = match successor.kind {
            SessionKind::Stream => self.come_back(step, &open),
            SessionKind::Pull => Credit::default(),
        };
        step.out.push(Output::Opened {
            session: open.session,
            outstanding,
        });
        self.tell_properties(step, open.session);
        self.refresh_all();
        predecessor
    }

    /// A session has ended; `returned` never reached its client.
    pub(super) fn end_session(
        &mut self,
        step: &mut Step<'_>,
        session: SessionId,
        end: SessionEnd,
        mut returned: Vec<AckId>,
    ) {
        self.forget_session(step, session, end);
        // The first message of a lane takes the later ones along.
        returned.sort_unstable_by_key(|id| id.message);
        for id in returned {
            self.give_up(step, &id, FailCause::Returned, None);
        }
    }

    /// Processes of frontends have ended: their sessions are over, and so are the streams whose
    /// leases are here from earlier openings or earlier leaders.
    pub(super) fn end_with_process(&mut self, step: &Step<'_>) {
        let sessions = self.sessions.iter().map(|(session, _)| session);
        let ended: Vec<_> = sessions
            .filter(|session| step.ended.contains(*session))
            .collect();
        for session in ended {
            self.forget_session(step, session, SessionEnd::Closed);
        }
        self.leases.doubt(|stream, _| step.ended.release(stream));
        self.refresh_all();
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

    fn forget_session(&mut self, step: &Step<'_>, session: SessionId, end: SessionEnd) {
        let Some(ended) = self.sessions.remove(session) else {
            return;
        };
        if let Flow::Logging { deliveries, .. } = &ended.flow {
            self.orphan(session, deliveries);
        }
        // What a Pull was answered with is the client's until it runs out. A stream breaks at any
        // moment: of what the client never confirmed, nobody knows whether it arrived.
        if ended.kind == SessionKind::Stream && !model::sabotage!("ended-stream-keeps-leases") {
            let (lost, release) = match end {
                SessionEnd::Closed => (false, ENDED_SESSION_RELEASE),
                SessionEnd::Lost(back_within) => (true, back_within),
            };
            let lost = lost && !model::sabotage!("lost-way-ends-leases");
            let release = step.now.plus(release);
            self.leases.doubt(|stream, lease| {
                let kept = lost && lease.logged;
                (stream == ended.first && !kept).then_some(release)
            });
            self.refresh_all();
        }
    }
}
