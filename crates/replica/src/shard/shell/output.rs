//! What the leader decided, as it is carried out.

use engine::command::{Command, Proposal};
use engine::dispatch::{AckReply, Output, ProposalId, PublishReply};
use engine::shard;
use futures::FutureExt;
use model::Timestamp;
use tokio::sync::oneshot;

use super::Shell;
use crate::shard::forward::{Dispatched, ForwardRequest};
use crate::shard::session::SessionChange;

impl Shell<'_> {
    pub(super) async fn carry_out(&mut self, output: Output) {
        match output {
            Output::Propose { proposal, commands } => self.propose(proposal, commands).await,
            Output::AskRegistry {
                question,
                registry,
                command,
            } => {
                let asked = self.around.registry.ask(registry, command);
                let answered = asked.map(move |reply| (question, reply));
                self.questions.push(answered.boxed());
            }
            Output::Published { request, reply } => self.callers.published(request, reply),
            Output::Acknowledged { request, replies } => {
                self.callers.acknowledged(request, replies);
            }
            Output::Modified { request, replies } => self.callers.modified(request, replies),
            Output::CatalogueLogged { request } => self.callers.logged(request),
            Output::Offer { session, waiting } => {
                let what = SessionChange::Offer { waiting };
                self.sessions.tell(session, what);
            }
            Output::Deliver {
                session,
                deliveries,
                granted,
            } => {
                let what = SessionChange::Deliver {
                    deliveries,
                    granted,
                };
                self.sessions.tell(session, what);
            }
            Output::Release { session, credit } => {
                let what = SessionChange::Release { credit };
                self.sessions.tell(session, what);
            }
            Output::Properties {
                session,
                exactly_once,
                ordered,
            } => {
                let what = SessionChange::Properties {
                    exactly_once,
                    ordered,
                };
                self.sessions.tell(session, what);
            }
            Output::Ended { session, why } => {
                let what = SessionChange::Ended { why };
                self.sessions.tell(session, what);
            }
            Output::Forward {
                forward,
                topic,
                message,
                ordering_key,
            } => {
                let (answer, answered) = oneshot::channel();
                self.dispatched.push(Dispatched::new(forward, answered));
                self.letters.push_back(ForwardRequest {
                    topic,
                    message,
                    ordering_key,
                    answer,
                });
            }
            Output::WakeAt(moment) => self.wake_at(moment),
        }
    }

    /// For those who watch the node.
    pub(super) fn count(&self, output: &Output) {
        let counts = &self.around.counts;
        match output {
            Output::Published {
                reply: PublishReply::Stored { .. },
                ..
            } => counts.published(),
            Output::Acknowledged { replies, .. } => {
                let done = |reply: &&AckReply| **reply == AckReply::Acknowledged;
                counts.acknowledged(replies.iter().filter(done).count());
            }
            Output::Deliver { deliveries, .. } => counts.delivered(deliveries.len()),
            _ => {}
        }
    }

    async fn propose(&mut self, proposal: ProposalId, commands: Vec<shard::Command>) {
        let entry = Proposal {
            at: self.around.clock.wall(),
            commands: commands.into_iter().map(Command::Shard).collect(),
        };
        let term = self.leading.term;
        let pending = self.around.core.propose(Some(term), entry).await;
        self.proposed.push_back((proposal, pending));
    }

    fn wake_at(&mut self, moment: Timestamp) {
        let instant = self.around.clock.instant(moment);
        self.alarm.as_mut().reset(instant);
        self.alarmed = true;
    }
}
