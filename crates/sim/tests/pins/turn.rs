//! One step: a state that is changed under the rules that are on.

use super::flaws::{Flaw, Flaws};
use super::network::{Address, Envelope, Message};
use super::state::State;
use super::words::{Key, ShardNumber};

/// One step in the making.
pub(crate) struct Turn<'a> {
    pub(crate) flaws: Flaws,
    pub(crate) state: &'a mut State,
}

impl Turn<'_> {
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaws.has(flaw)
    }

    /// A message arrives.
    pub(crate) fn receive(&mut self, envelope: Envelope) {
        let Envelope { to, key, message } = envelope;
        match to {
            Address::Registry => self.registry_receives(key, message),
            Address::Shard(shard) => self.shard_receives(shard, key, message),
        }
    }

    fn registry_receives(&mut self, key: Key, message: Message) {
        let registry = &mut self.state.registry;
        let asker = match message {
            Message::Look(asker) => asker,
            Message::Claim(asker) => {
                registry.claim(key, asker);
                asker
            }
            Message::Move(wanted) => {
                registry.move_pin(key, &wanted, self.flaws);
                wanted.source
            }
            Message::Release(wanted) => {
                registry.release(key, &wanted, self.flaws);
                // Who sweeps does not wait for an answer.
                if wanted.last.is_none() {
                    return;
                }
                wanted.shard
            }
            _ => unreachable!("{message:?} is not for the registry"),
        };
        let answer = self.state.registry.answer(key);
        self.state.tell_shard(asker, key, Message::Answer(answer));
    }

    fn shard_receives(&mut self, shard: ShardNumber, key: Key, message: Message) {
        match message {
            Message::Answer(answer) => self.hear(shard, key, &answer),
            Message::Seal { epoch, purpose } => self.seal(shard, key, epoch, purpose),
            Message::Copy(copy) => self.stage(shard, key, copy),
            Message::Whole(epoch) => self.copy_is_whole(shard, key, epoch),
            Message::Activate(activate) => self.activate(shard, key, &activate),
            Message::Drop(epoch) => self.drop_sealed(shard, key, epoch),
            Message::SealAbsent(epoch) => self.seal_absent(shard, key, epoch),
            _ => unreachable!("{message:?} is not for a shard"),
        }
    }
}
