//! Nodes and clients of a simulation, and the time in which they live.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::Timestamp;
use tokio::sync::{mpsc, watch};
use turmoil::{Builder, Sim};

use super::churn::Churn;
use super::client::{self, Endpoints, Ordered, Phase, Subscribed};
use super::faults::{Fault, Tally};
use super::member::{ADMIN_PORT, CLIENT_PORT, Member, PEER_PORT};
use super::plan::Plan;
use super::recorder::Recorder;
use super::trouble::START_AGAIN_AFTER;
use super::verdict::{Verdict, checkpoints, digests};
use crate::chance::Chance;
use crate::history::{Key, Subscription, What};

/// Hosts take turns of this length.
const TICK: Duration = Duration::from_millis(1);
/// Pieces of a connection that are on their way.
const PIECES_MAX: usize = 64 * 1024;

/// How far a simulation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reached {
    /// There was no cluster.
    Nothing,
    /// Clients published while things went wrong.
    Load,
    /// Nothing went wrong any more.
    Settled,
    /// Everything was acknowledged.
    Drained,
}

/// A simulation under way.
pub(super) struct World<'a> {
    pub(super) sim: Sim<'a>,
    pub(super) members: Vec<Member>,
    /// How many faults keep each of them down.
    pub(super) held_down: Vec<u32>,
    pub(super) tally: Tally,
    pub(super) churn: Churn,
    /// When each one is started again that ended by itself.
    start_again: Vec<Option<Duration>>,
    recorder: Recorder,
    phase: watch::Sender<Phase>,
    pub(super) plan: Plan,
    /// Faults that begin or end, in order.
    changes: BTreeMap<(Duration, usize), (bool, Fault)>,
}

impl World<'_> {
    /// A world where nothing has happened yet.
    pub(super) fn new(plan: Plan) -> Self {
        let mut sim = Builder::new()
            .rng_seed(plan.seed)
            .tick_duration(TICK)
            .simulation_duration(Duration::MAX)
            .min_message_latency(plan.within_region)
            .max_message_latency(plan.within_region)
            .tcp_capacity(PIECES_MAX)
            .build();
        let members = members(&plan);
        for member in &members {
            let host = member.clone();
            sim.host(member.name(), move || host.clone().live());
        }
        // Those that come later wait until it is their turn.
        for member in &members[plan.begin..] {
            sim.crash(member.name());
        }
        let (orders, ordered) = mpsc::unbounded_channel();
        let held_down = (0..members.len()).map(|node| u32::from(node >= plan.begin));
        let mut world = World {
            sim,
            held_down: held_down.collect(),
            churn: Churn::new(members.len(), plan.begin, orders),
            tally: Tally::default(),
            start_again: vec![None; members.len()],
            members,
            recorder: Recorder::default(),
            phase: watch::Sender::new(Phase::Beginning),
            plan,
            changes: BTreeMap::new(),
        };
        world.spread_out();
        let subscriptions = subscriptions();
        for region in 0..world.plan.regions.len() {
            world.add_publisher(region);
        }
        for (number, subscribed) in subscriptions.iter().enumerate() {
            world.add_consumer(number, *subscribed);
        }
        world.add_administrator(subscriptions);
        world.add_operator(ordered);
        world
    }

    fn add_publisher(&mut self, number: usize) {
        let region = self.plan.regions[number];
        let nodes = self.nodes_from(number);
        let keys: Vec<Key> = (0..=self.plan.keys)
            .map(|key| key_name(region, key))
            .collect();
        let every = self.plan.publish_every;
        let seed = self.plan.seed ^ (number as u64 + 1) << 48;
        let (recorder, phase) = (self.recorder.clone(), self.phase.clone());
        self.sim.host(format!("publisher-{region}"), move || {
            let (nodes, keys) = (nodes.clone(), keys.clone());
            let (recorder, phase) = (recorder.clone(), phase.subscribe());
            async move {
                let (endpoints, chance) = (Endpoints::new(&nodes), Chance::new(seed));
                client::publish(endpoints, recorder, keys, every, chance, phase).await;
                Ok(())
            }
        });
    }

    fn add_consumer(&mut self, number: usize, subscribed: Subscribed) {
        let nodes = self.nodes_from(number + 1);
        let (recorder, phase) = (self.recorder.clone(), self.phase.clone());
        self.sim.host(format!("consumer-{number}"), move || {
            let (nodes, recorder) = (nodes.clone(), recorder.clone());
            let mut phase = phase.subscribe();
            async move {
                phase.wait_for(|phase| *phase >= Phase::Load).await?;
                client::consume(Endpoints::new(&nodes), recorder, subscribed).await;
                Ok(())
            }
        });
    }

    fn add_administrator(&mut self, subscriptions: Vec<Subscribed>) {
        let nodes = self.nodes_from(0);
        let (recorder, phase) = (self.recorder.clone(), self.phase.clone());
        self.sim.host("administrator", move || {
            let (nodes, recorder) = (nodes.clone(), recorder.clone());
            let (subscriptions, phase) = (subscriptions.clone(), phase.clone());
            async move {
                let endpoints = Endpoints::new(&nodes);
                client::administrate(endpoints, recorder, subscriptions, phase).await;
                Ok(())
            }
        });
    }

    fn add_operator(&mut self, ordered: mpsc::UnboundedReceiver<Ordered>) {
        let members = self.members.iter();
        let nodes = members.map(|member| format!("{}:{ADMIN_PORT}", member.name()));
        let nodes: Vec<_> = nodes.collect();
        let recorder = self.recorder.clone();
        let ordered = Mutex::new(Some(ordered));
        self.sim.host("operator", move || {
            let ordered = ordered
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let ordered = ordered.expect("operators never end");
            let (nodes, recorder) = (nodes.clone(), recorder.clone());
            async move {
                client::obey(nodes, recorder, ordered).await;
                Ok(())
            }
        });
        match self.plan.move_every {
            Some(every) => self.add_mover(every),
            None => self.recorder.ended_moving(),
        }
    }

    fn add_mover(&mut self, every: Duration) {
        let keys = self.plan.regions.into_iter().flat_map(|region| {
            let keys = 1..=self.plan.keys;
            keys.map(move |key| key_name(region, key))
        });
        let keys: Vec<_> = keys.collect();
        let nodes = self.members[..self.plan.begin].to_vec();
        let seed = self.plan.seed ^ 1 << 56;
        let (recorder, phase) = (self.recorder.clone(), self.phase.clone());
        self.sim.host("mover", move || {
            let (nodes, recorder) = (nodes.clone(), recorder.clone());
            let (keys, phase) = (keys.clone(), phase.subscribe());
            async move {
                let chance = Chance::new(seed);
                client::move_keys(nodes, recorder, keys, every, chance, phase).await;
                Ok(())
            }
        });
    }

    /// The addresses for clients of all nodes that the cluster begins with, beginning with those of
    /// a region.
    fn nodes_from(&self, region: usize) -> Vec<String> {
        let count = self.plan.begin;
        let first = region % self.plan.regions.len() * self.plan.per_region();
        let begin = self.members[..count].iter().cycle();
        // What comes later is near nobody, and asked last.
        let members = begin.skip(first).take(count).chain(&self.members[count..]);
        members
            .map(|member| format!("{}:{CLIENT_PORT}", member.name()))
            .collect()
    }

    /// Puts the regions far from each other.
    fn spread_out(&mut self) {
        for one in 0..self.members.len() {
            for other in 0..one {
                let (one, other) = (&self.members[one], &self.members[other]);
                let (one, other) = (one.name().to_owned(), other.name().to_owned());
                self.set_usual_latency(&one, &other);
            }
        }
    }

    pub(super) fn set_usual_latency(&mut self, one: &str, other: &str) {
        let region = |name: &str| {
            let member = self.members.iter().find(|member| member.name() == name);
            member.map(Member::region)
        };
        let latency = match region(one) == region(other) {
            true => self.plan.within_region,
            false => self.plan.between_regions,
        };
        self.sim.set_link_latency(one, other, latency);
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.sim.elapsed()
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(super) fn unsettled(&self) -> usize {
        self.recorder.unsettled()
    }

    /// Takes down something that no checker reads.
    pub(super) fn say(&self, what: String) {
        self.recorder.say(format!("{:?} {what}", self.elapsed()));
    }

    /// Writes an event.
    pub(super) fn note(&self, what: What) {
        let now = Timestamp::ZERO.plus(self.elapsed());
        self.recorder.event_at(now, what);
    }

    /// Whether a node has a process now.
    pub(super) fn is_up(&mut self, node: usize) -> bool {
        self.sim.is_host_running(self.members[node].name())
    }

    /// The names of all nodes but one.
    pub(super) fn others(&self, node: usize) -> Vec<String> {
        let members = self.members.iter().enumerate();
        let others = members.filter(|(number, _)| *number != node);
        others.map(|(_, member)| member.name().to_owned()).collect()
    }

    /// How many pieces are on their way over these links.
    pub(super) fn on_their_way(&self, links: &[(String, String)]) -> usize {
        let links = links.iter().map(|(one, other)| {
            let (one, other) = (self.sim.lookup(&**one), self.sim.lookup(&**other));
            (one.min(other), one.max(other))
        });
        let links: Vec<_> = links.collect();
        let mut count = 0;
        self.sim.links(|all| {
            for link in all {
                if links.contains(&link.pair()) {
                    count += link.count();
                }
            }
        });
        count
    }

    /// The load goes on, and things go wrong, to the end of both.
    pub(super) fn run_load(&mut self) {
        let begun = self.elapsed();
        for (number, fault) in self.plan.faults.iter().enumerate() {
            let begins = (begun + fault.from, number);
            let ends = (begun + fault.until, number + self.plan.faults.len());
            self.changes.insert(begins, (true, fault.clone()));
            self.changes.insert(ends, (false, fault.clone()));
        }
        let load = self.plan.load;
        self.run_until(load, |_| false);
        self.phase.send_replace(Phase::Drain);
        self.run_until(Duration::MAX, |world| world.changes.is_empty());
        self.say("all faults are over".to_owned());
    }

    /// Whether anything goes wrong at all.
    pub(super) fn has_faults(&self) -> bool {
        !self.plan.faults.is_empty()
    }

    /// Whether no node comes or goes, and no key moves.
    pub(super) fn is_settled(&self) -> bool {
        self.churn.is_over() && self.recorder.has_ended_moving()
    }

    /// Goes on until it is so; false when it is not after `patience`.
    pub(super) fn run_until(&mut self, patience: Duration, is: impl Fn(&Self) -> bool) -> bool {
        let deadline = self.elapsed().saturating_add(patience);
        loop {
            if is(self) {
                return true;
            }
            if self.elapsed() >= deadline {
                return false;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.elapsed();
        while let Some(change) = self.changes.first_entry()
            && change.key().0 <= now
        {
            match change.remove() {
                (true, fault) => self.begin(&fault),
                (false, fault) => self.end(&fault),
            }
        }
        self.watch_churn();
        for node in 0..self.members.len() {
            self.supervise(node, now);
        }
        self.sim.step().expect("hosts end without errors");
    }

    /// Starts the process of a node again that has ended.
    fn supervise(&mut self, node: usize, now: Duration) {
        if let Some(why) = self.members[node].ended() {
            self.say(format!("{} ended: {why}", self.members[node].name()));
            self.start_again[node] = Some(now + START_AGAIN_AFTER);
        }
        let is_due = self.start_again[node].is_none_or(|due| due <= now);
        if is_due && self.held_down[node] == 0 && !self.is_up(node) {
            self.start_again[node] = None;
            self.say(format!("{} starts", self.members[node].name()));
            self.sim.bounce(self.members[node].name());
        }
    }

    /// Whether all replicas of each group have come to the same state.
    pub(super) fn agrees(&self) -> bool {
        digests(self.present()).is_empty()
    }

    /// The nodes that belong to the cluster.
    fn present(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter().enumerate();
        let present = members.filter(|(node, _)| !self.churn.is_away(*node));
        present.map(|(_, member)| member)
    }

    /// What is to be said of it.
    pub(super) fn verdict(self, reached: Reached) -> Verdict {
        let mut wrong = match reached {
            Reached::Nothing => vec!["the cluster did not begin to work".to_owned()],
            _ => digests(self.present()),
        };
        match reached {
            Reached::Load => wrong.push("nodes did not come and go, or keys move, in time".into()),
            Reached::Settled => wrong.push("not everything was acknowledged in time".into()),
            Reached::Nothing | Reached::Drained => {}
        }
        let history = self.recorder.history(reached == Reached::Drained);
        let (elapsed, checkpoints) = (self.elapsed(), checkpoints(self.present()));
        let (recorder, tally) = (&self.recorder, self.tally.clone());
        Verdict::new(elapsed, recorder, &history, checkpoints, tally, wrong)
    }
}

/// The first founds the cluster, the others join it by way of any that is there at the beginning.
fn members(plan: &Plan) -> Vec<Member> {
    let member = |(number, (name, region)): (usize, &(String, &'static str))| {
        let others = plan.nodes[..plan.begin].iter();
        let others = others.filter(|(other, _)| other != name);
        let join = others.map(|(other, _)| format!("{other}:{PEER_PORT}"));
        let seed = plan.seed ^ (number as u64) << 16;
        Member::new((name, region), number == 0, seed, join.collect())
    };
    plan.nodes.iter().enumerate().map(member).collect()
}

fn subscriptions() -> Vec<Subscribed> {
    let subscribed = |(number, exactly_once)| Subscribed {
        number: Subscription(number),
        exactly_once,
    };
    [(1, false), (2, true)].map(subscribed).to_vec()
}

/// The keys of a publisher; its first is no key at all.
fn key_name(region: &str, number: u64) -> Key {
    match number {
        0 => Key::from(""),
        _ => Key::from(format!("{region}-{number}")),
    }
}
