//! What happened, as the leader hears it.

use std::collections::VecDeque;

use engine::Fault;
use engine::command::Outcome;
use engine::dispatch::{Input, PublishRequest, Refused};
use engine::shard;
use futures::{FutureExt, StreamExt};
use model::SessionId;
use store::DiskLevel;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::lease::ASK_AGAIN_AFTER;
use super::{Comparing, End, Proposed, Shell};
use crate::catalogue;
use crate::raft::{Committed, NotCommitted};
use crate::shard::client::PublishError;
use crate::shard::request::{Request, Say};
use crate::shard::waiting::Caller;

/// Requests that are handed to the leader at once: it can then answer them with one entry.
const REQUESTS_AT_ONCE_MAX: usize = 1_024;

impl Shell<'_> {
    /// Waits for something to happen, and takes all else that has happened by then.
    pub(super) async fn hear(&mut self) -> Result<Vec<Input>, End> {
        let mut inputs = Vec::new();
        let mut requests = Vec::new();
        let (mut compared, mut woken, mut fate) = (None, false, None);
        let around = &mut *self.around;
        let lapsed = self.lease.lapsed.is_some();
        let rests = *self.rest.borrow() > 0 || lapsed;
        let calls = !self.closed && !self.leader.is_full() && !rests;
        tokio::select! {
            biased;
            // What is rare comes first, so that what never ends does not starve it.
            Some((forward, result)) = self.dispatched.next() => {
                inputs.push(Input::Forwarded { forward, result });
            }
            Some((question, reply)) = self.questions.next() => {
                inputs.push(Input::RegistryAnswered { question, reply });
            }
            Some(()) = self.tellings.next() => {}
            Some(comparing) = self.comparing.next() => compared = Some(comparing),
            Ok(()) = around.lives.changed() => woken = true,
            Ok(room) = around.forwards.reserve(), if !self.letters.is_empty() => {
                room.send(self.letters.pop_front().expect("it was not empty"));
            }
            () = around.stopping.begun(), if !around.requests.is_closed() => {
                around.requests.close();
            }
            known = oldest(&mut self.proposed) => fate = Some(known),
            Ok(()) = self.rest.changed() => {}
            () = std::future::ready(()), if calls && !around.held.is_empty() => {}
            count = around.requests.recv_many(&mut requests, REQUESTS_AT_ONCE_MAX), if calls => {
                self.closed = count == 0;
            }
            () = &mut self.alarm, if self.alarmed && !rests => {}
            () = sleep(ASK_AGAIN_AFTER), if lapsed => {}
        }
        if let Some(fate) = fate {
            inputs.extend(self.decided(fate).await?);
        }
        if let Some(compared) = compared {
            inputs.extend(self.compared(compared)?);
        }
        if woken {
            inputs.extend(self.ended_with_their_process());
        }
        self.gather(&mut inputs, requests).await?;
        Ok(inputs)
    }

    /// Which sessions can't be there any more, since their node is in a later life.
    pub(super) fn ended_with_their_process(&mut self) -> Vec<Input> {
        let lives = self.around.lives.borrow_and_update();
        let ended = lives.iter().map(|(node, life)| Input::SessionsEnded {
            node: *node,
            before: life.0,
        });
        ended.collect()
    }

    /// A copy waits for the catalogue: once that is current here, whatever the shard lacks of it
    /// is proposed, and the copy waits for the last of that.
    fn compared(&mut self, comparing: Comparing) -> Result<Vec<Input>, Fault> {
        match comparing {
            Comparing::Read(_, false) => Ok(Vec::new()),
            Comparing::Read(copy, true) => {
                let (answer, answered) = oneshot::channel();
                let logged = answered.map(move |_| Comparing::Logged(copy));
                self.comparing.push(logged.boxed());
                self.compare(answer)
            }
            Comparing::Logged(copy) => Ok(vec![Input::CatalogueCompared { copy }]),
        }
    }

    /// Adds what has happened besides.
    async fn gather(&mut self, inputs: &mut Vec<Input>, requests: Vec<Request>) -> Result<(), End> {
        // They wait there also when the leadership ends meanwhile.
        self.around.held.extend(requests);
        while let Some(oldest) = self.proposed.front_mut()
            && let Some(fate) = (&mut oldest.pending).now_or_never()
        {
            inputs.extend(self.decided(fate).await?);
        }
        if self.should_rest() || !self.holds_lease().await? {
            return Ok(());
        }
        let held = self.around.held.len().min(REQUESTS_AT_ONCE_MAX);
        let mut requests: Vec<Request> = self.around.held.drain(..held).collect();
        while requests.len() < REQUESTS_AT_ONCE_MAX
            && !self.leader.is_full()
            && let Ok(request) = self.around.requests.try_recv()
        {
            requests.push(request);
        }
        for request in requests {
            match request {
                Request::CompareCatalogue { answer } => inputs.extend(self.compare(answer)?),
                request => inputs.extend(self.input(request)),
            }
        }
        // Time passes also where something always happens.
        if self.alarmed && self.alarm.deadline() <= Instant::now() {
            self.alarmed = false;
            inputs.push(Input::Tick);
        }
        Ok(())
    }

    /// The oldest entry has met its fate. One that was not applied ends the leadership, since what
    /// was decided after it may rest on it; unless this leader may only not write for a moment.
    async fn decided(
        &mut self,
        fate: Result<Committed, NotCommitted>,
    ) -> Result<Option<Input>, End> {
        match fate {
            Ok(committed) => {
                let oldest = self.proposed.pop_front().expect("it was the oldest");
                (self.unheard, self.refused) = (true, None);
                let outcomes = committed.outcomes.into_iter().map(of_shard).collect();
                let proposal = oldest.proposal;
                Ok(Some(Input::Applied { proposal, outcomes }))
            }
            Err(NotCommitted { unknown: false }) => {
                let oldest = self.proposed.front_mut().expect("it was the oldest");
                oldest.refused = true;
                self.propose_again().await?;
                Ok(None)
            }
            Err(NotCommitted { unknown: true }) => {
                self.unheard = true;
                Err(End::NotCommitted)
            }
        }
    }

    /// What the catalogue has and the shard lacks, as the leader hears it. The caller is answered
    /// with the last of it, since a log has one order.
    fn compare(&mut self, answer: oneshot::Sender<()>) -> Result<Vec<Input>, Fault> {
        let mut missing = catalogue::missing(&self.around.catalogue, self.around.core.view())?;
        let Some(last) = missing.pop() else {
            let _ = answer.send(());
            return Ok(Vec::new());
        };
        let mut inputs: Vec<Input> = missing.into_iter().map(|one| self.unasked(one)).collect();
        let request = self.callers.add(Caller::Catalogue(answer));
        inputs.push(Input::Catalogue {
            request,
            command: last,
        });
        Ok(inputs)
    }

    /// A change of the catalogue that nobody waits for.
    pub(super) fn unasked(&mut self, command: shard::Command) -> Input {
        let request = self.callers.add(Caller::Nobody);
        Input::Catalogue { request, command }
    }

    /// The request, unless it is answered without the leader.
    fn admitted(&self, request: Request) -> Option<Request> {
        match request {
            // Nobody waits for it any more. Its caller may be about to try again.
            Request::Publish { answer, .. } if answer.is_closed() => None,
            // What this node knows of topics and subscriptions may be out of date.
            request if request.needs_catalogue() && !self.around.lease.lasts() => {
                request.refuse(self.around.shard);
                None
            }
            // Acks and deletes are still taken: they are what makes room.
            Request::Publish { answer, .. }
                if self.around.store.disk_level() > DiskLevel::Normal
                    && !model::sabotage!("full-disk-takes-publishes") =>
            {
                answer.send(Err(PublishError::Refused(Refused::DiskFull)));
                None
            }
            request => Some(request),
        }
    }

    /// The request as the leader hears it; `None` for one that needs no leader.
    fn input(&mut self, request: Request) -> Option<Input> {
        Some(match self.admitted(request)? {
            Request::Publish {
                topic,
                strand,
                keyed,
                payload,
                deadline,
                answer,
            } => Input::Publish(PublishRequest {
                request: self.callers.add(Caller::Publish(answer)),
                topic,
                strand,
                keyed,
                payload,
                deadline: Some(self.around.clock.moment(deadline)),
            }),
            Request::Acknowledge {
                subscription,
                ids,
                answer,
            } => Input::Acknowledge {
                request: self.callers.add(Caller::Acknowledge(answer)),
                ids,
                subscription,
            },
            Request::ModifyDeadline {
                subscription,
                ids,
                answer,
            } => Input::ModifyDeadline {
                request: self.callers.add(Caller::ModifyDeadline(answer)),
                subscription,
                ids,
            },
            Request::MoveKey { key, to, answer } => {
                let request = self.callers.add(Caller::MoveKey(answer));
                Input::MoveKey { request, key, to }
            }
            Request::Tell { message, answer } => {
                answer.send(Ok(()));
                Input::Told(message)
            }
            Request::CompareCatalogue { .. } => unreachable!("it becomes any number of inputs"),
            Request::Catalogue { command, answer } => {
                let request = self.callers.add(Caller::Catalogue(answer));
                Input::Catalogue { request, command }
            }
            Request::OpenSession { open, events } => {
                self.sessions.open(&open, events);
                Input::OpenSession(open)
            }
            Request::Session { session, say } => self.said(session, say),
            Request::LoseSession { session, returned } => self.sessions.lost(session, returned),
        })
    }

    /// What an open session says, as the leader hears it.
    fn said(&mut self, session: SessionId, say: Say) -> Input {
        match say {
            Say::Grant { credit } => Input::Grant { session, credit },
            Say::Deadline { ack_deadline } => Input::SessionDeadline {
                session,
                ack_deadline,
            },
            Say::Close { returned } => {
                self.sessions.close(session);
                Input::CloseSession { session, returned }
            }
        }
    }
}

/// The fate of the oldest entry, once it is known.
async fn oldest(proposed: &mut VecDeque<Proposed>) -> Result<Committed, NotCommitted> {
    match proposed.front_mut() {
        Some(oldest) => (&mut oldest.pending).await,
        None => std::future::pending().await,
    }
}

fn of_shard(outcome: Outcome) -> shard::Outcome {
    match outcome {
        Outcome::Shard(outcome) => outcome,
        Outcome::Control(_) | Outcome::Registry(_) => {
            unreachable!("only commands of a shard are proposed here")
        }
    }
}
