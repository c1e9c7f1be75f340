//! Acks that failed, as clients hear of them.
//!
//! On exactly-once subscriptions the status carries one entry for each failing id, in the details.

use engine::dispatch::{AckReply, ModifyReply};

/// What one id of a request came to, in the words that clients look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckFailure {
    /// The delivery has no live lease; no retry will help.
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

/// The acks of one request did not all succeed.
#[derive(Debug)]
pub(crate) enum AckFailures {
    /// Exactly-once: these ids failed, at least one; all others of the request succeeded.
    Ids(Vec<(String, AckFailure)>),
    /// At least once: some messages are just being sent again, so their acks do not count. All
    /// others do. A retry soon finds that they were sent.
    Superseded,
    /// At least once: some messages wait to be sent again, so their acks do not count. All others
    /// do.
    Void,
}

impl AckFailures {
    /// The failures among the replies to `ids`, if there are any.
    pub(crate) fn of_acks(ids: Vec<String>, replies: &[AckReply]) -> Result<(), AckFailures> {
        if replies.contains(&AckReply::Void) {
            return Err(AckFailures::Void);
        }
        if replies.contains(&AckReply::Superseded) {
            return Err(AckFailures::Superseded);
        }
        Self::collect(ids, replies, |reply| match reply {
            AckReply::Acknowledged | AckReply::Superseded | AckReply::Void => None,
            AckReply::Stale => Some(AckFailure::Invalid),
            AckReply::Unordered => Some(AckFailure::Unordered),
        })
    }

    /// The failures among the replies to `ids`, if there are any.
    pub(crate) fn of_deadlines(
        ids: Vec<String>,
        replies: &[ModifyReply],
    ) -> Result<(), AckFailures> {
        Self::collect(ids, replies, |reply| match reply {
            ModifyReply::Modified => None,
            ModifyReply::Stale => Some(AckFailure::Invalid),
        })
    }

    fn collect<R: Copy>(
        ids: Vec<String>,
        replies: &[R],
        failure: impl Fn(R) -> Option<AckFailure>,
    ) -> Result<(), AckFailures> {
        assert_eq!(ids.len(), replies.len(), "one reply for each id");
        let failures = ids.into_iter().zip(replies);
        let failures = failures.filter_map(|(id, reply)| Some((id, failure(*reply)?)));
        match failures.collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            failures => Err(AckFailures::Ids(failures)),
        }
    }
}
