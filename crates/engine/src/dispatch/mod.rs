//! Which message goes to which session: what a shard's leader decides, and keeps in memory only.
//!
//! [`Leader`] is the whole of it, as a pure state machine: it takes one [`Input`] at a time and
//! answers with [`Output`]s that its shell carries out. Everything it holds can be rebuilt from
//! the tables when another replica takes over.

mod message;

pub use message::{
    AckReply, Credit, Delivered, Ended, ForwardId, Forwarded, Input, ModifyReply, OpenSession,
    Output, ProposalId, PublishReply, PublishRequest, Refused, RequestId, SessionKind,
};
