//! Sessions that open, and streams that open again at another leader.

use engine::dispatch::{Credit, Input, OpenSession, SessionKind};
use model::{ClientId, Generation, NodeId, SessionId};

use super::{ACK_DEADLINE, Bench, Client, SUB, TOPIC};

/// What a frontend knows of a stream, whichever leader it is open at.
#[derive(Clone)]
pub(super) struct Stream {
    first: SessionId,
    client: Option<String>,
    limit: Credit,
    pub(super) received: Option<Generation>,
}

impl Bench {
    pub(crate) fn stream(&mut self, credit: Credit) -> SessionId {
        self.open(SessionKind::Stream, credit, None)
    }

    pub(crate) fn stream_of(&mut self, client: &str, credit: Credit) -> SessionId {
        self.open(SessionKind::Stream, credit, Some(client))
    }

    pub(super) fn open(
        &mut self,
        kind: SessionKind,
        credit: Credit,
        client: Option<&str>,
    ) -> SessionId {
        let session = self.session_id();
        let stream = Stream {
            first: session,
            client: client.map(str::to_owned),
            limit: credit,
            received: None,
        };
        self.open_as(session, kind, stream);
        session
    }

    /// The frontend of a stream opens it again.
    pub(crate) fn come_back(&mut self, stream: SessionId) -> SessionId {
        let session = self.session_id();
        let stream = self.streams[&stream].clone();
        self.open_as(session, SessionKind::Stream, stream);
        session
    }

    /// The process ends that had all sessions so far, and the leader hears of it.
    pub(crate) fn end_process(&mut self) {
        self.clients.clear();
        self.input(Input::SessionsEnded {
            node: NodeId(1),
            before: self.sessions + 1,
        });
    }

    fn session_id(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId {
            node: NodeId(1),
            number: self.sessions,
        }
    }

    fn open_as(&mut self, session: SessionId, kind: SessionKind, stream: Stream) {
        let state = Client {
            initial: stream.limit,
            credit: stream.limit,
            ..Client::default()
        };
        self.clients.insert(session, state);
        self.streams.insert(session, stream.clone());
        self.input(Input::OpenSession(OpenSession {
            session,
            topic: TOPIC,
            subscription: SUB,
            kind,
            ack_deadline: ACK_DEADLINE,
            client: stream.client.map(|client| ClientId(client.into())),
            first: stream.first,
            received: stream.received,
        }));
    }
}
