//! What a client does with a delivery.

use std::time::Duration;

use crate::chance::Chance;
use crate::plan::Consumers;

/// Something that a client does with a delivery, at some moment after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Ack,
    Nack,
    /// Asks for so much more time.
    Extend(Duration),
}

/// What a client will do, and when from now.
pub(super) fn acts(
    consumers: &Consumers,
    ack_deadline: Duration,
    chance: &mut Chance,
) -> Vec<(Duration, Act)> {
    let soon = chance.up_to(Duration::from_secs(2));
    let dice = chance.below(100);
    let mut below = 0;
    let mut is = |percent: u64| {
        below += percent;
        dice < below
    };
    if is(consumers.nack) {
        vec![(soon, Act::Nack)]
    } else if is(consumers.forget) {
        Vec::new()
    } else if is(consumers.extend) {
        let more = ack_deadline + chance.up_to(ack_deadline);
        let ack = soon + chance.between(Duration::ZERO, more);
        vec![(soon, Act::Extend(more)), (ack, Act::Ack)]
    } else if is(consumers.late) {
        let late = ack_deadline + chance.up_to(Duration::from_secs(5));
        vec![(late, Act::Ack)]
    } else if is(consumers.repeat) {
        let again = soon + chance.up_to(2 * ack_deadline);
        vec![(soon, Act::Ack), (again, Act::Ack)]
    } else {
        vec![(soon, Act::Ack)]
    }
}
