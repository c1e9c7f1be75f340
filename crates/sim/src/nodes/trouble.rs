//! How faults begin and end.

use std::time::Duration;

use store::Faults;

use super::faults::{Fault, Kind};
use super::world::World;
use crate::chance::Chance;
use crate::history::What;

/// How much later a process is started again that ended by itself, as a supervisor does.
pub(super) const START_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The most that a message takes over a slow link, and an fsync on a slow disk.
const SLOW_LINK_MAX: Duration = Duration::from_secs(3);
const SLOW_DISK_MAX: Duration = Duration::from_secs(2);
/// The most that a clock jumps, in either direction.
const JUMP_MAX: Duration = Duration::from_secs(3_600);

impl World<'_> {
    /// Begins a fault.
    pub(super) fn begin(&mut self, fault: &Fault) {
        self.say(format!("{:?} of {} begins", fault.kind, self.place(fault)));
        self.note(What::Down);
        self.tally.begins(fault.kind);
        if self.take(fault) {
            self.tally.is_felt(fault.kind);
        }
    }

    /// Brings the fault about; whether it does something.
    fn take(&mut self, fault: &Fault) -> bool {
        let mut chance = Chance::new(fault.seed);
        match fault.kind {
            Kind::Kill | Kind::PowerLoss | Kind::RegionLoss => self.end_processes(fault),
            Kind::Restart => self.stop(fault.node),
            Kind::Cut | Kind::CutOneWay | Kind::Isolate | Kind::IsolateRegion => {
                let links = self.links_of(fault);
                let lost = self.on_their_way(&links) > 0;
                for (one, other) in links {
                    match fault.kind {
                        Kind::CutOneWay => self.sim.partition_oneway(&*one, &*other),
                        _ => self.sim.partition(&*one, &*other),
                    }
                }
                lost
            }
            Kind::Hold => {
                for (one, other) in self.links_of(fault) {
                    self.sim.hold(&*one, &*other);
                }
                // Told at its end.
                false
            }
            Kind::SlowLink => {
                let latency = chance.between(Duration::from_millis(100), SLOW_LINK_MAX);
                for (one, other) in self.links_of(fault) {
                    self.sim.set_link_latency(&*one, &*other, latency);
                }
                false
            }
            Kind::SlowDisk | Kind::FullDisk | Kind::BrokenDisk => {
                let disk = self.members[fault.node].disk();
                disk.set_faults(disk_faults(fault.kind, disk.used(), &mut chance));
                // A node that is up writes all the time.
                self.is_up(fault.node)
            }
            Kind::ClockJump => {
                let by = chance.up_to(JUMP_MAX).as_nanos() as i64;
                let by = if chance.percent(50) { by } else { -by };
                self.members[fault.node].jump(by);
                self.is_up(fault.node)
            }
            // Told when the cluster has changed.
            Kind::Join => {
                self.join(fault.node);
                false
            }
            Kind::Leave => {
                self.send_away(fault.node);
                false
            }
            Kind::LostDisk => {
                self.lose_disk(fault.node);
                false
            }
        }
    }

    pub(super) fn end(&mut self, fault: &Fault) {
        self.say(format!("{:?} of {} ends", fault.kind, self.place(fault)));
        match fault.kind {
            Kind::Kill | Kind::PowerLoss | Kind::RegionLoss => {
                for node in self.nodes_of(fault) {
                    self.held_down[node] -= 1;
                }
            }
            Kind::Cut | Kind::CutOneWay | Kind::Isolate | Kind::IsolateRegion => {
                for (one, other) in self.links_of(fault) {
                    self.sim.repair(&*one, &*other);
                }
            }
            Kind::Hold => {
                let links = self.links_of(fault);
                if self.on_their_way(&links) > 0 {
                    self.tally.is_felt(fault.kind);
                }
                for (one, other) in links {
                    self.sim.release(&*one, &*other);
                }
            }
            Kind::SlowLink => {
                let links = self.links_of(fault);
                if self.on_their_way(&links) > 0 {
                    self.tally.is_felt(fault.kind);
                }
                for (one, other) in links {
                    self.set_usual_latency(&one, &other);
                }
            }
            Kind::SlowDisk | Kind::FullDisk | Kind::BrokenDisk => {
                self.members[fault.node]
                    .disk()
                    .set_faults(Faults::default());
            }
            // One of the region leaves, often another one than came.
            Kind::Join => {
                let leaves = self.leaver(fault);
                self.begin(&Fault {
                    kind: Kind::Leave,
                    node: leaves,
                    ..fault.clone()
                });
            }
            Kind::LostDisk => self.replace(fault.node),
            Kind::Restart | Kind::ClockJump | Kind::Leave => {}
        }
    }

    /// Ends the processes of a fault, and keeps them down; whether there were any.
    fn end_processes(&mut self, fault: &Fault) -> bool {
        let mut felt = false;
        for node in self.nodes_of(fault) {
            self.held_down[node] += 1;
            if !self.is_up(node) {
                continue;
            }
            felt = true;
            let name = self.members[node].name().to_owned();
            let disk = self.members[node].disk().clone();
            if fault.kind == Kind::Kill {
                self.sim.crash(&*name);
                disk.end_process();
                continue;
            }
            disk.lose_power(fault.seed);
            self.silence(node);
        }
        felt
    }

    /// Ends a process which can't even say that its connections end.
    pub(super) fn silence(&mut self, node: usize) {
        let name = self.members[node].name().to_owned();
        let others = self.others(node);
        for other in &others {
            self.sim.partition(&*name, &**other);
        }
        self.sim.crash(&*name);
        for other in &others {
            self.sim.repair(&*name, &**other);
        }
    }

    fn stop(&mut self, node: usize) -> bool {
        let is_up = self.is_up(node);
        if is_up {
            self.members[node].stop();
        }
        is_up
    }

    /// The nodes whose processes a fault ends.
    fn nodes_of(&self, fault: &Fault) -> Vec<usize> {
        let region = self.members[fault.node].region();
        let all = 0..self.members.len();
        match fault.kind {
            Kind::RegionLoss => all
                .filter(|node| self.members[*node].region() == region)
                .collect(),
            _ => vec![fault.node],
        }
    }

    /// The links that a fault is about, from the one to the other.
    fn links_of(&self, fault: &Fault) -> Vec<(String, String)> {
        let members = &self.members;
        let (one, other) = (&members[fault.node], &members[fault.other]);
        let link = |one: &super::member::Member, other: &super::member::Member| {
            (one.name().to_owned(), other.name().to_owned())
        };
        let apart = |other: &&super::member::Member| match fault.kind {
            Kind::IsolateRegion => other.region() != one.region(),
            _ => other.name() != one.name(),
        };
        match fault.kind {
            Kind::Isolate => members
                .iter()
                .filter(apart)
                .map(|other| link(one, other))
                .collect(),
            Kind::IsolateRegion => {
                let inside = members
                    .iter()
                    .filter(|inside| inside.region() == one.region());
                inside
                    .flat_map(|inside| {
                        members
                            .iter()
                            .filter(apart)
                            .map(|other| link(inside, other))
                    })
                    .collect()
            }
            _ => vec![link(one, other)],
        }
    }

    fn place(&self, fault: &Fault) -> String {
        let (node, other) = (&self.members[fault.node], &self.members[fault.other]);
        match fault.kind {
            Kind::Cut | Kind::CutOneWay | Kind::Hold | Kind::SlowLink => {
                format!("{} and {}", node.name(), other.name())
            }
            Kind::RegionLoss | Kind::IsolateRegion => node.region().to_owned(),
            _ => node.name().to_owned(),
        }
    }
}

fn disk_faults(kind: Kind, used: u64, chance: &mut Chance) -> Faults {
    match kind {
        Kind::SlowDisk => Faults {
            sync_takes: chance.up_to(SLOW_DISK_MAX),
            ..Faults::default()
        },
        // From a hundredth of it free to none: publishes are refused, then everything that takes
        // room, and in the end nothing can be written.
        Kind::FullDisk => Faults {
            capacity: Some(used + used * chance.below(10) / 100),
            ..Faults::default()
        },
        _ => Faults {
            syncs_before_failure: Some(chance.below(50)),
            ..Faults::default()
        },
    }
}
