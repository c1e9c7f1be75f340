//! The control group's leader at work. On every node one task waits for the node to lead the
//! group; until then it refuses, so that callers look elsewhere.

use std::collections::VecDeque;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Outcome, Proposal};
use engine::control::{self, NodeState, read};
use model::Timestamp;
use model::limits::{CONTROL_WAITING_REQUESTS_MAX, PROPOSAL_REQUESTS_MAX};
use tokio::sync::{mpsc, watch};
use tracing::info;

use super::asker::Asker;
use super::client::ControlClient;
use super::grants::{Grants, Renewing};
use super::planning::Planning;
use super::request::{Answer, AnswerTo, Call, Granting, Renewal, Renewed, Request, requests};
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
    /// For how far the leaders before have settled changes.
    lease: CatalogueLease,
    requests: mpsc::Receiver<Request>,
    stopping: Stopping,
}

/// Entries on their way, oldest first, with who wanted each of their commands.
type Proposed = VecDeque<(Vec<Asker>, Pending)>;

/// One leadership.
struct Leader<'s> {
    around: &'s mut Surroundings,
    grants: Grants,
    proposed: Proposed,
    /// Up to which entry the fate of every proposal is known.
    decided: u64,
    /// Changes that are applied, and not known to every node: the index, the caller, the answer.
    applied: VecDeque<(u64, AnswerTo, control::Reply)>,
    barriers: Vec<Barrier>,
    planning: Planning,
    /// Whether the work should rest, since the leadership is being handed over.
    rest: watch::Receiver<usize>,
    /// Changes that were asked for since then.
    held: Vec<(control::Command, AnswerTo)>,
}

/// A read that waits until what it may see is known to every node.
struct Barrier {
    /// Up to which entry everything must be settled.
    awaited: u64,
    /// Up to which entry the reader must have applied the catalogue.
    index: u64,
    answer: AnswerTo,
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
    let client = ControlClient::new(core.clone(), sender, peers, lease.clone());
    let around = Surroundings {
        core,
        clock,
        replace_after,
        lease,
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
        let view = around.core.view();
        let (settled, last_change) = (around.lease.settled(), read::last_change(view)?);
        let now = around.clock.steady();
        let grants = Grants::presume(read::awake(view)?, first, settled, last_change, now);
        let replace_after = around.replace_after;
        let rest = around.core.rest().asked();
        Ok(Leader {
            around,
            grants,
            proposed: VecDeque::new(),
            decided: first,
            applied: VecDeque::new(),
            barriers: Vec::new(),
            planning: Planning::new(replace_after),
            rest,
            held: Vec::new(),
        })
    }

    /// Works until the leadership is over. What was only held or read was not done.
    async fn work(mut self, leadership: &mut Leadership, term: model::Term) -> End {
        let end = self.lead(leadership, term).await;
        self.around.core.rest().say(false);
        let held = self.held.into_iter().map(|(_, answer)| answer);
        let reads = self.barriers.into_iter().map(|barrier| barrier.answer);
        for answer in held.chain(reads) {
            let _ = answer.send(Err(Unavailable::NOT_DONE));
        }
        end
    }

    async fn lead(&mut self, leadership: &mut Leadership, term: model::Term) -> End {
        let mut received = Vec::new();
        let mut closed = false;
        while !(closed && self.proposed.is_empty() && self.applied.is_empty()) {
            let lease_over = self.next_lease_end();
            let rests = self.should_rest();
            tokio::select! {
                biased;
                () = leadership.ends(term) => return End::Lost,
                () = self.around.stopping.begun(), if !self.around.requests.is_closed() => {
                    self.around.requests.close();
                }
                (askers, fate) = oldest(&mut self.proposed) => self.decided(askers, fate),
                count = self.around.requests.recv_many(&mut received, PROPOSAL_REQUESTS_MAX),
                    if !closed => closed = count == 0,
                () = lease_over => {}
                Ok(()) = self.rest.changed() => {}
                () = self.planning.due(), if !closed && !rests => {
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
            self.put_to_sleep().await;
            self.settle();
            self.around
                .core
                .rest()
                .say(self.should_rest() && self.is_idle());
        }
        End::Closed
    }

    fn should_rest(&self) -> bool {
        *self.rest.borrow() > 0
    }

    /// Whether nobody waits for a change.
    fn is_idle(&self) -> bool {
        let mut askers = self.proposed.iter().flat_map(|(askers, _)| askers);
        self.applied.is_empty() && !askers.any(|asker| matches!(asker, Asker::Caller(_)))
    }

    /// Resolves when a lease has run out, and something waited for that.
    fn next_lease_end(&self) -> impl Future<Output = ()> + use<> {
        let now = self.now();
        let end = self.grants.next_end(now);
        async move {
            match end {
                // Where the machine sleeps meanwhile, it is late, which does no harm.
                Some(end) => tokio::time::sleep(end.since(now)).await,
                None => std::future::pending().await,
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.around.clock.steady()
    }

    async fn hear(&mut self, received: &mut Vec<Request>) -> Result<(), Fault> {
        let (mut commands, mut askers) = (Vec::new(), Vec::new());
        let rests = self.should_rest();
        if !rests {
            for (command, answer) in self.held.drain(..) {
                commands.push(command);
                askers.push(Asker::Caller(answer));
            }
        }
        for Request { call, answer } in received.drain(..) {
            match call {
                // What is proposed now would have a fate that nobody here hears of.
                Call::Change(command)
                    if rests && self.held.len() < CONTROL_WAITING_REQUESTS_MAX =>
                {
                    self.held.push((command, answer));
                }
                Call::Change(_) if rests => {
                    let _ = answer.send(Err(Unavailable::NOT_DONE));
                }
                Call::Change(command) => {
                    commands.push(command);
                    askers.push(Asker::Caller(answer));
                }
                Call::Renew(renewal) => {
                    let granted = self.renew(renewal).await?;
                    let _ = answer.send(granted);
                }
                Call::Release(node, boot) => {
                    let now = self.now();
                    if self.grants.release(node, boot, now) {
                        let asker = Asker::Sleeper(node, boot, Some(answer));
                        self.propose(asker).await;
                    } else {
                        let _ = answer.send(Ok(Answer::Released));
                    }
                }
                Call::ReadIndex => self.read_index(answer, |_| 0).await,
                Call::Barrier => self.read_index(answer, |applied| applied).await,
                Call::Settled(index) => self.read_index(answer, |_| index).await,
                Call::Survey => {
                    let survey = self.planning.survey(&self.around.core)?;
                    let _ = answer.send(Ok(Answer::Survey(survey)));
                }
                Call::LeaseLeft => unreachable!("a node answers for itself"),
            }
        }
        self.propose_all(askers, commands).await;
        Ok(())
    }

    /// Proposes what `asker` wants of a node.
    async fn propose(&mut self, asker: Asker) {
        let command = asker.command().expect("callers bring theirs");
        self.propose_all(vec![asker], vec![command]).await;
    }

    async fn propose_all(&mut self, askers: Vec<Asker>, commands: Vec<control::Command>) {
        if commands.is_empty() {
            return;
        }
        let at = self.around.clock.wall();
        let commands = commands.into_iter().map(Command::Control).collect();
        let pending = self.around.core.propose(None, Proposal { at, commands });
        self.proposed.push_back((askers, pending.await));
    }

    /// Grants a lease only while it is certain that no other leader answers changes.
    async fn renew(&mut self, renewal: Renewal) -> Result<Result<Answer, Unavailable>, Fault> {
        if self.around.core.read().await.is_err() {
            return Ok(Err(Unavailable::NOT_DONE));
        }
        let granting = match self.may_ask(&renewal)? {
            true => self.grants.renew(&renewal, self.now()),
            false => Renewing::Answer(Granting::NotNow),
        };
        let (node, boot) = (renewal.node, renewal.boot);
        self.planning.hear(node, renewal.knows, renewal.led);
        let granting = match granting {
            Renewing::Answer(granting) => granting,
            Renewing::Wake => {
                self.propose(Asker::Waker(node, boot)).await;
                Granting::NotNow
            }
        };
        // The node may have been the last one that a change waited for.
        self.grants.settle(self.now());
        let settled = self.settled();
        Ok(Ok(Answer::Renewed(Renewed { granting, settled })))
    }

    /// Whether a node may have a lease at all: a member, which knows what the cluster writes.
    fn may_ask(&self, renewal: &Renewal) -> Result<bool, Fault> {
        let view = self.around.core.view();
        let node = read::node(view, renewal.node)?;
        let is_member = node.is_some_and(|node| node.state != NodeState::Removed);
        Ok(is_member && renewal.knows >= read::format_level(view)?)
    }

    /// Proposes that nodes are asleep whose lease has run out.
    async fn put_to_sleep(&mut self) {
        for (node, boot) in self.grants.doze(self.now()) {
            info!(%node, "catalogue lease of a silent node has run out");
            self.propose(Asker::Sleeper(node, boot, None)).await;
        }
    }

    /// Answers up to which entry to read, when everything up to the entry that `awaited` makes of
    /// it is settled.
    async fn read_index(&mut self, answer: AnswerTo, awaited: impl FnOnce(u64) -> u64) {
        if self.around.core.read().await.is_err() {
            let _ = answer.send(Err(Unavailable::NOT_DONE));
            return;
        }
        let index = self.applied_index();
        self.barriers.push(Barrier {
            awaited: awaited(index),
            index,
            answer,
        });
    }

    fn applied_index(&self) -> u64 {
        self.around.core.applied().borrow().map_or(0, |at| at.index)
    }

    /// Up to which entry every change is known to everyone who may have a lease.
    fn settled(&self) -> u64 {
        // What was proposed may be applied already, and not be counted as waiting yet.
        let known = match self.proposed.is_empty() {
            true => self.applied_index(),
            false => self.decided,
        };
        self.grants.settled(known)
    }

    /// The fate of an entry is known.
    fn decided(&mut self, askers: Vec<Asker>, fate: Result<Committed, NotCommitted>) {
        let now = self.now();
        match fate {
            Ok(Committed { index, outcomes }) => {
                self.decided = self.decided.max(index);
                for (asker, outcome) in askers.into_iter().zip(outcomes) {
                    self.done(asker, index, of_control(outcome).reply, now);
                }
            }
            Err(NotCommitted { unknown }) => {
                for asker in askers {
                    asker.not_done(&mut self.grants, unknown, now);
                }
            }
        }
    }

    fn done(&mut self, asker: Asker, index: u64, reply: control::Reply, now: Timestamp) {
        match asker {
            Asker::Caller(answer) => {
                self.grants.wait_for(index, now);
                self.applied.push_back((index, answer, reply));
            }
            Asker::Waker(node, boot) => {
                let done = reply == control::Reply::Done;
                self.grants.woken(node, boot, done, now);
            }
            Asker::Sleeper(node, boot, answer) => {
                self.grants.slept(node, boot);
                if let Some(answer) = answer {
                    let _ = answer.send(Ok(Answer::Released));
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
        let settled = self.settled();
        let (due, waiting) = std::mem::take(&mut self.barriers)
            .into_iter()
            .partition(|barrier: &Barrier| barrier.awaited <= settled);
        self.barriers = waiting;
        for Barrier { index, answer, .. } in due {
            let _ = answer.send(Ok(Answer::Index { index, settled }));
        }
    }
}

/// The fate of the oldest entry, once it is known.
async fn oldest(proposed: &mut Proposed) -> (Vec<Asker>, Result<Committed, NotCommitted>) {
    let Some((_, pending)) = proposed.front_mut() else {
        return std::future::pending().await;
    };
    let fate = pending.await;
    let (askers, _) = proposed.pop_front().expect("it was the front");
    (askers, fate)
}

fn of_control(outcome: Outcome) -> control::Outcome {
    match outcome {
        Outcome::Control(outcome) => outcome,
        other => unreachable!("only commands of the control group are proposed here: {other:?}"),
    }
}
