//! One command, on every replica.

use model::{MessageId, ShardNumber, Timestamp};

use super::{Command, Effect, Outcome, Rejected, Reply, read};
use super::{
    acknowledge, attach, close_topic, detach, extend, fail, grant, publish, rewind, sweep,
};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::run::PayloadAt;
use crate::table::shard::{Shard, ShardKey};

/// Where a command stands in the log, and when it was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The shard; part of every id that it gives out.
    pub shard: ShardNumber,
    /// The term of the entry.
    pub term: u64,
    /// The index of the entry.
    pub index: u64,
    /// How many payloads stand before those of the command in its entry.
    pub payload_number: u32,
    /// The leader's stamp. A command never sees an earlier time than the one before it.
    pub time: Timestamp,
}

impl At {
    /// The newest id that the shard has given out.
    pub(super) fn newest(self, shard: &Shard) -> MessageId {
        MessageId::new(shard.counter, self.shard)
    }

    pub(super) fn payload(self) -> PayloadAt {
        PayloadAt {
            term: self.term,
            index: self.index,
            number: self.payload_number,
        }
    }
}

/// Carries out a command, whole or not at all.
///
/// # Errors
/// [`Fault`] when the state can't be read or contradicts itself: the replica must stop.
///
/// # Panics
/// When an invariant does not hold: to go on would be to diverge.
pub fn apply(overlay: &mut Overlay<'_>, command: &Command, at: At) -> Result<Outcome, Fault> {
    let at = At {
        time: advance_time(overlay, at.time)?,
        ..at
    };
    match command {
        Command::Publish(publish) => publish::apply(overlay, publish, at),
        Command::Attach(attach) => attach::apply(overlay, attach, at),
        Command::Detach(detach) => detach::apply(overlay, detach, at),
        Command::CloseTopic(close_topic) => close_topic::apply(overlay, close_topic),
        Command::Acknowledge(acknowledge) => acknowledge::apply(overlay, acknowledge, at),
        Command::Rewind(rewind) => rewind::apply(overlay, rewind),
        Command::Grant(grant) => grant::apply(overlay, grant),
        Command::Extend(extend) => extend::apply(overlay, extend),
        Command::Fail(fail) => fail::apply(overlay, fail),
        Command::Sweep(sweep) => sweep::apply(overlay, sweep, at),
        Command::Seal(seal) => seal.apply(overlay, at),
        Command::SealAbsent(absent) => absent.apply(overlay),
        Command::Reopen(reopen) => reopen.apply(overlay, at),
        Command::DropSealed(drop) => drop.apply(overlay),
        Command::Stage(stage) => stage.apply(overlay, at),
        Command::Unstage(unstage) => unstage.apply(overlay),
        Command::Activate(activate) => activate.apply(overlay, at),
    }
}

fn advance_time(overlay: &mut Overlay<'_>, stamp: Timestamp) -> Result<Timestamp, Fault> {
    let shard = read::shard(overlay)?;
    if stamp > shard.time {
        let time = stamp;
        overlay.put(&ShardKey, &Shard { time, ..shard });
    }
    Ok(match model::sabotage!("time-goes-back") {
        true => stamp,
        false => stamp.max(shard.time),
    })
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Outcome {
            reply,
            effects: Vec::new(),
        }
    }
}

impl From<Rejected> for Outcome {
    fn from(rejected: Rejected) -> Self {
        Reply::Rejected(rejected).into()
    }
}

impl Outcome {
    /// The command is done, and the leader must know of it.
    pub(super) fn done(effect: Effect) -> Self {
        Outcome {
            reply: Reply::Done,
            effects: vec![effect],
        }
    }
}
