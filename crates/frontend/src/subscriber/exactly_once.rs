//! Acks that failed, as clients hear of them.
//!
//! On exactly-once subscriptions the status carries one entry for each failing id, in the details.
//! If those are more than the client takes, it carries as many as fit, and a code that makes Google's
//! clients ask again for all ids that are not among them: what failed fails again, and what succeeded
//! succeeds again.

use engine::dispatch::{AckReply, ModifyReply};

use super::ack_ids::{self, InvalidAckIds};

/// What one id of a request came to, in the words that clients look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckFailure {
    /// The delivery has no live lease, or the id is none of the subscription; no retry will help.
    Invalid,
    /// An earlier message of the key is not acknowledged yet.
    Unordered,
}

impl AckFailure {
    /// The value of the id's entry. Clients retry what begins with `TRANSIENT_`.
    pub(crate) fn metadata(self) -> &'static str {
        match self {
            AckFailure::Invalid => "PERMANENT_FAILURE_INVALID_ACK_ID",
            AckFailure::Unordered => "TRANSIENT_FAILURE_UNORDERED_ACK_ID",
        }
    }
}

/// Whose ids a request has, and who asks.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Whether the subscription is exactly-once.
    pub(crate) exactly_once: bool,
    /// How many bytes of failed ids the client takes.
    pub(crate) failures_bytes_max: usize,
}

/// The acks of one request did not all succeed.
#[derive(Debug)]
pub(crate) enum AckFailures {
    /// Exactly-once: these ids failed, at least one; all others of the request succeeded.
    Ids(Vec<(String, AckFailure)>),
    /// Exactly-once: these ids failed, at least one. More did than the client can be told at once.
    SomeIds(Vec<(String, AckFailure)>),
    /// At least once: some messages are just being sent again, so their acks do not count. All
    /// others do. A retry soon finds that they were sent.
    Superseded,
    /// At least once: some messages wait to be sent again, so their acks do not count. All others
    /// do.
    Void,
    /// At least once: this id is none of the subscription. All others count.
    NotOurs(InvalidAckIds),
}

impl AckFailures {
    /// The failures among the replies to `ids`, if there are any; no reply is to an id that is none
    /// of the subscription.
    pub(crate) fn of_acks(
        ids: Vec<String>,
        replies: &[Option<AckReply>],
        asked: &Asked,
    ) -> Result<(), AckFailures> {
        if !asked.exactly_once {
            check_own(&ids, replies)?;
        }
        if replies.contains(&Some(AckReply::Void)) {
            return Err(AckFailures::Void);
        }
        // The router asks whoever owns the key, and answers only what that says.
        let retry = [AckReply::Superseded, AckReply::Elsewhere].map(Some);
        if replies.iter().any(|reply| retry.contains(reply)) {
            return Err(AckFailures::Superseded);
        }
        Self::collect(ids, replies, asked, |reply| match reply {
            AckReply::Acknowledged
            | AckReply::Superseded
            | AckReply::Void
            | AckReply::Elsewhere => None,
            AckReply::Stale => Some(AckFailure::Invalid),
            AckReply::Unordered => Some(AckFailure::Unordered),
        })
    }

    /// The same for deadlines.
    pub(crate) fn of_deadlines(
        ids: Vec<String>,
        replies: &[Option<ModifyReply>],
        asked: &Asked,
    ) -> Result<(), AckFailures> {
        if !asked.exactly_once {
            check_own(&ids, replies)?;
        }
        Self::collect(ids, replies, asked, |reply| match reply {
            // The router asks whoever owns the key, and answers only what that says.
            ModifyReply::Modified | ModifyReply::Elsewhere => None,
            ModifyReply::Stale => Some(AckFailure::Invalid),
        })
    }

    fn collect<R: Copy>(
        ids: Vec<String>,
        replies: &[Option<R>],
        asked: &Asked,
        failure: impl Fn(R) -> Option<AckFailure>,
    ) -> Result<(), AckFailures> {
        let failure = |reply: &Option<R>| reply.map_or(Some(AckFailure::Invalid), &failure);
        let failures = ids.into_iter().zip(replies);
        let failures = failures.filter_map(|(id, reply)| Some((id, failure(reply)?)));
        let failures = failures.collect::<Vec<_>>();
        let fits = fitting(&failures, asked.failures_bytes_max);
        match failures {
            none if none.is_empty() => Ok(()),
            all if fits == all.len() => Err(AckFailures::Ids(all)),
            // No id of ours is so long.
            all if fits == 0 => Err(AckFailures::NotOurs(ack_ids::malformed(&all[0].0))),
            mut all => {
                all.truncate(fits);
                Err(AckFailures::SomeIds(all))
            }
        }
    }
}

/// Names the first id that is none of the subscription.
fn check_own<R>(ids: &[String], replies: &[Option<R>]) -> Result<(), AckFailures> {
    let foreign = replies.iter().position(Option::is_none);
    match foreign {
        Some(place) => Err(AckFailures::NotOurs(ack_ids::malformed(&ids[place]))),
        None => Ok(()),
    }
}

/// How many of the failures, from the first on, take at most so many bytes as entries of a map.
fn fitting(failures: &[(String, AckFailure)], bytes_max: usize) -> usize {
    // Tags and lengths of an entry, its key and its value.
    const FRAMING_BYTES: usize = 12;
    let sizes = failures
        .iter()
        .map(|(id, failure)| id.len() + failure.metadata().len() + FRAMING_BYTES);
    let ends = sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    ends.take_while(|end| *end <= bytes_max || model::sabotage!("trailers-of-any-size"))
        .count()
}

#[cfg(test)]
mod tests {
    use model::limits::ACK_FAILURES_BYTES_DEFAULT;

    use super::*;

    fn asked(exactly_once: bool) -> Asked {
        Asked {
            exactly_once,
            failures_bytes_max: ACK_FAILURES_BYTES_DEFAULT,
        }
    }

    fn ids(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{number:087}")).collect()
    }

    #[test]
    fn no_more_failures_are_told_than_the_client_takes() {
        let of = |count| {
            let replies = vec![Some(AckReply::Stale); count];
            AckFailures::of_acks(ids(count), &replies, &asked(true))
        };
        assert!(matches!(of(37), Err(AckFailures::Ids(told)) if told.len() == 37));
        assert!(matches!(of(400), Err(AckFailures::SomeIds(told)) if told.len() == 38));
        assert!(of(0).is_ok());
    }

    #[test]
    fn what_is_no_id_of_the_subscription_fails_alone_or_is_refused() {
        let replies = [Some(AckReply::Acknowledged), None];
        let exactly_once = AckFailures::of_acks(ids(2), &replies, &asked(true));
        let expected = [(ids(2).remove(1), AckFailure::Invalid)];
        assert!(matches!(exactly_once, Err(AckFailures::Ids(told)) if told == expected));
        let at_least_once = AckFailures::of_acks(ids(2), &replies, &asked(false));
        assert!(matches!(at_least_once, Err(AckFailures::NotOurs(_))));
    }
}
