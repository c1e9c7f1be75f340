//! Leases of an exactly-once subscription run longer.

use std::collections::BTreeSet;

use model::{Incarnation, MessageId};

use super::{Extend, LeaseOutcome, Outcome, Reply, open, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::delivery::{Delivery, DeliveryKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, extend: &Extend) -> Result<Outcome, Fault> {
    let mut outcomes = Vec::with_capacity(extend.leases.len());
    // The command names no strand. To look for it costs something, and mostly nothing is sealed.
    let topics = sealed_topics(overlay)?;
    for &(message, generation, duration) in &extend.leases {
        if is_sealed(overlay, &topics, message)? {
            outcomes.push(LeaseOutcome::Elsewhere);
            continue;
        }
        let key = DeliveryKey {
            subscription: extend.subscription,
            message,
        };
        let delivery = overlay.row::<Delivery>(&key)?.unwrap_or_default();
        let attempts = delivery.attempts;
        let outcome = match delivery.lease {
            Some(mut lease)
                if lease.generation == generation
                    || model::sabotage!("old-id-extends-the-lease") =>
            {
                (lease.duration, lease.extended) = (duration, true);
                let lease = Some(lease);
                overlay.put(&key, &Delivery { attempts, lease });
                LeaseOutcome::Done { attempts }
            }
            _ => LeaseOutcome::Stale,
        };
        outcomes.push(outcome);
    }
    Ok(Reply::Leases(outcomes).into())
}

/// The topics that have a sealed strand.
fn sealed_topics(overlay: &Overlay<'_>) -> Result<BTreeSet<Incarnation>, Fault> {
    read::sealed(overlay).map(|row| Ok(row?.0.topic)).collect()
}

/// Whether the message of a lease is in a sealed strand of one of these topics.
fn is_sealed(
    overlay: &Overlay<'_>,
    topics: &BTreeSet<Incarnation>,
    message: MessageId,
) -> Result<bool, Fault> {
    for topic in topics {
        if let Some((_, run)) = read::run_of(overlay, *topic, message)?
            && open::is_sealed(overlay, *topic, run.strand)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
