//! Acks and deadlines that came on a stream: carried out, and what became of each id.

use std::time::Duration;

use engine::dispatch::{AckReply, ModifyReply};
use model::{AckId, Incarnation, SubscriptionName};
use proto::pubsub::streaming_pull_response::{
    AcknowledgeConfirmation, ModifyAckDeadlineConfirmation,
};
use router::Router;

/// Acknowledges. An id of another subscription, or of an earlier one of the name, has no lease, like
/// an old one.
pub(super) async fn acks(
    router: &Router,
    name: &SubscriptionName,
    subscription: Incarnation,
    asked: Vec<AckId>,
) -> AcknowledgeConfirmation {
    let is_own = |ack: &AckId| ack.subscription == subscription;
    let (own, foreign): (Vec<_>, Vec<_>) = asked.into_iter().partition(is_own);
    let replies = router.acknowledge(name, own.clone(), None).await;
    let secret = router.secret();
    let mut confirmation = AcknowledgeConfirmation {
        invalid_ack_ids: foreign.iter().map(|ack| ack.encode(&secret)).collect(),
        ..AcknowledgeConfirmation::default()
    };
    for (at, ack) in own.iter().enumerate() {
        let list = match replies.as_ref().map(|replies| replies[at]) {
            Ok(AckReply::Acknowledged | AckReply::Superseded | AckReply::Void) => {
                &mut confirmation.ack_ids
            }
            Ok(AckReply::Stale) => &mut confirmation.invalid_ack_ids,
            Ok(AckReply::Unordered) => &mut confirmation.unordered_ack_ids,
            Ok(AckReply::Elsewhere) | Err(_) => &mut confirmation.temporary_failed_ack_ids,
        };
        list.push(ack.encode(&secret));
    }
    confirmation
}

/// Lets leases end later, or at once.
pub(super) async fn deadlines(
    router: &Router,
    name: &SubscriptionName,
    subscription: Incarnation,
    asked: Vec<(AckId, Duration)>,
) -> ModifyAckDeadlineConfirmation {
    let is_own = |(ack, _): &(AckId, Duration)| ack.subscription == subscription;
    let (own, foreign): (Vec<_>, Vec<_>) = asked.into_iter().partition(is_own);
    let replies = router.modify_deadline(name, own.clone(), None).await;
    let secret = router.secret();
    let foreign = foreign.iter().map(|(ack, _)| ack.encode(&secret));
    let mut confirmation = ModifyAckDeadlineConfirmation {
        invalid_ack_ids: foreign.collect(),
        ..ModifyAckDeadlineConfirmation::default()
    };
    for (at, (ack, _)) in own.iter().enumerate() {
        let list = match replies.as_ref().map(|replies| replies[at]) {
            Ok(ModifyReply::Modified) => &mut confirmation.ack_ids,
            Ok(ModifyReply::Stale) => &mut confirmation.invalid_ack_ids,
            Ok(ModifyReply::Elsewhere) | Err(_) => &mut confirmation.temporary_failed_ack_ids,
        };
        list.push(ack.encode(&secret));
    }
    confirmation
}
