//! How a delivered message is read and printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use proto::pubsub::ReceivedMessage;
use serde_json::{Map, Value, json};
use tonic::Status;

use crate::cli::Failure;
use crate::cli::output::Show;
use crate::cli::resource::pairs;

/// Decodes what a node delivered.
pub(crate) fn decode(encoded: &[Bytes]) -> Result<Vec<ReceivedMessage>, Failure> {
    let received = proto::wire::decode_all(encoded);
    received.map_err(|why| Status::internal(format!("a delivery can't be decoded: {why}")).into())
}

impl Show for ReceivedMessage {
    const COLUMNS: &'static [&'static str] = &[
        "DATA",
        "MESSAGE_ID",
        "ORDERING_KEY",
        "ATTRIBUTES",
        "DELIVERY_ATTEMPT",
        "ACK_ID",
    ];

    fn cells(&self) -> Vec<String> {
        let message = self.message.clone().unwrap_or_default();
        let attempt = (self.delivery_attempt > 0).then(|| self.delivery_attempt.to_string());
        vec![
            String::from_utf8_lossy(&message.data).into_owned(),
            message.message_id,
            message.ordering_key,
            pairs(&message.attributes),
            attempt.unwrap_or_default(),
            self.ack_id.clone(),
        ]
    }

    fn json(&self) -> Value {
        let message = self.message.clone().unwrap_or_default();
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put(
            "message",
            json!({
                // The API's JSON has bytes in base64.
                "data": STANDARD.encode(&message.data),
                "attributes": message.attributes,
                "messageId": message.message_id,
                "publishTime": message.publish_time.map(|time| time.to_string()),
                "orderingKey": message.ordering_key,
            }),
        );
        if !self.ack_id.is_empty() {
            put("ackId", json!(self.ack_id));
        }
        if self.delivery_attempt > 0 {
            put("deliveryAttempt", json!(self.delivery_attempt));
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use proto::pubsub::PubsubMessage;

    use super::*;

    #[test]
    fn json_keeps_bytes_that_are_no_text() {
        let data = Bytes::from_static(&[0, 159, 255]);
        let message = PubsubMessage {
            data,
            ..PubsubMessage::default()
        };
        let received = ReceivedMessage {
            message: Some(message),
            ..ReceivedMessage::default()
        };
        assert_eq!(received.json()["message"]["data"], "AJ//");
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let received = ReceivedMessage::default();
        assert_eq!(received.cells().len(), ReceivedMessage::COLUMNS.len());
    }
}
