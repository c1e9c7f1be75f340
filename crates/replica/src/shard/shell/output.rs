//! What the leader decided, as it is carried out.

use std::sync::Arc;
use std::time::Duration;

use engine::command::{Command, Proposal};
use engine::dispatch::{AckReply, Output, ProposalId, PublishReply, QuestionId, TransferMessage};
use engine::table::staged::StagedKey;
use engine::{registry, shard};
use futures::FutureExt;
use model::{RegistryNumber, SessionId, ShardNumber, Timestamp};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::{Comparing, End, Proposed, Shell};
use crate::raft::{NotCommitted, Pending};
use crate::shard::forward::{Dispatched, ForwardRequest};
use crate::shard::session::SessionChange;

/// Things that are being said to other shards at once.
const TELLINGS_MAX: usize = 1_024;
/// How long a leader that may not write goes on trying: far longer than a busy machine is silent,
/// and shorter than callers wait.
const REFUSED_MAX: Duration = Duration::from_secs(2);
/// How long a refusal may take that follows on another one.
const REFUSAL_MAX: Duration = Duration::from_millis(100);
/// The pause before what was refused is proposed again.
const PROPOSE_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// How long one of them may look for the leader that it is for.
const TELLING_MAX: Duration = Duration::from_secs(1);

impl Shell<'_> {
    pub(super) async fn carry_out(&mut self, output: Output) {
        match output {
            Output::Propose { proposal, commands } => self.propose(proposal, commands).await,
            Output::AskRegistry {
                question,
                registry,
                command,
            } => self.ask_registry(question, registry, command),
            Output::Published { request, reply } => self.callers.published(request, reply),
            Output::Acknowledged { request, replies } => {
                self.callers.acknowledged(request, replies);
            }
            Output::Modified { request, replies } => self.callers.modified(request, replies),
            Output::CatalogueLogged { request } => self.callers.logged(request),
            Output::KeyMoved { request, reply } => self.callers.key_moved(request, reply),
            Output::Tell { to, message } => self.tell(to, message),
            Output::CompareCatalogue { copy } => self.compare_catalogue(copy),
            Output::Offer { .. }
            | Output::Deliver { .. }
            | Output::Release { .. }
            | Output::Opened { .. }
            | Output::Properties { .. }
            | Output::Ended { .. } => {
                let (session, what) = of_session(output);
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

    fn ask_registry(
        &mut self,
        question: QuestionId,
        registry: RegistryNumber,
        command: registry::Command,
    ) {
        let asked = self.around.registry.ask(registry, command);
        let answered = asked.map(move |reply| (question, reply));
        self.questions.push(answered.boxed());
    }

    fn compare_catalogue(&mut self, copy: StagedKey) {
        let read = self.around.registry.catalogue_is_current();
        let read = read.map(move |current| Comparing::Read(copy, current));
        self.comparing.push(read.boxed());
    }

    /// Tells another shard's leader something, unless too much is being said already: it will be
    /// said again.
    fn tell(&mut self, to: ShardNumber, message: TransferMessage) {
        if self.tellings.len() < TELLINGS_MAX
            && let Some(shard) = self.around.shards.client(to)
        {
            self.tellings.push(shard.tell(message, TELLING_MAX).boxed());
        }
    }

    async fn propose(&mut self, proposal: ProposalId, commands: Vec<shard::Command>) {
        let entry = Proposal {
            at: self.around.clock.wall(),
            commands: commands.into_iter().map(Command::Shard).collect(),
        };
        let entry = Arc::new(entry);
        let pending = self.say(entry.clone()).await;
        self.proposed.push_back(Proposed {
            proposal,
            entry,
            pending,
            refused: false,
        });
    }

    async fn say(&mut self, entry: Arc<Proposal>) -> Pending {
        let term = self.leading.term;
        self.around.core.propose_shared(Some(term), entry).await
    }

    /// The oldest entry was refused. So are those behind it where this leader has not heard of a
    /// majority for a moment, as on a machine that is busy: then all are proposed again, in the same
    /// order. One that was taken nevertheless may rest on what was refused.
    ///
    /// # Errors
    /// [`End::NotCommitted`] in that case, and when the moment is too long.
    pub(super) async fn propose_again(&mut self) -> Result<(), End> {
        let since = *self.refused.get_or_insert_with(Instant::now);
        if since.elapsed() >= REFUSED_MAX {
            return Err(End::NotCommitted);
        }
        for behind in self.proposed.iter_mut().skip(1) {
            // Refusals come at once, and in the order of the entries.
            let fate = timeout(REFUSAL_MAX, &mut behind.pending).await;
            if !matches!(fate, Ok(Err(NotCommitted { unknown: false }))) {
                self.unheard = true;
                return Err(End::NotCommitted);
            }
            behind.refused = true;
        }
        sleep(PROPOSE_AGAIN_AFTER).await;
        // Where the leadership ends in the midst of it, some may have been taken.
        let unheard = std::mem::replace(&mut self.unheard, true);
        for place in 0..self.proposed.len() {
            let entry = self.proposed[place].entry.clone();
            let pending = self.say(entry).await;
            let proposed = &mut self.proposed[place];
            (proposed.pending, proposed.refused) = (pending, false);
        }
        self.unheard = unheard;
        Ok(())
    }

    fn wake_at(&mut self, moment: Timestamp) {
        let instant = self.around.clock.instant(moment);
        self.alarm.as_mut().reset(instant);
        self.alarmed = true;
    }
}

/// What a session hears.
fn of_session(output: Output) -> (SessionId, SessionChange) {
    match output {
        Output::Opened {
            session,
            outstanding,
        } => (session, SessionChange::Opened { outstanding }),
        Output::Offer { session, waiting } => (session, SessionChange::Offer { waiting }),
        Output::Deliver {
            session,
            deliveries,
            granted,
        } => {
            let what = SessionChange::Deliver {
                deliveries,
                granted,
            };
            (session, what)
        }
        Output::Release { session, credit } => (session, SessionChange::Release { credit }),
        Output::Properties {
            session,
            exactly_once,
            ordered,
        } => {
            let what = SessionChange::Properties {
                exactly_once,
                ordered,
            };
            (session, what)
        }
        Output::Ended { session, why } => (session, SessionChange::Ended { why }),
        other => unreachable!("no session hears {other:?}"),
    }
}
