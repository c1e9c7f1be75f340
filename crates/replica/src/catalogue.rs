//! The catalogue and the shards: a change is answered when every shard's leader has logged it.
//!
//! One task on the node proposes all changes, so that what follows from them reaches each shard
//! in the order of the control group's log: an Attach never overtakes the Detach that came after
//! it. A shard without a leader is left out: its next leader compares its rows with the catalogue
//! before it serves ([`missing`]).

mod missing;

use std::collections::VecDeque;

use engine::command::{Command, Outcome, Proposal};
use engine::control;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use model::limits::PROPOSAL_REQUESTS_MAX;
use tokio::sync::{mpsc, oneshot};

use crate::Unavailable;
use crate::clock::Clock;
use crate::raft::{Committed, Core, NotCommitted, Pending, Stopped};
use crate::shard::{CatalogueLogged, Shards};
use crate::stopping::Stopping;

pub(crate) use missing::missing;

/// Changes that wait to be proposed; beyond, their callers wait.
const CHANGES_WAITING_MAX: usize = 1_024;

/// A change that someone wants, and where its answer goes.
pub(crate) struct Change {
    pub(crate) command: control::Command,
    pub(crate) answer: ChangeAnswer,
}

type ChangeAnswer = oneshot::Sender<Result<control::Reply, Unavailable>>;

/// The task's state.
struct Catalogue {
    control: Core,
    clock: Clock,
    shards: Shards,
    /// Entries that are proposed, in order, and whose they are.
    proposed: VecDeque<(Vec<ChangeAnswer>, Pending)>,
}

/// Where changes go, and the task that carries them out until the node shuts down.
pub(crate) fn catalogue(
    control: Core,
    clock: Clock,
    shards: Shards,
    stopping: Stopping,
) -> (
    mpsc::Sender<Change>,
    impl Future<Output = Result<(), Stopped>> + Send,
) {
    let (sender, changes) = mpsc::channel(CHANGES_WAITING_MAX);
    let catalogue = Catalogue {
        control,
        clock,
        shards,
        proposed: VecDeque::new(),
    };
    (sender, catalogue.work(changes, stopping))
}

impl Catalogue {
    async fn work(
        mut self,
        mut changes: mpsc::Receiver<Change>,
        mut stopping: Stopping,
    ) -> Result<(), Stopped> {
        let mut logging = FuturesUnordered::new();
        let mut received = Vec::new();
        let mut closed = false;
        while !(closed && self.proposed.is_empty() && logging.is_empty()) {
            tokio::select! {
                biased;
                () = stopping.begun(), if !changes.is_closed() => {
                    changes.close();
                }
                (answers, fate) = self.applied() => match fate {
                    Ok(outcomes) => {
                        for (answer, outcome) in answers.into_iter().zip(outcomes) {
                            logging.push(self.log(answer, of_control(outcome)).await);
                        }
                    }
                    Err(NotCommitted { unknown }) => refuse(answers, Unavailable { unknown }),
                },
                Some(()) = logging.next() => {}
                count = changes.recv_many(&mut received, PROPOSAL_REQUESTS_MAX), if !closed => {
                    closed = count == 0;
                    self.propose(&mut received).await;
                }
            }
        }
        Ok(())
    }

    async fn propose(&mut self, changes: &mut Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let (commands, answers) = changes
            .drain(..)
            .map(|change| (Command::Control(change.command), change.answer))
            .unzip();
        let at = self.clock.wall();
        let pending = self.control.propose(None, Proposal { at, commands }).await;
        self.proposed.push_back((answers, pending));
    }

    /// The fate of the oldest entry, once it is known.
    async fn applied(&mut self) -> (Vec<ChangeAnswer>, Result<Committed, NotCommitted>) {
        let Some((_, pending)) = self.proposed.front_mut() else {
            return std::future::pending().await;
        };
        let fate = pending.await;
        let (answers, _) = self.proposed.pop_front().expect("it was the front");
        (answers, fate)
    }

    /// Hands what follows from a change to every shard, and answers when all have logged it.
    async fn log(
        &self,
        answer: ChangeAnswer,
        outcome: control::Outcome,
    ) -> impl Future<Output = ()> + use<> {
        let mut logged: Vec<CatalogueLogged> = Vec::new();
        for effect in outcome.effects {
            for shard in self.shards.hosted() {
                logged.push(shard.log_catalogue(effect.clone()).await);
            }
        }
        async move {
            for shard in logged {
                if let Err(unavailable) = shard.wait().await {
                    let _ = answer.send(Err(unavailable));
                    return;
                }
            }
            // A caller that has gone away has its change nevertheless.
            let _ = answer.send(Ok(outcome.reply));
        }
    }
}

fn refuse(answers: Vec<ChangeAnswer>, unavailable: Unavailable) {
    for answer in answers {
        let _ = answer.send(Err(unavailable));
    }
}

fn of_control(outcome: Outcome) -> control::Outcome {
    match outcome {
        Outcome::Control(outcome) => outcome,
        Outcome::Shard(_) | Outcome::Registry(_) => {
            unreachable!("only commands of the control group are proposed here")
        }
    }
}
