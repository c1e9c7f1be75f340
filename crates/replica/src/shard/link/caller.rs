//! The calling end of a link: one task, which sends what waits and hands on what is heard.
//!
//! What comes in is always read at once: answers go to callers that wait for them, and events to
//! sessions, whose volume is bounded by the credit that they gave.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::limits::{LINK_FRAME_BYTES_MAX, LINK_SILENCE_MAX};
use model::{AckId, NodeId, SessionId, ShardNumber};
use proto::cluster::LinkFrame;
use proto::cluster::forward_client::ForwardClient;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use tracing::{debug, info};

use super::frame::{Frame, beats, frames};
use super::links::{Source, State, Waiting};
use super::pending::Pending;
use super::said::Said;
use super::wire::{Call, CallId, Malformed, NEWEST, Reply};
use crate::peer::PeerChannel;
use crate::shard::request::{Request, Say};
use crate::shard::session::SessionEvent;
use crate::shard::way::Hints;

/// How long a node may take until its first sign of life.
const DIAL_MAX: Duration = Duration::from_secs(2);
/// Calls that are taken up at once.
const CALLS_AT_ONCE_MAX: usize = 1_024;

/// Who calls whom.
pub(super) struct Caller {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) number: u64,
    /// The number of the node's next link.
    pub(super) numbers: Arc<AtomicU64>,
    pub(super) hints: Hints,
}

/// Why a link is over.
#[derive(Debug, Error)]
enum Broken {
    /// The other end, or the way to it, failed.
    #[error("{0}")]
    Status(Status),
    #[error("the other end is gone, or says nothing")]
    Silent,
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("nobody on this node needs it any more")]
    Unused,
}

/// A link that is up.
struct Up {
    hints: Hints,
    pending: Pending,
    /// Calls that wait for room in the transport. Nothing of them was sent.
    waiting: VecDeque<Waiting>,
    /// What the callee should hear besides.
    notes: Vec<Call>,
    /// The callee's clock: it showed so much, not later than then.
    clock: (Duration, Instant),
}

impl Caller {
    /// Dials, works until the link breaks, and then tells everyone.
    pub(super) async fn work(self, channel: PeerChannel, mut source: Source) {
        let (outbound, sending) = frames();
        let hello = Call::Hello {
            node: self.from,
            number: self.number,
        };
        let mut frame = Frame::default();
        frame.push(hello.encode(None));
        outbound
            .try_send(frame.finish())
            .expect("a new channel has room");
        let dialled = timeout(DIAL_MAX, dial(channel, sending)).await;
        let (from, to) = (self.from, self.to);
        match dialled.unwrap_or(Err(Broken::Silent)) {
            Ok((inbound, elapsed)) => {
                source.state.send_replace(State::Up);
                info!(%from, %to, "link is up");
                let up = Up {
                    hints: self.hints.clone(),
                    pending: Pending::new(),
                    waiting: VecDeque::new(),
                    notes: Vec::new(),
                    clock: (elapsed, Instant::now()),
                };
                let broken = up.work(inbound, &outbound, &mut source).await;
                info!(%from, %to, %broken, "link is down");
            }
            Err(broken) => {
                debug!(%from, %to, %broken, "link does not come up");
                self.count_on(&broken);
            }
        }
        self.hints.forget(self.to);
        source.state.send_replace(State::Down(Instant::now()));
        source.queue.close();
        while let Ok(waiting) = source.queue.try_recv() {
            waiting.request.refuse(waiting.shard);
        }
    }
}

impl Caller {
    /// Where the other end knows of a newer link, it is one of an earlier process, whose clock was
    /// ahead: there is no other process of this node. The next link must be newer than that one.
    fn count_on(&self, broken: &Broken) {
        let Broken::Status(status) = broken else {
            return;
        };
        let newest = status.metadata().get(NEWEST);
        let newest = newest.and_then(|newest| newest.to_str().ok()?.parse::<u64>().ok());
        if let Some(newest) = newest {
            self.numbers
                .fetch_max(newest.saturating_add(1), Ordering::Relaxed);
        }
    }
}

/// Opens the stream and waits for the first sign of life.
async fn dial(
    channel: PeerChannel,
    sending: mpsc::Receiver<LinkFrame>,
) -> Result<(Streaming<LinkFrame>, Duration), Broken> {
    let mut client = ForwardClient::new(channel)
        .max_decoding_message_size(LINK_FRAME_BYTES_MAX)
        .max_encoding_message_size(LINK_FRAME_BYTES_MAX);
    let linked = client.link(ReceiverStream::new(sending)).await;
    let mut inbound = linked.map_err(Broken::Status)?.into_inner();
    let first = inbound.message().await.map_err(Broken::Status)?;
    let first = first.ok_or(Broken::Silent)?.parts.into_iter().next();
    match first.map(Reply::decode) {
        Some(Ok(Reply::Beat { elapsed })) => Ok((inbound, elapsed)),
        Some(Err(malformed)) => Err(malformed.into()),
        _ => Err(Broken::Silent),
    }
}

impl Up {
    async fn work(
        mut self,
        mut inbound: Streaming<LinkFrame>,
        outbound: &mpsc::Sender<LinkFrame>,
        source: &mut Source,
    ) -> Broken {
        let mut heard = Instant::now();
        let mut beats = beats();
        let mut calls = Vec::new();
        let broken = loop {
            tokio::select! {
                biased;
                frame = inbound.message() => {
                    heard = Instant::now();
                    if let Err(broken) = self.hear(frame) {
                        break broken;
                    }
                }
                Some(call) = source.cancels.recv() => self.cancel(call),
                _ = beats.tick() => self.notes.push(Call::Beat),
                room = outbound.reserve(), if self.has_something() => match room {
                    Ok(room) => room.send(self.frame()),
                    Err(_) => break Broken::Silent,
                },
                count = source.queue.recv_many(&mut calls, CALLS_AT_ONCE_MAX),
                    if self.waiting.is_empty() =>
                {
                    if count == 0 {
                        break Broken::Unused;
                    }
                    self.waiting.extend(calls.drain(..));
                }
                () = sleep_until(heard + LINK_SILENCE_MAX) => break Broken::Silent,
            }
        };
        // What was not sent was certainly not done.
        for waiting in self.waiting {
            waiting.request.refuse(waiting.shard);
        }
        broken
    }

    fn has_something(&self) -> bool {
        !self.waiting.is_empty() || !self.notes.is_empty()
    }

    /// Takes what waits, as much as one frame holds.
    fn frame(&mut self) -> LinkFrame {
        let mut frame = Frame::default();
        for note in self.notes.drain(..) {
            frame.push(note.encode(None));
        }
        while !frame.is_full()
            && let Some(waiting) = self.waiting.pop_front()
        {
            self.send(waiting, &mut frame);
        }
        frame.finish()
    }

    /// Puts one call into a frame, unless nobody waits for it any more.
    fn send(&mut self, waiting: Waiting, frame: &mut Frame) {
        let (call, shard) = (waiting.call, waiting.shard);
        let goes = match &waiting.request {
            Request::Publish { answer, .. } => !answer.is_closed(),
            Request::OpenSession { open, events } => {
                self.pending.opened(shard, open.session, events.clone());
                true
            }
            Request::Session { session, say } => self.says(shard, *session, say),
            _ => true,
        };
        if goes {
            let said = Said::new(call, shard, waiting.request, |at| self.callees_time(at));
            if let Some(caller) = said.caller {
                self.pending.sent(call, caller, waiting.room);
            }
            frame.push(said.call.encode(said.payload));
        }
    }

    /// Whether the callee still has the session that says something.
    fn says(&mut self, shard: ShardNumber, session: SessionId, say: &Say) -> bool {
        match say {
            Say::Close { .. } => self.pending.closed(shard, session),
            Say::Grant { .. } | Say::Deadline { .. } => self.pending.is_open(shard, session),
        }
    }

    /// A moment on the callee's clock, at the latest.
    fn callees_time(&self, instant: Instant) -> Duration {
        let (elapsed, at) = self.clock;
        elapsed + instant.saturating_duration_since(at)
    }

    fn cancel(&mut self, call: CallId) {
        if self.pending.cancel(call) {
            self.notes.push(Call::Cancel { call });
        }
    }

    fn hear(&mut self, frame: Result<Option<LinkFrame>, Status>) -> Result<(), Broken> {
        let frame = frame.map_err(Broken::Status)?.ok_or(Broken::Silent)?;
        for part in frame.parts {
            match Reply::decode(part)? {
                Reply::Beat { elapsed } => self.clock = (elapsed, Instant::now()),
                Reply::Leader { shard, leader } => self.hints.learn(shard, leader),
                Reply::Answer { call, what, .. } => self.pending.answered(call, what),
                Reply::Event(event) => self.happened(event),
            }
        }
        Ok(())
    }

    fn happened(&mut self, event: SessionEvent) {
        let (shard, session) = (event.shard, event.session);
        if let Some(returned) = self.pending.happened(event) {
            self.close(shard, session, returned);
        }
    }

    fn close(&mut self, shard: ShardNumber, session: SessionId, returned: Vec<AckId>) {
        let say = Say::Close { returned };
        self.notes.push(Call::Session {
            shard,
            session,
            say,
        });
    }
}
