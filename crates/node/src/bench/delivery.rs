//! A delivered message, as far as a consumer of this load needs it.
//!
//! What else a `ReceivedMessage` has (id, time, key, attributes) is skipped without an allocation:
//! the client shares its processors with the node that it measures.

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::payload::Stamp;

/// `ReceivedMessage`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Delivery {
    /// `ack_id`.
    #[prost(string, tag = "1")]
    pub(crate) ack_id: String,
    #[prost(message, optional, tag = "2")]
    message: Option<Body>,
}

/// `PubsubMessage`.
#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(bytes = "bytes", tag = "1")]
    data: Bytes,
}

impl Delivery {
    /// Decodes one delivery; its data is a slice of the response.
    pub(crate) fn read(encoded: Bytes) -> Result<(Stamp, Self), Status> {
        let delivery = Self::decode(encoded)
            .map_err(|why| Status::data_loss(format!("a delivery can't be decoded: {why}")))?;
        let data = delivery
            .message
            .as_ref()
            .map_or(&[][..], |message| &message.data[..]);
        match Stamp::read(data) {
            Some(stamp) => Ok((stamp, delivery)),
            None => Err(Status::data_loss(
                "a message arrived that this load did not publish",
            )),
        }
    }
}
