//! Leases of an exactly-once subscription run longer.

use super::{Extend, LeaseOutcome, Outcome, Reply};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::delivery::{Delivery, DeliveryKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, extend: &Extend) -> Result<Outcome, Fault> {
    let mut outcomes = Vec::with_capacity(extend.leases.len());
    for &(message, generation, duration) in &extend.leases {
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
