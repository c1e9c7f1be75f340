//! StreamingPull: one task for each stream, between the client's requests and the session's news.

mod confirm;
mod request;
mod stream;

pub(crate) use request::InvalidStreamRequest;
pub(crate) use stream::{RESPONSES_WAITING_MAX, run};
