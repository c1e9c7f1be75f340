//! Deliveries failed: a lease ends, an attempt is counted.

use std::sync::Arc;

use model::sabotage;

use super::{Backlog, Fail, FailCause, Failed, LeaseOutcome, Outcome, Rejected, Reply, open};
use crate::Fault;
use crate::kv::Overlay;
use crate::subscription::SubscriptionSettings;
use crate::table::delivery::{Delivery, DeliveryKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, fail: &Fail) -> Result<Outcome, Fault> {
    let Some(backlog) = Backlog::open(overlay, fail.topic, fail.subscription)? else {
        return Ok(Rejected::NotAttached.into());
    };
    let (key, attachment) = backlog.into_parts();
    let mut outcomes = Vec::with_capacity(fail.deliveries.len());
    for failed in &fail.deliveries {
        if open::is_sealed(overlay, key.topic, failed.strand)? {
            outcomes.push(LeaseOutcome::Elsewhere);
            continue;
        }
        let backlog = Backlog::of(overlay, key, Arc::clone(&attachment));
        let Some(delivery) = failure(&backlog, failed)? else {
            outcomes.push(LeaseOutcome::Stale);
            continue;
        };
        let key = DeliveryKey {
            subscription: fail.subscription,
            message: failed.message,
        };
        if delivery == Delivery::default() {
            overlay.delete::<Delivery>(&key);
        } else {
            overlay.put(&key, &delivery);
        }
        let attempts = delivery.attempts;
        outcomes.push(LeaseOutcome::Done { attempts });
    }
    Ok(Reply::Leases(outcomes).into())
}

/// The delivery after it failed; `None` if it had ended before.
fn failure(backlog: &Backlog<'_>, failed: &Failed) -> Result<Option<Delivery>, Fault> {
    let settings = &backlog.attachment().settings;
    let before = backlog.delivery(failed.message)?.unwrap_or_default();
    let live = match settings.exactly_once {
        true => before
            .lease
            .is_some_and(|lease| lease.generation == failed.generation),
        // Its leases are the leader's own; here it matters only that the message is still wanted.
        false => !backlog.is_settled(failed.message)?,
    };
    let counted = u32::from(counts(settings, failed.cause));
    Ok(live.then(|| Delivery {
        attempts: before.attempts.saturating_add(counted),
        lease: before.lease.filter(|_| sabotage!("failed-lease-lives")),
    }))
}

/// Attempts matter to a dead-letter policy and to the back-off of a retry policy.
fn counts(settings: &SubscriptionSettings, cause: FailCause) -> bool {
    let matter = settings.dead_letter.is_some() || settings.retry.is_some();
    matter
        && !sabotage!("attempts-not-counted")
        && matches!(cause, FailCause::Nack | FailCause::Expiry)
}
