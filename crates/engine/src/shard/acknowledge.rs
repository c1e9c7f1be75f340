//! Messages of one subscription are settled.

use model::{Epoch, KeyHash, MessageId, sabotage};

use super::settlement::{Ack, Settlement};
use super::{AckOutcome, Acknowledge, At, Outcome, Rejected, Reply, holes, lane, open, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::run::{Run, RunKey};

pub(super) fn apply(
    overlay: &mut Overlay<'_>,
    acknowledge: &Acknowledge,
    at: At,
) -> Result<Outcome, Fault> {
    let (topic, subscription) = (acknowledge.topic, acknowledge.subscription);
    let Some(mut settlement) = Settlement::open(overlay, topic, subscription, at.time)? else {
        return Ok(Rejected::NotAttached.into());
    };
    let mut outcomes = vec![AckOutcome::Stale; acknowledge.messages.len()];
    for (strand, acks) in by_strand(acknowledge) {
        settle_strand(&mut settlement, strand, &acks, &mut outcomes)?;
    }
    Ok(Reply::Acknowledged(outcomes).into())
}

/// The acks of each strand in id order, whatever the order of the list: a client that acknowledges
/// 3, 2 and 1 at once has acknowledged them in order.
fn by_strand(acknowledge: &Acknowledge) -> Vec<(KeyHash, Vec<Ack>)> {
    let acks = acknowledge.messages.iter().enumerate();
    let mut acks: Vec<_> = acks
        .map(|(place, &(strand, message, generation))| {
            let ack = Ack {
                place,
                message,
                generation,
            };
            (strand, ack)
        })
        .collect();
    acks.sort_by_key(|(strand, ack)| (*strand, ack.message));
    let strands = acks.chunk_by(|(before, _), (after, _)| before == after);
    strands
        .map(|acks| (acks[0].0, acks.iter().map(|(_, ack)| *ack).collect()))
        .collect()
}

fn settle_strand(
    settlement: &mut Settlement<'_, '_>,
    strand: KeyHash,
    mut acks: &[Ack],
    outcomes: &mut [AckOutcome],
) -> Result<(), Fault> {
    let is_frozen = open::is_sealed(settlement.overlay, settlement.topic, strand)?;
    while let Some(ack) = acks.first() {
        let found = wanted_run(settlement, strand, ack.message)?;
        let Some((key, run)) = found.filter(|_| !is_frozen) else {
            outcomes[ack.place] = without_run(settlement, strand, ack)?;
            acks = &acks[1..];
            continue;
        };
        if settlement.attachment.settings.ordered && run.keyed() {
            return lane::settle(settlement, (key, run), acks, outcomes);
        }
        let in_run = acks.partition_point(|ack| ack.message <= run.last(key.first));
        holes::settle(settlement, key, run.count, &acks[..in_run], outcomes)?;
        acks = &acks[in_run..];
    }
    Ok(())
}

/// What becomes of an ack whose message is not stored here, or may not change. Where the shard has
/// no open strand of its key, only the owner of the key can say.
fn without_run(
    settlement: &Settlement<'_, '_>,
    strand: KeyHash,
    ack: &Ack,
) -> Result<AckOutcome, Fault> {
    let is_keyed = ack
        .generation
        .is_some_and(|generation| generation.epoch != Epoch(0));
    let exactly_once = settlement.exactly_once();
    let again = settlement.again(ack)?;
    if !is_keyed || exactly_once && again == AckOutcome::Acknowledged {
        return Ok(again);
    }
    let found = read::strand(settlement.overlay, settlement.topic, strand)?;
    Ok(match found.is_some_and(|strand| !strand.sealed) {
        true => again,
        false if sabotage!("moved-ack-is-dropped") => again,
        false => AckOutcome::Elsewhere,
    })
}

/// The run of the message, if the subscription may have to settle it.
fn wanted_run(
    settlement: &Settlement<'_, '_>,
    strand: KeyHash,
    message: MessageId,
) -> Result<Option<(RunKey, Run)>, Fault> {
    let found = read::run_of(settlement.overlay, settlement.topic, message)?;
    let Some((key, run)) = found.filter(|(_, run)| run.strand == strand) else {
        return Ok(None);
    };
    let ordered = settlement.attachment.settings.ordered && run.keyed();
    let is_wanted =
        ordered || key.first > settlement.attachment.after || holes::has_row(settlement, key)?;
    Ok(is_wanted.then_some((key, run)))
}
