//! Leaders: how they come, step, and crash.

use std::collections::VecDeque;
use std::time::Duration;

use engine::Fault;
use engine::dispatch::{Input, Leader, ProposalId};
use engine::registry::Registries;
use engine::shard::Command;
use model::{Term, Timestamp};

use super::{Cluster, Happening, SHARD, frontend};
use crate::history::What;

/// Proposals that are not committed, oldest first, with the leader's stamps.
pub(super) type InFlight = VecDeque<(ProposalId, Timestamp, Vec<Command>)>;

impl Cluster {
    /// The clock of the leader: each has a zero of its own, and none is the wall clock.
    pub(super) fn leader_now(&self) -> Timestamp {
        self.now.plus(Duration::from_secs(1_000 * self.term.0))
    }

    fn until(&self, leader_time: Timestamp) -> Duration {
        leader_time.since(self.leader_now())
    }

    /// The leader's wall clock: up to a second off, so that it may go back with its leader.
    fn stamp(&self) -> Timestamp {
        let skew = Duration::from_millis(377 * self.term.0 % 1_000);
        self.now.plus(Duration::from_secs(1_000_000) + skew)
    }

    pub(super) fn elect(&mut self) -> Result<(), Fault> {
        self.term = Term(self.term.0 + 1);
        let now = self.leader_now();
        let leader = Leader::new(SHARD, Registries::ONE, self.term, now, self.log.view())?;
        self.leader = Some(leader);
        self.note(What::Up);
        self.arrive(Input::Tick);
        self.resume_catalogue();
        for session in self.frontend.ids() {
            self.introduce(session);
        }
        Ok(())
    }

    /// The leader is gone with all that it had in memory. Of its proposals the first few may be on
    /// enough disks, and then the next leader commits them; nobody hears of it.
    pub(super) fn crash(&mut self) -> Result<(), Fault> {
        self.plan_crash();
        if self.leader.is_none() || self.is_draining {
            return Ok(());
        }
        self.leader = None;
        self.note(What::Down);
        self.log.assert_replay_agrees()?;
        let survive = self.chance.below(self.in_flight.len() as u64 + 1);
        for (_, stamp, commands) in std::mem::take(&mut self.in_flight)
            .into_iter()
            .take(survive as usize)
        {
            self.log.commit(self.term, stamp, commands)?;
        }
        self.inbox.clear();
        self.calls.forget_leader();
        self.lose_sessions();
        self.frontend.forget_leader();
        let election = self.chance.up_to(Duration::from_secs(3));
        self.plan_in(election, Happening::Elect);
        Ok(())
    }

    /// Some crashes take a part of the sessions along, as if their frontends were on the same node.
    fn lose_sessions(&mut self) {
        if !self.term.0.is_multiple_of(3) {
            return;
        }
        for session in self.frontend.ids() {
            if session.number.is_multiple_of(2) && self.frontend.close(session) {
                let session = frontend::number(session);
                self.note(What::Closed { session });
            }
        }
    }

    pub(super) fn plan_crash(&mut self) {
        if let Some(crash_every) = self.plan.crash_every {
            let wait = self.chance.between(Duration::ZERO, 2 * crash_every);
            self.plan_in(wait, Happening::Crash);
        }
    }

    /// Something is there for the leader; it steps soon, with whatever comes until then.
    pub(super) fn arrive(&mut self, input: Input) {
        if self.leader.is_none() {
            return;
        }
        self.inbox.push(input);
        if self.inbox.len() == 1 {
            let wait = self.chance.up_to(Duration::from_millis(2));
            self.plan_in(wait, Happening::Step(self.term));
        }
    }

    pub(super) fn step(&mut self) -> Result<(), Fault> {
        let inputs = std::mem::take(&mut self.inbox);
        let now = self.leader_now();
        let Some(leader) = &mut self.leader else {
            return Ok(());
        };
        let outputs = leader.steps(now, self.log.view(), inputs)?;
        leader.assert_invariants(now);
        for output in outputs {
            self.carry_out(output);
        }
        Ok(())
    }

    pub(super) fn propose(&mut self, proposal: ProposalId, commands: Vec<Command>) {
        let stamp = self.stamp();
        self.in_flight.push_back((proposal, stamp, commands));
        let wait = self.chance.up_to(self.plan.disk_max);
        self.plan_in(wait, Happening::Commit(self.term));
    }

    pub(super) fn commit(&mut self) -> Result<(), Fault> {
        let Some((proposal, stamp, commands)) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let outcomes = self.log.commit(self.term, stamp, commands)?;
        self.arrive(Input::Applied { proposal, outcomes });
        Ok(())
    }

    pub(super) fn wake_at(&mut self, at: Timestamp) {
        let wait = self.until(at);
        let tick = Happening::Arrive(self.term, Box::new(Input::Tick));
        self.plan_in(wait, tick);
    }
}
