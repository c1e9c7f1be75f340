//! What one subscription wants in the log, until the next entry takes it.

use std::time::Duration;

use model::limits::PROPOSAL_REQUESTS_MAX;
use model::{AckId, Generation, Incarnation, KeyHash, MessageId, SessionId};

use super::ForwardId;
use super::call::Slot;
use crate::shard::{
    Acknowledge, Command, Extend, Fail, Failed, Grant, Granted, LaneRewind, Rewind,
};

/// Waiting parts of commands, gathered by kind.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    adoptions: Vec<Adoption>,
    acks: Vec<Ack>,
    settlements: Vec<Settlement>,
    extensions: Vec<Extension>,
    failures: Vec<Failure>,
    rewinds: Vec<LaneRewind>,
    grants: Vec<Granting>,
}

/// A lease that runs already and is to be logged.
pub(super) type Adoption = Granted;

/// An ack of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) slot: Slot,
    pub(super) id: AckId,
    /// Whether [`super::loose::Loose`] counts it, since the message had no such lease.
    pub(super) loose: bool,
}

/// A message that the leader itself settles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settlement {
    pub(super) strand: KeyHash,
    pub(super) message: MessageId,
    /// The dead letter that it is; without, the filter does not want it.
    pub(super) dead: Option<ForwardId>,
}

/// A logged lease that is to run longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    pub(super) slot: Slot,
    pub(super) strand: KeyHash,
    pub(super) message: MessageId,
    pub(super) generation: Generation,
    pub(super) duration: Duration,
}

/// A failed delivery, and the call that let it fail, if one did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) slot: Option<Slot>,
    pub(super) failed: Failed,
}

/// Deliveries that a session is about to get.
#[derive(Clone, Debug)]
pub(super) struct Granting {
    pub(super) session: SessionId,
    /// As in [`Grant::stream`].
    pub(super) stream: Option<SessionId>,
    pub(super) deliveries: Vec<Granted>,
}

/// A command on its way through the log, as its dispatcher will want to remember it.
#[derive(Debug)]
pub(super) enum Logging {
    Adoptions(Vec<Adoption>),
    Acks(Vec<Ack>),
    Settlements(Vec<Settlement>),
    Extensions(Vec<Extension>),
    Failures(Vec<Failure>),
    Rewinds(Vec<LaneRewind>),
    Grant(SessionId, Vec<Granted>),
}

impl Outbox {
    pub(super) fn adopt(&mut self, lease: Adoption) {
        self.adoptions.push(lease);
    }

    pub(super) fn acknowledge(&mut self, ack: Ack) {
        self.acks.push(ack);
    }

    pub(super) fn settle(&mut self, strand: KeyHash, message: MessageId, dead: Option<ForwardId>) {
        self.settlements.push(Settlement {
            strand,
            message,
            dead,
        });
    }

    pub(super) fn extend(&mut self, extension: Extension) {
        self.extensions.push(extension);
    }

    pub(super) fn fail(&mut self, slot: Option<Slot>, failed: Failed) {
        self.failures.push(Failure { slot, failed });
    }

    pub(super) fn rewind(&mut self, lane: LaneRewind) {
        self.rewinds.push(lane);
    }

    pub(super) fn grant(&mut self, granting: Granting) {
        self.grants.push(granting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting_calls() == 0
            && self.adoptions.is_empty()
            && self.settlements.is_empty()
            && self.rewinds.is_empty()
            && self.grants.is_empty()
    }

    /// Whether so many messages wait to be settled by the leader itself that no more should be
    /// looked for: the log is slower than the filter.
    pub(super) fn settles_enough(&self) -> bool {
        self.settlements.len() >= PROPOSAL_REQUESTS_MAX
    }

    /// How many ids of calls wait.
    pub(super) fn waiting_calls(&self) -> usize {
        self.acks.len() + self.extensions.len() + self.failures.len()
    }

    /// What waits, as at most one command of a kind, each of at most [`PROPOSAL_REQUESTS_MAX`]
    /// messages. Acks come before failures and rewinds: one that arrived before them counts.
    pub(super) fn take(
        &mut self,
        topic: Incarnation,
        subscription: Incarnation,
    ) -> Vec<(Command, Logging)> {
        let mut commands = Vec::new();
        if let Some(adoptions) = first_of(&mut self.adoptions) {
            let command = grant(topic, subscription, None, adoptions.clone());
            commands.push((command, Logging::Adoptions(adoptions)));
        }
        if let Some(acks) = first_of(&mut self.acks) {
            commands.push(acknowledge(topic, subscription, acks));
        }
        if let Some(settlements) = first_of(&mut self.settlements) {
            commands.push(settle(topic, subscription, settlements));
        }
        if let Some(extensions) = first_of(&mut self.extensions) {
            commands.push(extend(subscription, extensions));
        }
        if let Some(failures) = first_of(&mut self.failures) {
            commands.push(fail(topic, subscription, failures));
        }
        if let Some(lanes) = first_of(&mut self.rewinds) {
            commands.push(rewind(topic, subscription, lanes));
        }
        for granting in std::mem::take(&mut self.grants) {
            let deliveries = granting.deliveries;
            let command = grant(topic, subscription, granting.stream, deliveries.clone());
            commands.push((command, Logging::Grant(granting.session, deliveries)));
        }
        commands
    }
}

fn first_of<T>(waiting: &mut Vec<T>) -> Option<Vec<T>> {
    let rest = waiting.split_off(waiting.len().min(PROPOSAL_REQUESTS_MAX));
    let first = std::mem::replace(waiting, rest);
    (!first.is_empty()).then_some(first)
}

fn rewind(
    topic: Incarnation,
    subscription: Incarnation,
    lanes: Vec<LaneRewind>,
) -> (Command, Logging) {
    let command = Command::Rewind(Rewind {
        topic,
        subscription,
        lanes: lanes.clone(),
    });
    (command, Logging::Rewinds(lanes))
}

fn grant(
    topic: Incarnation,
    subscription: Incarnation,
    stream: Option<SessionId>,
    deliveries: Vec<Granted>,
) -> Command {
    Command::Grant(Grant {
        topic,
        subscription,
        stream,
        deliveries,
    })
}

/// Sorted by message: exactly-once acks of one key must come in order, and a client that lists
/// them in another order within one call means no harm.
fn acknowledge(
    topic: Incarnation,
    subscription: Incarnation,
    mut acks: Vec<Ack>,
) -> (Command, Logging) {
    acks.sort_by_key(|ack| ack.id.message);
    let message = |ack: &Ack| (ack.id.key, ack.id.message, Some(ack.id.generation));
    let command = Command::Acknowledge(Acknowledge {
        topic,
        subscription,
        messages: acks.iter().map(message).collect(),
    });
    (command, Logging::Acks(acks))
}

fn settle(
    topic: Incarnation,
    subscription: Incarnation,
    settlements: Vec<Settlement>,
) -> (Command, Logging) {
    let message = |settled: &Settlement| (settled.strand, settled.message, None);
    let command = Command::Acknowledge(Acknowledge {
        topic,
        subscription,
        messages: settlements.iter().map(message).collect(),
    });
    (command, Logging::Settlements(settlements))
}

fn extend(subscription: Incarnation, extensions: Vec<Extension>) -> (Command, Logging) {
    let lease = |extension: &Extension| {
        let message = extension.message;
        (message, extension.generation, extension.duration)
    };
    let command = Command::Extend(Extend {
        subscription,
        leases: extensions.iter().map(lease).collect(),
    });
    (command, Logging::Extensions(extensions))
}

fn fail(
    topic: Incarnation,
    subscription: Incarnation,
    failures: Vec<Failure>,
) -> (Command, Logging) {
    let command = Command::Fail(Fail {
        topic,
        subscription,
        deliveries: failures.iter().map(|failure| failure.failed).collect(),
    });
    (command, Logging::Failures(failures))
}
