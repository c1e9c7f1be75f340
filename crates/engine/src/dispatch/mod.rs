//! Which message goes to which session: what a shard's leader decides, and keeps in memory only.
//!
//! [`Leader`] is the whole of it, as a pure state machine: it takes one [`Input`] at a time and
//! answers with [`Output`]s that its shell carries out. Everything it holds can be rebuilt from
//! the tables when another replica takes over.

mod acknowledge;
mod affinity;
mod arrival;
mod arrivals;
mod backoff;
mod call;
mod check;
mod claim;
mod come_back;
mod dead_letter;
mod deadline;
mod dispatcher;
mod ended;
mod exactly_once;
mod fill;
mod flow;
mod lane;
mod leader;
mod lease;
mod loose;
mod message;
mod move_key;
mod moved;
mod offer;
mod open;
mod outbox;
mod pin;
mod proposal;
mod publish;
mod question;
mod reader;
mod ready;
mod redeliver;
mod rewind;
mod sealed;
mod seals;
mod serve;
mod serve_lane;
mod serve_loose;
mod session;
mod settings;
mod step;
mod sweep;
mod transfer_message;
mod transfers;
mod walk;

pub use leader::Leader;
pub use message::{
    AckReply, Credit, Delivered, Ended, ForwardId, Forwarded, Input, ModifyReply, MoveReply,
    OpenSession, Output, ProposalId, PublishReply, PublishRequest, QuestionId, Refused, RequestId,
    SessionKind,
};
pub use transfer_message::TransferMessage;
