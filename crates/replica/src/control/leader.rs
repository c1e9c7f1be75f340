//! The control group's leader at work. On every node one task waits for the node to lead the
//! group; until then it refuses, so that callers look elsewhere.

use std::collections::VecDeque;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Outcome, Proposal};
use engine::control::{self, read};
use model::Timestamp;
use model::limits::PROPOSAL_REQUESTS_MAX;
use tokio::sync::mpsc;

use super::client::ControlClient;
use super::grants::{CATALOGUE_LEASE, Grants};
use super::planning::Planning;
use super::request::{Answer, AnswerTo, Call, Renewal, Request, requests};
use crate::Unavailable;
use crate::catalogue::CatalogueLease;
use crate::clock::Clock;
use crate::peer::Peers;
use crate::raft::{Committed, Core, Leadership, NotCommitted, Pending, Stopped};
use crate::stopping::Stopping;

/// What the leader's task needs.
struct Surroundings {
    core: Core,
    clock: Clock,
    /// A node that is silent for so long is replaced.
    replace_after: Duration,
    requests: mpsc::Receiver<Request>,
    stopping: Stopping,
}

/// Entries on their way, oldest first, with the callers of each.
type Proposed = VecDeque<(Vec<AnswerTo>, Pending)>;

/// One leadership.
struct Leader<'s> {
    around: &'s mut Surroundings,
    grants: Grants,
    proposed: Proposed,
    /// Changes that are applied, and not known to every node: the index, the caller, the answer.
    applied: VecDeque<(u64, AnswerTo, control::Reply)>,
    /// Reads that wait until what they may see is known to every node.
    barriers: Vec<(u64, AnswerTo)>,
    planning: Planning,
}

/// Why a leadership ended.
enum End {
    /// Another leader has taken over, or the replica has stopped.
    Lost,
    /// The node shuts down.
    Closed,
    Fault(Fault),
}

/// The handle to the control group on this node, and the task of its leader, which ends when the
/// node shuts down or the replica stops; with [`Stopped`] when the state can't be read.
pub(crate) fn leader(
    core: Core,
    clock: Clock,
    peers: Peers,
    lease: CatalogueLease,
    replace_after: Duration,
    stopping: Stopping,
) -> (
    ControlClient,
    impl Future<Output = Result<(), Stopped>> + Send,
) {
    let (sender, requests) = requests();
    // A later life of the node always has a greater number: the wall clock does for that.
    let boot = clock.wall().0;
    let client = ControlClient::new(core.clone(), sender, peers, lease, boot);
    let around = Surroundings {
        core,
        clock,
        replace_after,
        requests,
        stopping,
    };
    (client, work(around))
}

async fn work(mut around: Surroundings) -> Result<(), Stopped> {
    let mut leadership = around.core.leadership();
    let mut last = None;
    while let Some((term, first)) = take_up(&mut around, &mut leadership, last).await {
        last = Some(term);
        let end = match Leader::new(&mut around, first) {
            Ok(leader) => leader.work(&mut leadership, term).await,
            Err(fault) => End::Fault(fault),
        };
        match end {
            End::Lost => {}
            End::Closed => return Ok(()),
            End::Fault(fault) => return Err(around.core.stopped(fault)),
        }
    }
    Ok(())
}

/// Waits for a leadership after `last`, and refuses whoever calls meanwhile. The term, and the
/// entry up to which earlier leaders may have answered. `None` when the node shuts down or the
/// replica has stopped.
async fn take_up(
    around: &mut Surroundings,
    leadership: &mut Leadership,
    last: Option<model::Term>,
) -> Option<(model::Term, u64)> {
    loop {
        tokio::select! {
            biased;
            () = around.stopping.begun() => return None,
            leading = leadership.begins(last) => {
                let first = around.core.applied().borrow().map_or(0, |at| at.index);
                return Some((leading?.term, first));
            }
            request = around.requests.recv() => {
                // Who does not listen any more needs no answer.
                let _ = request?.answer.send(Err(Unavailable::NOT_DONE));
            }
        }
    }
}

impl<'s> Leader<'s> {
    fn new(around: &'s mut Surroundings, first: u64) -> Result<Self, Fault> {
        let nodes = read::nodes(around.core.view())?;
        let now = around.clock.monotonic();
        let grants = Grants::presume(nodes.iter().map(|node| node.id), first, now);
        let replace_after = around.replace_after;
        Ok(Leader {
            around,
            grants,
            proposed: VecDeque::new(),
            applied: VecDeque::new(),
            barriers: Vec::new(),
            planning: Planning::new(replace_after),
        })
    }

    async fn work(mut self, leadership: &mut Leadership, term: model::Term) -> End {
        let mut received = Vec::new();
        let mut closed = false;
        while !(closed && self.proposed.is_empty() && self.applied.is_empty()) {
            let lease_over = self.next_lease_end();
            tokio::select! {
                biased;
                () = leadership.ends(term) => return End::Lost,
                () = self.around.stopping.begun(), if !self.around.requests.is_closed() => {
                    self.around.requests.close();
                }
                (answers, fate) = oldest(&mut self.proposed) => self.applied(answers, fate),
                count = self.around.requests.recv_many(&mut received, PROPOSAL_REQUESTS_MAX),
                    if !closed => closed = count == 0,
                () = lease_over => {}
                () = self.planning.due(), if !closed => {
                    let at = self.around.clock.wall();
                    let core = &self.around.core;
                    if let Err(fault) = self.planning.plan(core, at).await {
                        return End::Fault(fault);
                    }
                }
            }
            if let Err(fault) = self.hear(&mut received).await {
                return End::Fault(fault);
            }
            self.settle();
        }
        End::Closed
    }

    /// Resolves when a node that holds changes up has lost its lease.
    fn next_lease_end(&self) -> impl Future<Output = ()> + use<> {
        let end = self.grants.next_end(self.now());
        let end = end.map(|end| self.around.clock.instant(end));
        async move {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.around.clock.monotonic()
    }

    async fn hear(&mut self, received: &mut Vec<Request>) -> Result<(), Fault> {
        let (mut commands, mut answers) = (Vec::new(), Vec::new());
        for Request { call, answer } in received.drain(..) {
            match call {
                Call::Change(command) => {
                    commands.push(Command::Control(command));
                    answers.push(answer);
                }
                Call::Renew(renewal) => {
                    let granted = self.renew(renewal).await?;
                    let _ = answer.send(granted);
                }
                Call::Release(node, boot) => {
                    let now = self.now();
                    self.grants.release(node, boot, now);
                    let _ = answer.send(Ok(Answer::Released));
                }
                Call::Barrier => self.barrier(answer).await,
                Call::Survey => {
                    let survey = self.planning.survey(&self.around.core)?;
                    let _ = answer.send(Ok(Answer::Survey(survey)));
                }
            }
        }
        if !commands.is_empty() {
            let at = self.around.clock.wall();
            let pending = self.around.core.propose(None, Proposal { at, commands });
            self.proposed.push_back((answers, pending.await));
        }
        Ok(())
    }

    /// Grants a lease only while it is certain that no other leader answers changes.
    async fn renew(&mut self, renewal: Renewal) -> Result<Result<Answer, Unavailable>, Fault> {
        if self.around.core.read().await.is_err() {
            return Ok(Err(Unavailable::NOT_DONE));
        }
        if read::node(self.around.core.view(), renewal.node)?.is_none() {
            return Ok(Ok(Answer::Lease(None)));
        }
        let now = self.now();
        let granted = self.grants.renew(&renewal, now);
        self.planning.hear(renewal.node, renewal.led);
        Ok(Ok(Answer::Lease(granted.then_some(CATALOGUE_LEASE))))
    }

    async fn barrier(&mut self, answer: AnswerTo) {
        if self.around.core.read().await.is_err() {
            let _ = answer.send(Err(Unavailable::NOT_DONE));
            return;
        }
        let applied = self.around.core.applied().borrow().map_or(0, |at| at.index);
        self.barriers.push((applied, answer));
    }

    /// An entry has met its fate.
    fn applied(&mut self, answers: Vec<AnswerTo>, fate: Result<Committed, NotCommitted>) {
        match fate {
            Ok(Committed { index, outcomes }) => {
                let now = self.now();
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    self.grants.wait_for(index, now);
                    self.applied
                        .push_back((index, answer, of_control(outcome).reply));
                }
            }
            Err(NotCommitted { unknown }) => {
                for answer in answers {
                    let _ = answer.send(Err(Unavailable { unknown }));
                }
            }
        }
    }

    /// Answers what every node that may rely on its catalogue has by now.
    fn settle(&mut self) {
        let complete = self.grants.settle(self.now());
        while let Some((index, ..)) = self.applied.front()
            && *index <= complete
        {
            let (_, answer, reply) = self.applied.pop_front().expect("it was the front");
            // A caller that has gone away has its change nevertheless.
            let _ = answer.send(Ok(Answer::Changed(reply)));
        }
        let unanswered = self.grants.unanswered();
        for (index, answer) in std::mem::take(&mut self.barriers) {
            if unanswered.is_some_and(|first| first <= index) {
                self.barriers.push((index, answer));
            } else {
                let _ = answer.send(Ok(Answer::Index(index)));
            }
        }
    }
}

/// The fate of the oldest entry, once it is known.
async fn oldest(proposed: &mut Proposed) -> (Vec<AnswerTo>, Result<Committed, NotCommitted>) {
    let Some((_, pending)) = proposed.front_mut() else {
        return std::future::pending().await;
    };
    let fate = pending.await;
    let (answers, _) = proposed.pop_front().expect("it was the front");
    (answers, fate)
}

fn of_control(outcome: Outcome) -> control::Outcome {
    match outcome {
        Outcome::Control(outcome) => outcome,
        other => unreachable!("only commands of the control group are proposed here: {other:?}"),
    }
}
