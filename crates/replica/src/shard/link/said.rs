//! A request as it is said on a link.

use std::time::Duration;

use model::ShardNumber;
use model::run::RunPayload;
use tokio::time::Instant;

use super::pending::Caller;
use super::wire::{Ask, Call, CallId};
use crate::shard::request::Request;

/// A request, taken apart.
pub(super) struct Said {
    pub(super) call: Call,
    /// The messages of a publish.
    pub(super) payload: Option<RunPayload>,
    /// Who waits for the answer.
    pub(super) caller: Option<Caller>,
}

impl Said {
    /// Takes a request to a shard apart; `callees_time` turns a moment into one on the clock of
    /// the other node.
    pub(super) fn new(
        call: CallId,
        shard: ShardNumber,
        request: Request,
        callees_time: impl Fn(Instant) -> Duration,
    ) -> Said {
        if !request.is_answered() {
            return Said {
                call: unanswered(shard, request),
                payload: None,
                caller: None,
            };
        }
        let mut messages = None;
        let (ask, caller) = match request {
            Request::Publish {
                topic,
                strand,
                keyed,
                payload,
                deadline,
                answer,
            } => {
                messages = Some(payload);
                let ask = Ask::Publish {
                    topic,
                    strand,
                    keyed,
                    deadline: callees_time(deadline),
                };
                (ask, Caller::Publish(answer))
            }
            Request::Acknowledge {
                subscription,
                ids,
                answer,
            } => {
                let ask = Ask::Acknowledge { subscription, ids };
                (ask, Caller::Acknowledge(answer))
            }
            Request::ModifyDeadline {
                subscription,
                ids,
                answer,
            } => {
                let ask = Ask::ModifyDeadline { subscription, ids };
                (ask, Caller::ModifyDeadline(answer))
            }
            Request::MoveKey { key, to, answer } => {
                (Ask::MoveKey { key, to }, Caller::MoveKey(answer))
            }
            Request::Tell { message, answer } => (Ask::Tell { message }, Caller::Tell(answer)),
            Request::OpenSession { .. } | Request::Session { .. } | Request::LoseSession { .. } => {
                unreachable!("nobody waits for an answer to these")
            }
            Request::Catalogue { .. } | Request::CompareCatalogue { .. } => {
                unreachable!("the catalogue is logged by the leader's own node")
            }
        };
        Said {
            call: Call::Ask { call, shard, ask },
            payload: messages,
            caller: Some(caller),
        }
    }
}

/// A request that is not answered, as it is said.
fn unanswered(shard: ShardNumber, request: Request) -> Call {
    match request {
        Request::OpenSession { open, .. } => Call::OpenSession { shard, open },
        Request::Session { session, say } => Call::Session {
            shard,
            session,
            say,
        },
        request => unreachable!("{request:?} is answered, or not said on a link"),
    }
}
