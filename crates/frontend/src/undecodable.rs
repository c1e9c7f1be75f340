//! Requests that can't be read. They are answered below the services, with codes that say that the
//! server is to blame, and that clients therefore try again. The caller is to blame, and it helps
//! nobody to send the same bytes twice.

use model::limits::GRPC_REQUEST_BYTES_MAX;
use thiserror::Error;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::{Code, Status};

use crate::status::Failure;

/// *Permanent*: the bytes of a request are no request.
#[derive(Debug, Error)]
pub(crate) enum Undecodable {
    /// It is longer than anything that could be accepted.
    #[error("Request payload size exceeds the limit: {GRPC_REQUEST_BYTES_MAX} bytes.")]
    TooLong,
    /// It is no message of its type, or what it was compressed to is damaged.
    #[error("The request can't be read: {0}.")]
    Damaged(String),
}

/// How the transport begins when it refuses a message for its length, before and after it was
/// decompressed.
const TOO_LONG: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];
/// How it begins when a message, or what it was compressed to, is damaged.
const DAMAGED: [&str; 2] = ["failed to decode Protobuf message", "Error decompressing"];

impl Undecodable {
    /// What the transport's status means; `None` if it is about something else.
    pub(crate) fn of(status: &Status) -> Option<Self> {
        let begins = |texts: &[&str]| texts.iter().any(|text| status.message().starts_with(text));
        match status.code() {
            Code::OutOfRange | Code::ResourceExhausted if begins(&TOO_LONG) => {
                Some(Undecodable::TooLong)
            }
            Code::Internal if begins(&DAMAGED) => {
                Some(Undecodable::Damaged(status.message().to_owned()))
            }
            _ => None,
        }
    }
}

/// Answers a call with what its caller can act on, if its request could not be read.
pub(crate) fn answered(response: Response<Body>) -> Response<Body> {
    // A call that failed before it said anything has its status in its headers.
    let status = Status::from_header_map(response.headers());
    match status.and_then(|status| Undecodable::of(&status)) {
        Some(undecodable) => Status::from(Failure::from(undecodable)).into_http(),
        None => response,
    }
}
