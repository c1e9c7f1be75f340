//! Whether a strand takes a publish: only while its row is open at an epoch that a registry group
//! has given to this shard.

use model::{Epoch, Incarnation, KeyHash, MessageId, RegistryNumber, sabotage};

use super::{At, Opening, Publish, Rejected, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::epoch_floor::{EpochFloor, EpochFloorKey};
use crate::table::sealed::Sealed;
use crate::table::shard::{Shard, ShardKey};
use crate::table::strand::{Strand, StrandKey};

/// The epoch at which the strand of a publish is open once the publish is stored; zero without a
/// key.
pub(super) fn epoch_of(
    overlay: &Overlay<'_>,
    publish: &Publish,
    strand: Option<&Strand>,
) -> Result<Result<Epoch, Rejected>, Fault> {
    if !publish.keyed {
        return Ok(Ok(Epoch(0)));
    }
    match (strand, &publish.opening) {
        (Some(strand), opening) => Ok(of_strand(strand, opening.as_ref())),
        (None, Some(opening)) => of_new_strand(overlay, opening),
        (None, None) if sabotage!("publish-without-a-claim") => Ok(Ok(Epoch(1))),
        (None, None) => Ok(Err(Rejected::Unclaimed)),
    }
}

/// A newer epoch is adopted, and opens a sealed strand: the registry gives one to this shard only
/// while the key is pinned here.
fn of_strand(strand: &Strand, opening: Option<&Opening>) -> Result<Epoch, Rejected> {
    let current = strand.epoch;
    match opening {
        Some(opening) if opening.epoch > current && !is_outlived(strand, opening) => {
            Ok(opening.epoch)
        }
        Some(opening) if opening.epoch < current && !sabotage!("old-owner-publishes") => {
            Err(Rejected::EpochFenced { current })
        }
        _ if strand.sealed => Err(Rejected::Sealed { at: current }),
        _ => Ok(current),
    }
}

/// Whether the strand was sealed before this shard got the key that it has now. The key was
/// elsewhere meanwhile, and what is left here of it is only to be dropped.
fn is_outlived(strand: &Strand, opening: &Opening) -> bool {
    strand.sealed && strand.epoch < opening.since && !sabotage!("outlived-strand-reopens")
}

/// Whether a sealed strand opens at the pin that its shard has now.
pub(super) fn reopens(strand: &Strand, opening: &Opening) -> bool {
    strand.sealed && opening.epoch > strand.epoch && !is_outlived(strand, opening)
}

/// Whether a strand is frozen.
pub(super) fn is_sealed(
    overlay: &Overlay<'_>,
    topic: Incarnation,
    strand: KeyHash,
) -> Result<bool, Fault> {
    let row = overlay.row::<Sealed>(&StrandKey { topic, strand })?;
    Ok(row.is_some() && !sabotage!("sealed-strand-takes-acks"))
}

/// A strand of this group has gone that was, or may have been, open at an epoch.
pub(super) fn raise_floor(
    overlay: &mut Overlay<'_>,
    registry: RegistryNumber,
    epoch: Epoch,
) -> Result<(), Fault> {
    if read::epoch_floor(overlay, registry)? < epoch {
        overlay.put(&EpochFloorKey(registry), &EpochFloor { epoch });
    }
    Ok(())
}

/// Ids go on above all that a key may have had elsewhere. Whatever is attached from now on begins
/// above them too.
pub(super) fn go_on_above(
    overlay: &mut Overlay<'_>,
    floor: MessageId,
    at: At,
) -> Result<(), Fault> {
    let shard = read::shard(overlay)?;
    if at.newest(&shard) < floor {
        let is_below = at.shard < floor.shard();
        let counter = floor.counter() + u64::from(is_below);
        overlay.put(&ShardKey, &Shard { counter, ..shard });
    }
    Ok(())
}

fn of_new_strand(
    overlay: &Overlay<'_>,
    opening: &Opening,
) -> Result<Result<Epoch, Rejected>, Fault> {
    let floor = read::epoch_floor(overlay, opening.registry)?;
    match opening.epoch > floor || sabotage!("epoch-floor-is-forgotten") {
        true => Ok(Ok(opening.epoch)),
        false => Ok(Err(Rejected::BelowFloor { floor })),
    }
}
