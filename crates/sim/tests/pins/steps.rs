//! Every step that can be taken, and the state after it.

use super::bounds::Clients;
use super::flaws::{Flaw, Flaws};
use super::network::{Message, Purpose};
use super::state::{Leader, State};
use super::turn::Turn;
use super::words::{Epoch, Generation, Key, MessageId, Place, ShardNumber, Subscription};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The message at this place of the network arrives.
    Receive(usize),
    /// It arrives, and will arrive again.
    Duplicate(usize),
    /// It never arrives.
    Lose(usize),
    /// A leader sees to a key that needs something.
    Work(ShardNumber, Key),
    /// A pin is found that seems to have no strand.
    Sweep(Key),
    /// A shard learns of the late subscription.
    Attach(ShardNumber),
    Publish(ShardNumber, Key),
    StartMove(ShardNumber, Key),
    Undo(ShardNumber, Key),
    StartRelease(ShardNumber, Key),
    Crash(ShardNumber),
    CreateLate,
    /// A message is delivered and acked.
    Consume(ShardNumber, Key, Subscription),
    Deliver(ShardNumber, Key, Subscription),
    Ack(ShardNumber, Key, Subscription, Place, Generation),
    Nack(ShardNumber, Key, Subscription, Place),
}

/// All steps out of a state. After a broken promise there are none.
pub(crate) fn steps(state: &State, flaws: Flaws, steps: &mut Vec<Step>) {
    if state.witness.broken.is_some() {
        return;
    }
    network_steps(state, steps);
    for shard in ShardNumber::all() {
        let forgets = state.leaders[shard.0] != Leader::default();
        if state.left.crashes > 0 && forgets {
            steps.push(Step::Crash(shard));
        }
        for key in Key::all().take(state.left.keys) {
            key_steps(state, shard, key, steps);
            for subscription in Subscription::all() {
                client_steps(state, flaws, (shard, key, subscription), steps);
            }
        }
    }
    steps.extend(course(state));
    if state.left.late > 0 {
        steps.push(Step::CreateLate);
    }
    let hasty = Key::all().filter(|key| is_sweepable(state, *key) && !state.network.is_quiet(*key));
    if state.left.hasty_sweeps > 0 {
        steps.extend(hasty.map(Step::Sweep));
    }
}

/// The steps that nobody has to decide on, except that messages arrive.
pub(crate) fn course(state: &State) -> Vec<Step> {
    let mut steps = Vec::new();
    for shard in ShardNumber::all() {
        let works = Key::all().filter(|key| needs_work(state, shard, *key));
        steps.extend(works.map(|key| Step::Work(shard, key)));
        if state.late_created && state.shard(shard).late_attached.is_none() {
            steps.push(Step::Attach(shard));
        }
    }
    let quiet = Key::all().filter(|key| is_sweepable(state, *key) && state.network.is_quiet(*key));
    steps.extend(quiet.map(Step::Sweep));
    steps
}

fn network_steps(state: &State, steps: &mut Vec<Step>) {
    for place in 0..state.network.len() {
        steps.push(Step::Receive(place));
        if state.left.duplicates > 0 {
            steps.push(Step::Duplicate(place));
        }
        if state.left.losses > 0 {
            steps.push(Step::Lose(place));
        }
    }
}

fn key_steps(state: &State, shard: ShardNumber, key: Key, steps: &mut Vec<Step>) {
    // Shards are alike, and keys are: it does not matter which is the first.
    let is_first = shard == ShardNumber(0) && key == Key(0);
    if state.left.publishes > 0 && (is_first || state.registry.epoch > Epoch(0)) {
        steps.push(Step::Publish(shard, key));
    }
    let Some(row) = state.row(shard, key) else {
        return;
    };
    if state.left.moves > 0 && row.sealed.is_none() {
        steps.push(Step::StartMove(shard, key));
    }
    if state.left.undos > 0 && row.sealed == Some(Purpose::Move) {
        steps.push(Step::Undo(shard, key));
    }
    if state.left.releases > 0 && state.is_releasable(shard, key, row) {
        steps.push(Step::StartRelease(shard, key));
    }
}

fn client_steps(
    state: &State,
    flaws: Flaws,
    (shard, key, subscription): (ShardNumber, Key, Subscription),
    steps: &mut Vec<Step>,
) {
    let next = state.next_of_lane(flaws, shard, key, subscription);
    if state.left.clients == Clients::AtOnce {
        steps.extend(next.map(|_| Step::Consume(shard, key, subscription)));
        return;
    }
    steps.extend(next.map(|_| Step::Deliver(shard, key, subscription)));
    if state.left.nacks > 0 {
        let leased = state.leased(shard, key, subscription).iter();
        steps.extend(leased.map(|place| Step::Nack(shard, key, subscription, place)));
    }
    if state.takes_acks(flaws, shard, key) {
        for place in state.witness.delivered(key, subscription).iter() {
            let [latest, earlier] = state.witness.ids_of(key, subscription, place);
            steps.push(Step::Ack(shard, key, subscription, place, latest));
            if earlier != Generation::default() {
                steps.push(Step::Ack(shard, key, subscription, place, earlier));
            }
        }
    }
}

/// A leader has a key that it must ask the registry about, and nobody has asked yet.
fn needs_work(state: &State, shard: ShardNumber, key: Key) -> bool {
    let is_waiting = state.leaders[shard.0].waiting[key.0] > 0;
    let row = state.row(shard, key);
    let has_staged = state.shard(shard).staged.iter().any(|(of, _)| *of == key);
    let is_unfinished = has_staged || row.is_some_and(|row| row.sealed.is_some());
    let may_claim = !state.network.is_claiming(key, shard) && !state.awaits_catalogue(shard, key);
    row.is_none() && is_waiting && may_claim || is_unfinished && state.network.is_quiet(key)
}

/// A pin has no strand, and nobody sweeps it yet.
fn is_sweepable(state: &State, key: Key) -> bool {
    let pin = state.registry.pins[key.0];
    let is_bare = pin.is_some_and(|pin| state.row(pin.shard, key).is_none());
    is_bare && !state.network.is_sweeping(key)
}

/// The state after a step; none if the step can't be taken any more.
pub(crate) fn take(state: &State, flaws: Flaws, step: Step) -> State {
    let mut next = state.clone();
    spend(&mut next, step);
    let mut turn = Turn {
        flaws,
        state: &mut next,
    };
    match step {
        Step::Receive(place) => {
            let envelope = turn.state.network.take(place);
            turn.receive(envelope);
        }
        Step::Duplicate(place) => {
            let envelope = turn.state.network.get(place);
            turn.receive(envelope);
        }
        Step::Lose(place) => drop(turn.state.network.take(place)),
        Step::Publish(shard, key) => turn.publish(shard, key),
        Step::Undo(shard, key) => turn.undo(shard, key),
        Step::StartMove(shard, key) => turn.start(shard, key, Purpose::Move),
        Step::StartRelease(shard, key) => turn.start(shard, key, Purpose::Release),
        Step::Work(shard, key) => turn.work(shard, key),
        Step::Sweep(key) => turn.sweep(key),
        Step::Attach(shard) => turn.attach(shard),
        Step::Crash(shard) => turn.crash(shard),
        Step::CreateLate => turn.create_late(),
        Step::Consume(shard, key, by) => turn.consume(shard, key, by),
        Step::Deliver(shard, key, to) => turn.deliver(shard, key, to),
        Step::Ack(shard, key, by, place, id) => turn.ack(shard, key, by, place, id),
        Step::Nack(shard, key, by, place) => turn.nack(shard, key, by, place),
    }
    next
}

fn spend(state: &mut State, step: Step) {
    let left = &mut state.left;
    match step {
        Step::Duplicate(_) => left.duplicates -= 1,
        Step::Lose(_) => left.losses -= 1,
        Step::Publish(..) => left.publishes -= 1,
        Step::StartMove(..) => left.moves -= 1,
        Step::Undo(..) => left.undos -= 1,
        Step::StartRelease(..) => left.releases -= 1,
        Step::Crash(_) => left.crashes -= 1,
        Step::CreateLate => left.late -= 1,
        Step::Nack(..) => left.nacks -= 1,
        Step::Sweep(key) if !state.network.is_quiet(key) => left.hasty_sweeps -= 1,
        _ => {}
    }
}

impl Turn<'_> {
    fn start(&mut self, shard: ShardNumber, key: Key, purpose: Purpose) {
        let row = *self.state.row(shard, key).expect("the strand is open");
        let epoch = row.epoch;
        self.state
            .tell_shard(shard, key, Message::Seal { epoch, purpose });
        if purpose == Purpose::Move && self.has(Flaw::CopyBeforeTheSeal) {
            self.send_copy(shard, key);
        }
    }

    fn work(&mut self, shard: ShardNumber, key: Key) {
        self.serve_waiting(shard, key);
        if self.state.network.is_quiet(key) {
            self.state.tell_registry(key, Message::Look(shard));
        }
    }

    fn sweep(&mut self, key: Key) {
        let pin = self.state.registry.pins[key.0].expect("there is a pin");
        let absent = Message::SealAbsent(pin.epoch);
        self.state.tell_shard(pin.shard, key, absent);
    }

    fn attach(&mut self, shard: ShardNumber) {
        let shard_state = self.state.shard_mut(shard);
        let newest = MessageId::new(shard_state.counter, ShardNumber(1));
        shard_state.late_attached = Some(newest);
    }

    fn create_late(&mut self) {
        self.state.late_created = true;
        self.state.witness.late_begins();
    }

    /// What was accepted stays; what waited, and what was sent, is forgotten.
    fn crash(&mut self, shard: ShardNumber) {
        self.state.leaders[shard.0] = Leader::default();
        self.state.shard_mut(shard).term += 1;
    }

    fn consume(&mut self, shard: ShardNumber, key: Key, by: Subscription) {
        let next = self.state.next_of_lane(self.flaws, shard, key, by);
        let place = next.expect("something can be sent");
        self.deliver(shard, key, by);
        let [latest, _] = self.state.witness.ids_of(key, by, place);
        self.ack(shard, key, by, place, latest);
    }
}
