//! The called end of links: the service, and one task for each link.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::dispatch::{Ended, Refused};
use model::limits::LINK_SILENCE_MAX;
use model::run::RunPayload;
use model::{AckId, SessionId, ShardNumber};
use proto::cluster::LinkFrame;
use proto::cluster::forward_server::Forward;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request as Called, Response, Status, Streaming};
use tracing::info;

use super::frame::{Frame, beats, frames};
use super::present::{Held, Newer, Present};
use super::wire::{Ask, Call, CallId, Malformed, NEWEST, Reply, Returned};
use crate::shard::PublishError;
use crate::shard::answer::{Answer, LinkAnswer};
use crate::shard::local::LocalShard;
use crate::shard::request::{Request, Say};
use crate::shard::session::{SessionChange, SessionEvent, unseen};
use crate::shard::shards::Shards;

/// Answers and events that are taken up at once.
const REPLIES_AT_ONCE_MAX: usize = 1_024;
/// How long a link may take to say who calls, and for an older one to end.
const HELLO_MAX: Duration = Duration::from_secs(2);

/// The service that other nodes call.
pub(in crate::shard) struct Callee {
    shards: Shards,
    present: Present,
}

/// One link.
struct Link {
    shards: Shards,
    began: Instant,
    /// Calls that are not answered: whether each was cancelled.
    calls: BTreeMap<CallId, Arc<AtomicBool>>,
    /// Sessions that are open here.
    sessions: BTreeSet<(ShardNumber, SessionId)>,
    replies: mpsc::UnboundedSender<Reply>,
    events: mpsc::UnboundedSender<SessionEvent>,
    /// What waits for room in the transport.
    said: VecDeque<Reply>,
}

/// What the link's shards say.
struct Heard {
    replies: mpsc::UnboundedReceiver<Reply>,
    /// Bounded by the credit of sessions.
    events: mpsc::UnboundedReceiver<SessionEvent>,
}

impl Callee {
    pub(in crate::shard) fn new(shards: Shards) -> Self {
        Callee {
            shards,
            present: Present::default(),
        }
    }
}

#[tonic::async_trait]
impl Forward for Callee {
    type LinkStream = ReceiverStream<Result<LinkFrame, Status>>;

    async fn link(
        &self,
        called: Called<Streaming<LinkFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let mut inbound = called.into_inner();
        let held = timeout(HELLO_MAX, self.hello(&mut inbound)).await;
        let held = held.map_err(|_| Status::deadline_exceeded("nobody said who calls"))??;
        let (outbound, sending) = frames();
        tokio::spawn(work(self.shards.clone(), inbound, outbound, held));
        Ok(Response::new(ReceiverStream::new(sending)))
    }
}

impl Callee {
    /// Hears who calls, and takes the place of its older link.
    async fn hello(&self, inbound: &mut Streaming<LinkFrame>) -> Result<Held, Status> {
        let first = inbound.message().await?;
        let calls = first.map(decode).transpose()?.unwrap_or_default();
        let &[(Call::Hello { node, number }, _)] = &calls[..] else {
            return Err(Status::invalid_argument("a link must say first who calls"));
        };
        info!(%node, number, "link begins");
        let held = self.present.take(node, number).await;
        held.map_err(|Newer { number }| {
            let mut refused = Status::aborted("there is a newer link of this node");
            refused.metadata_mut().insert(NEWEST, number.into());
            refused
        })
    }
}

fn decode(frame: LinkFrame) -> Result<Vec<(Call, RunPayload)>, Status> {
    let calls: Result<_, Malformed> = frame.parts.into_iter().map(Call::decode).collect();
    calls.map_err(|malformed| Status::invalid_argument(malformed.to_string()))
}

/// Works until the link breaks, and then its sessions are lost: nobody knows whether the other node
/// still has them. Publishes that were not proposed by then find nobody who waits for them.
async fn work(
    shards: Shards,
    inbound: Streaming<LinkFrame>,
    outbound: mpsc::Sender<Result<LinkFrame, Status>>,
    mut held: Held,
) {
    let (replies, answered) = mpsc::unbounded_channel();
    let (events, happened) = mpsc::unbounded_channel();
    let mut link = Link {
        shards,
        began: Instant::now(),
        calls: BTreeMap::new(),
        sessions: BTreeSet::new(),
        replies,
        events,
        said: VecDeque::new(),
    };
    let mut heard = Heard {
        replies: answered,
        events: happened,
    };
    let broken = link.serve(inbound, &outbound, &mut heard, &mut held).await;
    info!(?broken, "link ends");
    if let Some(status) = broken {
        let _ = outbound.try_send(Err(status));
    }
    link.end(heard).await;
    drop(held);
}

impl Link {
    /// Serves until the link breaks, and says why, if the other end should know.
    async fn serve(
        &mut self,
        mut inbound: Streaming<LinkFrame>,
        outbound: &mpsc::Sender<Result<LinkFrame, Status>>,
        heard: &mut Heard,
        held: &mut Held,
    ) -> Option<Status> {
        let mut beats = beats();
        let mut last = Instant::now();
        let (mut replies, mut events) = (Vec::new(), Vec::new());
        loop {
            let idle = self.said.is_empty();
            tokio::select! {
                biased;
                () = held.lost() => return Some(Status::aborted("a newer link took over")),
                _ = beats.tick() => {
                    let elapsed = self.began.elapsed();
                    self.said.push_back(Reply::Beat { elapsed });
                }
                room = outbound.reserve(), if !idle => match room {
                    Ok(room) => room.send(Ok(self.frame())),
                    Err(_) => return None,
                },
                _ = heard.replies.recv_many(&mut replies, REPLIES_AT_ONCE_MAX), if idle => {
                    self.answered(&mut replies);
                }
                _ = heard.events.recv_many(&mut events, REPLIES_AT_ONCE_MAX), if idle => {
                    self.happened(&mut events);
                }
                frame = inbound.message() => {
                    last = Instant::now();
                    match frame.map(|frame| frame.map(decode)) {
                        Ok(Some(Ok(calls))) => self.hear(calls).await,
                        Ok(Some(Err(malformed))) => return Some(malformed),
                        Ok(None) | Err(_) => return None,
                    }
                }
                () = sleep_until(last + LINK_SILENCE_MAX) => {
                    return Some(Status::deadline_exceeded("nothing was heard for too long"));
                }
            }
        }
    }

    /// Takes what is to be said, as much as one frame holds.
    fn frame(&mut self) -> LinkFrame {
        let mut frame = Frame::default();
        while !frame.is_full()
            && let Some(reply) = self.said.pop_front()
        {
            frame.push(reply.encode());
        }
        frame.finish()
    }

    async fn hear(&mut self, calls: Vec<(Call, RunPayload)>) {
        for (call, payload) in calls {
            if let Some((shard, request)) = self.asked(call, payload) {
                self.hand_over(shard, request).await;
            }
        }
    }

    /// The request that a call stands for; `None` where it is about the link.
    fn asked(&mut self, call: Call, payload: RunPayload) -> Option<(ShardNumber, Request)> {
        Some(match call {
            // A second greeting says nothing new.
            Call::Hello { .. } | Call::Beat => return None,
            Call::Cancel { call } => {
                if let Some(cancelled) = self.calls.remove(&call) {
                    cancelled.store(true, Ordering::Relaxed);
                }
                return None;
            }
            Call::Ask { call, shard, ask } => {
                let answer = self.answer(call, shard);
                (shard, self.request(ask, payload, answer))
            }
            Call::OpenSession { shard, open } => {
                self.sessions.insert((shard, open.session));
                let events = self.events.clone();
                (shard, Request::OpenSession { open, events })
            }
            Call::Session {
                shard,
                session,
                say,
            } => {
                if matches!(say, Say::Close { .. }) {
                    self.sessions.remove(&(shard, session));
                }
                (shard, Request::Session { session, say })
            }
        })
    }

    fn request(&self, ask: Ask, payload: RunPayload, answer: LinkAnswer) -> Request {
        match ask {
            Ask::Publish {
                topic,
                strand,
                keyed,
                deadline,
            } => Request::Publish {
                topic,
                strand,
                keyed,
                payload,
                // No honest caller waits for so long that it can't be told.
                deadline: self.began.checked_add(deadline).unwrap_or(self.began),
                answer: Answer::link(answer),
            },
            Ask::Acknowledge { subscription, ids } => Request::Acknowledge {
                subscription,
                ids,
                answer: Answer::link(answer),
            },
            Ask::ModifyDeadline { subscription, ids } => Request::ModifyDeadline {
                subscription,
                ids,
                answer: Answer::link(answer),
            },
            Ask::Tell { message } => Request::Tell {
                message,
                answer: Answer::link(answer),
            },
            Ask::MoveKey { key, to } => Request::MoveKey {
                key,
                to,
                answer: Answer::link(answer),
            },
        }
    }

    /// Where a call's answer goes.
    fn answer(&mut self, call: CallId, shard: ShardNumber) -> LinkAnswer {
        let cancelled = Arc::new(AtomicBool::new(false));
        self.calls.insert(call, cancelled.clone());
        LinkAnswer {
            call,
            shard,
            replies: self.replies.clone(),
            cancelled,
        }
    }

    /// Hands a request to the shard's task, if this node leads the shard or is about to.
    async fn hand_over(&self, shard: ShardNumber, request: Request) {
        let local = self.shards.local(shard).filter(LocalShard::takes_calls);
        let Some(local) = local else {
            return request.refuse(shard);
        };
        if matches!(
            request,
            Request::OpenSession { .. } | Request::Session { .. }
        ) {
            // Nobody would say it again.
            if let Err(mpsc::error::SendError(request)) = local.requests().send(request).await {
                request.refuse(shard);
            }
            return;
        }
        // Calls to other shards must not wait for this one.
        match local.requests().try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Full(Request::Publish { answer, .. })) => {
                answer.send(Err(PublishError::Refused(Refused::Overloaded)));
            }
            Err(TrySendError::Full(request) | TrySendError::Closed(request)) => {
                request.refuse(shard);
            }
        }
    }

    /// Calls are answered; where this node does not lead, the caller also hears who does.
    fn answered(&mut self, replies: &mut Vec<Reply>) {
        for reply in replies.drain(..) {
            if let Reply::Answer { call, shard, what } = &reply {
                self.calls.remove(call);
                if *what == Returned::NotLeading {
                    self.said.push_back(self.leader_of(*shard));
                }
            }
            self.said.push_back(reply);
        }
    }

    fn happened(&mut self, events: &mut Vec<SessionEvent>) {
        for event in events.drain(..) {
            if let SessionChange::Ended { why } = event.what {
                self.sessions.remove(&(event.shard, event.session));
                if why == Ended::Reopen {
                    self.said.push_back(self.leader_of(event.shard));
                }
            }
            self.said.push_back(Reply::Event(event));
        }
    }

    fn leader_of(&self, shard: ShardNumber) -> Reply {
        let leader = self.shards.leader_known_here(shard);
        Reply::Leader { shard, leader }
    }

    /// Gives the sessions up, and returns what was not sent.
    async fn end(self, mut heard: Heard) {
        heard.events.close();
        let mut returned: BTreeMap<(ShardNumber, SessionId), Vec<AckId>> = self
            .sessions
            .into_iter()
            .map(|key| (key, Vec::new()))
            .collect();
        let said = self.said.into_iter().filter_map(|reply| match reply {
            Reply::Event(event) => Some(event),
            _ => None,
        });
        let unsent = said.chain(std::iter::from_fn(|| heard.events.try_recv().ok()));
        for event in unsent {
            if let Some(returned) = returned.get_mut(&(event.shard, event.session)) {
                returned.extend(unseen(event.what));
            }
        }
        for ((shard, session), returned) in returned {
            if let Some(local) = self.shards.local(shard) {
                let lost = Request::LoseSession { session, returned };
                // A task that is gone has ended its sessions.
                let _ = local.requests().send(lost).await;
            }
        }
    }
}
