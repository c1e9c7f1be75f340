//! Exactly-once deliveries that are about to be sent get their leases.

use std::sync::Arc;

use model::SessionId;

use super::{Backlog, Grant, Granted, LeaseOutcome, Outcome, Rejected, Reply, open};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::delivery::{Delivery, DeliveryKey, Lease};

pub(super) fn apply(overlay: &mut Overlay<'_>, grant: &Grant) -> Result<Outcome, Fault> {
    let Some(backlog) = Backlog::open(overlay, grant.topic, grant.subscription)? else {
        return Ok(Rejected::NotAttached.into());
    };
    let (key, attachment) = backlog.into_parts();
    let mut outcomes = Vec::with_capacity(grant.deliveries.len());
    for granted in &grant.deliveries {
        if open::is_sealed(overlay, key.topic, granted.strand)? {
            outcomes.push(LeaseOutcome::Elsewhere);
            continue;
        }
        let backlog = Backlog::of(overlay, key, Arc::clone(&attachment));
        let Some(delivery) = deliver(&backlog, grant.stream, granted)? else {
            outcomes.push(LeaseOutcome::Stale);
            continue;
        };
        let key = DeliveryKey {
            subscription: grant.subscription,
            message: granted.message,
        };
        overlay.put(&key, &delivery);
        let attempts = delivery.attempts;
        outcomes.push(LeaseOutcome::Done { attempts });
    }
    Ok(Reply::Leases(outcomes).into())
}

/// The delivery with its new lease; `None` if the message is settled, or leased to somebody.
fn deliver(
    backlog: &Backlog<'_>,
    stream: Option<SessionId>,
    granted: &Granted,
) -> Result<Option<Delivery>, Fault> {
    if backlog.is_settled(granted.message)? && !model::sabotage!("settled-message-is-granted") {
        return Ok(None);
    }
    let before = backlog.delivery(granted.message)?.unwrap_or_default();
    if before.lease.is_some() && !model::sabotage!("two-leases-of-one-message") {
        return Ok(None);
    }
    let lease = Lease {
        generation: granted.generation,
        duration: granted.duration,
        extended: false,
        stream,
    };
    Ok(Some(Delivery {
        lease: Some(lease),
        ..before
    }))
}
