//! Settling where order does not matter: one bit for each message of a run.

use super::AckOutcome;
use super::settlement::{Ack, Settlement};
use crate::Fault;
use crate::kv::ViewExt;
use crate::table::holes::{Holes, HolesKey};
use crate::table::run::RunKey;

/// Settles messages of one run, which are all acks given.
pub(super) fn settle(
    settlement: &mut Settlement<'_, '_>,
    run: RunKey,
    count: u32,
    acks: &[Ack],
    outcomes: &mut [AckOutcome],
) -> Result<(), Fault> {
    let key = HolesKey {
        topic: run.topic,
        first: run.first,
        subscription: settlement.subscription,
    };
    let before = settlement.overlay.row::<Holes>(&key)?;
    let mut holes = before.clone().unwrap_or(Holes::Some(Vec::new()));
    for ack in acks {
        let number = ack.message.counter() - run.first.counter();
        outcomes[ack.place] = settle_one(settlement, &mut holes, number, ack)?;
    }
    if holes.settled() == count {
        holes = Holes::All;
    }
    if before.as_ref() == Some(&holes) || holes == Holes::Some(Vec::new()) {
        return Ok(());
    }
    settlement.overlay.put(&key, &holes);
    match holes {
        Holes::All => settlement.finish_run(run.first),
        Holes::Some(_) => Ok(()),
    }
}

/// Whether a subscription has a row of its own for a run: so for each that a move has brought.
pub(super) fn has_row(settlement: &Settlement<'_, '_>, run: RunKey) -> Result<bool, Fault> {
    let key = HolesKey {
        topic: run.topic,
        first: run.first,
        subscription: settlement.subscription,
    };
    Ok(settlement.overlay.row::<Holes>(&key)?.is_some())
}

fn settle_one(
    settlement: &mut Settlement<'_, '_>,
    holes: &mut Holes,
    number: u64,
    ack: &Ack,
) -> Result<AckOutcome, Fault> {
    if holes.has(number) {
        return settlement.again(ack);
    }
    if !settlement.has_right(ack)? {
        return Ok(AckOutcome::Stale);
    }
    holes.settle(number);
    settlement.remember(ack);
    settlement.forget_delivery(ack.message)?;
    Ok(AckOutcome::Acknowledged)
}

impl Holes {
    /// Settles message `number` of the run.
    fn settle(&mut self, number: u64) {
        let Holes::Some(words) = self else { return };
        let word = (number / 64) as usize;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (number % 64);
    }

    /// How many messages are settled; of a whole run, more than any run has.
    fn settled(&self) -> u32 {
        match self {
            Holes::Some(words) => words.iter().map(|word| word.count_ones()).sum(),
            Holes::All => u32::MAX,
        }
    }
}
