//! A cluster of one shard, with its clients, on virtual time: the engines of the real one, a log
//! that commits after a while, leaders that crash, clients that misbehave.

mod calls;
mod clients;
mod consumer;
mod delivery;
mod frontend;
mod leadership;
mod log;
mod registry;

use std::collections::BTreeMap;
use std::time::Duration;

use engine::Fault;
use engine::dispatch::{Input, Leader, QuestionId};
use engine::kv::memory::MemoryView;
use engine::registry::Command as RegistryCommand;
use engine::subscription::SubscriptionSettings;
use model::{
    AckId, ClusterSecret, Incarnation, MessageId, SessionId, ShardNumber, Term, Timestamp,
};

use crate::chance::Chance;
use crate::history::{Call, DeliveryNumber, Event, History, Subscription, Value, What};
use crate::plan::Plan;
use calls::Calls;
use consumer::Act;
use frontend::Frontend;
use leadership::InFlight;
use log::Log;

const TOPIC: Incarnation = Incarnation(1);
const SHARD: ShardNumber = ShardNumber(1);
const SECRET: ClusterSecret = ClusterSecret([3; 16]);

/// How long a drained cluster may need until everything is acknowledged: a few of the longest
/// leases one after the other.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// What may happen until then. A cluster that is busy for longer makes no headway.
const DRAIN_HAPPENINGS_MAX: u64 = 1_000_000;

/// How long sessions of before live on while the cluster is drained.
const OLD_SESSIONS_MAX: Duration = Duration::from_secs(5);

/// The whole world of one run.
pub(crate) struct Cluster {
    now: Timestamp,
    chance: Chance,
    plan: Plan,
    /// What will happen, in order; the number keeps what happens at once in the order of planning.
    ahead: BTreeMap<(Timestamp, u64), Happening>,
    planned: u64,
    history: History,

    log: Log,
    /// The state of the one registry group.
    registry: MemoryView,
    term: Term,
    leader: Option<Leader>,
    /// What has arrived at the leader, and waits for its next step.
    inbox: Vec<Input>,
    in_flight: InFlight,

    frontend: Frontend,
    calls: Calls,
    subscriptions: BTreeMap<Subscription, Life>,
    deliveries: BTreeMap<DeliveryNumber, (Subscription, AckId)>,
    latest: BTreeMap<(Subscription, MessageId), DeliveryNumber>,
    /// Which message a value became, once it was seen.
    messages: BTreeMap<Value, MessageId>,
    /// Acks that go out together.
    acking: BTreeMap<Subscription, Vec<DeliveryNumber>>,
    values: u64,
    is_draining: bool,
}

/// A subscription from its creation to its deletion.
pub(super) struct Life {
    settings: SubscriptionSettings,
    stage: Stage,
}

/// How far a subscription came. Creation and deletion are over when they are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Creating,
    Alive,
    Deleting,
    Gone,
}

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// The leader of that term steps, with what has arrived.
    Step(Term),
    /// A question arrives at the registry group, from the leader of that term.
    Ask(Term, QuestionId, Box<RegistryCommand>),
    /// A call arrives at the leader of that term.
    Arrive(Term, Box<Input>),
    /// The oldest proposal of that term is committed and applied.
    Commit(Term),
    /// An answer arrives at its client.
    Answer(What),
    /// A publisher publishes.
    Publish,
    /// A client does something with a delivery.
    Act(DeliveryNumber, Act),
    /// A client sends the acks that it has gathered.
    SendAcks(Subscription),
    /// A session or a subscription comes or goes.
    Churn,
    /// A client ends its session.
    Close(SessionId),
    /// The leader crashes.
    Crash,
    /// A new leader is elected.
    Elect,
    /// Is everything acknowledged?
    LookWhetherDrained,
}

impl Cluster {
    /// Runs one seed for so many happenings, and then until everything is acknowledged.
    ///
    /// # Errors
    /// [`Fault`] when the state contradicts itself.
    pub(crate) fn run(seed: u64, happenings: u64) -> Result<History, Fault> {
        let mut cluster = Cluster::new(seed);
        cluster.begin()?;
        for _ in 0..happenings {
            cluster.happen()?;
        }
        cluster.drain()?;
        Ok(cluster.history)
    }

    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let plan = Plan::new(&mut chance);
        Cluster {
            now: Timestamp(1),
            chance,
            plan,
            ahead: BTreeMap::new(),
            planned: 0,
            history: History::default(),
            log: Log::new(SHARD),
            registry: MemoryView::default(),
            term: Term(0),
            leader: None,
            inbox: Vec::new(),
            in_flight: InFlight::default(),
            frontend: Frontend::default(),
            calls: Calls::default(),
            subscriptions: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            latest: BTreeMap::new(),
            messages: BTreeMap::new(),
            acking: BTreeMap::new(),
            values: 0,
            is_draining: false,
        }
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.elect()?;
        for settings in std::mem::take(&mut self.plan.subscriptions) {
            self.create(settings);
        }
        self.plan_in(Duration::ZERO, Happening::Publish);
        self.plan_in(Duration::ZERO, Happening::Churn);
        self.plan_crash();
        Ok(())
    }

    /// The next thing happens.
    fn happen(&mut self) -> Result<(), Fault> {
        let Some(((at, _), happening)) = self.ahead.pop_first() else {
            return Ok(());
        };
        self.now = at;
        match happening {
            Happening::Step(term) if term == self.term => self.step()?,
            Happening::Arrive(term, input) if term == self.term => self.arrive(*input),
            Happening::Commit(term) if term == self.term => self.commit()?,
            Happening::Ask(term, question, command) => self.asked(term, question, &command)?,
            // It was meant for a leader that is gone.
            Happening::Step(_) | Happening::Arrive(..) | Happening::Commit(_) => {}
            Happening::Answer(what) => self.note(what),
            Happening::Publish => self.publish(),
            Happening::Act(delivery, act) => self.act(delivery, act),
            Happening::SendAcks(subscription) => self.send_acks(subscription),
            Happening::Churn => self.churn(),
            Happening::Close(session) => self.close(session),
            Happening::Crash => self.crash()?,
            Happening::Elect => self.elect()?,
            Happening::LookWhetherDrained => self.look_whether_drained()?,
        }
        self.note_credit();
        Ok(())
    }

    /// Faults end, nothing more is published, and everybody acknowledges what comes.
    fn drain(&mut self) -> Result<(), Fault> {
        self.is_draining = true;
        // A session with little credit would hold its keys for as long as it has messages.
        for session in self.frontend.ids() {
            self.plan_in(OLD_SESSIONS_MAX, Happening::Close(session));
        }
        for subscription in self.alive() {
            self.open_stream(subscription, 200);
            self.open_stream(subscription, 200);
        }
        self.plan_in(Duration::from_secs(1), Happening::LookWhetherDrained);
        let until = self.now.plus(DRAIN_MAX);
        let mut happenings = 0;
        while !self.history.drained && self.now < until && happenings < DRAIN_HAPPENINGS_MAX {
            self.happen()?;
            happenings += 1;
        }
        self.history.drained = true;
        self.log.assert_replay_agrees()
    }

    fn look_whether_drained(&mut self) -> Result<(), Fault> {
        let mut is_drained = self.leader.is_some();
        for subscription in self.alive() {
            is_drained &= !self.has_backlog(subscription)?;
        }
        self.history.drained = is_drained;
        self.plan_in(Duration::from_secs(1), Happening::LookWhetherDrained);
        Ok(())
    }

    fn plan_in(&mut self, wait: Duration, happening: Happening) {
        self.plan_at(self.now.plus(wait), happening);
    }

    fn plan_at(&mut self, at: Timestamp, happening: Happening) {
        self.planned += 1;
        self.ahead
            .insert((at.max(self.now), self.planned), happening);
    }

    fn note(&mut self, what: What) {
        let at = self.now;
        self.history.events.push(Event { at, what });
    }

    fn note_credit(&mut self) {
        for (session, free) in self.frontend.changed_credit() {
            let session = frontend::number(session);
            self.note(What::Credit { session, free });
        }
    }

    fn alive(&self) -> Vec<Subscription> {
        let alive = self.subscriptions.iter();
        let alive = alive.filter(|(_, life)| life.stage == Stage::Alive);
        alive.map(|(subscription, _)| *subscription).collect()
    }

    /// Until a call or its answer arrives.
    fn network(&mut self) -> Duration {
        self.chance.up_to(self.plan.network_max)
    }

    /// The answer to a call is on its way to its client.
    fn answer(&mut self, what: What) {
        let wait = self.network();
        self.plan_in(wait, Happening::Answer(what));
    }

    /// Sends a call to the leader. Some never arrive, some find no leader.
    fn send(&mut self, input: Input) {
        let wait = self.network();
        let is_lost = !self.is_draining && self.chance.percent(self.plan.consumers.lost);
        if self.leader.is_some() && !is_lost {
            self.plan_in(wait, Happening::Arrive(self.term, Box::new(input)));
        }
    }

    fn new_call(&mut self) -> Call {
        self.calls.name()
    }
}

/// The incarnation of a subscription.
fn incarnation(subscription: Subscription) -> Incarnation {
    Incarnation(subscription.0)
}
