//! What a publish request must be like, checked before anything is stored: one bad message
//! refuses the whole request.

use bytes::Bytes;
use model::limits::{
    ATTRIBUTE_KEY_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_MAX, ORDERING_KEY_BYTES_MAX,
    PUBLISH_MESSAGES_MAX, PUBLISH_REQUEST_BYTES_MAX,
};
use model::name::InvalidName;
use prost::Message;
use proto::pubsub::{PublishRequest, PubsubMessage};
use thiserror::Error;

/// Why a publish request is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidPublish {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error("The request has no messages: publish between 1 and {PUBLISH_MESSAGES_MAX}.")]
    NoMessages,
    #[error(
        "The value for message_count is too large. You passed {count} in the request, but the \
         maximum value is {PUBLISH_MESSAGES_MAX}."
    )]
    TooManyMessages { count: usize },
    #[error(
        "The value for request_size is too large. You passed {bytes} in the request, but the \
         maximum value is {PUBLISH_REQUEST_BYTES_MAX}."
    )]
    TooLarge { bytes: usize },
    #[error("Message {index} can't be decoded: {why}.")]
    Malformed { index: usize, why: String },
    #[error("Message {index} must have either non-empty data or at least one attribute.")]
    Empty { index: usize },
    #[error("Message {index} has {count} attributes, but the maximum is {ATTRIBUTES_MAX}.")]
    TooManyAttributes { index: usize, count: usize },
    #[error("Message {index} has an attribute without a key.")]
    NoAttributeKey { index: usize },
    #[error(
        "Message {index} has an attribute key of {bytes} bytes, but the maximum is \
         {ATTRIBUTE_KEY_BYTES_MAX}."
    )]
    AttributeKey { index: usize, bytes: usize },
    #[error(
        "Message {index} has an attribute value of {bytes} bytes, but the maximum is \
         {ATTRIBUTE_VALUE_BYTES_MAX}."
    )]
    AttributeValue { index: usize, bytes: usize },
    #[error(
        "Message {index} has an ordering key of {bytes} bytes, but the maximum is \
         {ORDERING_KEY_BYTES_MAX}."
    )]
    OrderingKey { index: usize, bytes: usize },
    #[error(
        "In a single publish request, all messages must have no ordering key or they must all \
         have the same ordering key. [code=539b]"
    )]
    MixedKeys,
}

/// Checks a whole request; gives the ordering key of its messages, empty for none.
pub(crate) fn check(request: &PublishRequest) -> Result<String, InvalidPublish> {
    match request.messages.len() {
        0 => return Err(InvalidPublish::NoMessages),
        count if count > PUBLISH_MESSAGES_MAX => {
            return Err(InvalidPublish::TooManyMessages { count });
        }
        _ => {}
    }
    let bytes = request.encoded_len();
    if bytes > PUBLISH_REQUEST_BYTES_MAX {
        return Err(InvalidPublish::TooLarge { bytes });
    }
    let mut key: Option<String> = None;
    let mut mixed = false;
    for (index, message) in request.messages.iter().enumerate() {
        let found = check_message(index, message)?;
        mixed |= key.as_ref().is_some_and(|key| *key != found);
        key = Some(found);
    }
    if mixed && !model::sabotage!("mixed-keys-accepted") {
        Err(InvalidPublish::MixedKeys)
    } else {
        Ok(key.unwrap_or_default())
    }
}

/// Checks one encoded message; gives its ordering key.
fn check_message(index: usize, encoded: &Bytes) -> Result<String, InvalidPublish> {
    let message =
        PubsubMessage::decode(encoded.clone()).map_err(|why| InvalidPublish::Malformed {
            index,
            why: why.to_string(),
        })?;
    if message.data.is_empty() && message.attributes.is_empty() {
        return Err(InvalidPublish::Empty { index });
    }
    let count = message.attributes.len();
    if count > ATTRIBUTES_MAX {
        return Err(InvalidPublish::TooManyAttributes { index, count });
    }
    for (key, value) in &message.attributes {
        let bytes = (key.len(), value.len());
        match bytes {
            (0, _) => return Err(InvalidPublish::NoAttributeKey { index }),
            (bytes, _) if bytes > ATTRIBUTE_KEY_BYTES_MAX => {
                return Err(InvalidPublish::AttributeKey { index, bytes });
            }
            (_, bytes) if bytes > ATTRIBUTE_VALUE_BYTES_MAX => {
                return Err(InvalidPublish::AttributeValue { index, bytes });
            }
            _ => {}
        }
    }
    let bytes = message.ordering_key.len();
    if bytes > ORDERING_KEY_BYTES_MAX {
        return Err(InvalidPublish::OrderingKey { index, bytes });
    }
    Ok(message.ordering_key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn message(data: usize, key: &str) -> PubsubMessage {
        PubsubMessage {
            data: vec![b'x'; data].into(),
            ordering_key: key.into(),
            ..PubsubMessage::default()
        }
    }

    fn with_attribute(key: String, value: String) -> PubsubMessage {
        PubsubMessage {
            attributes: BTreeMap::from([(key, value)]),
            ..PubsubMessage::default()
        }
    }

    fn checked(messages: &[PubsubMessage]) -> Result<String, InvalidPublish> {
        check(&PublishRequest {
            topic: "projects/p/topics/abc".into(),
            messages: proto::wire::encode_all(messages),
        })
    }

    #[test]
    fn between_one_and_a_thousand_messages() {
        assert_eq!(checked(&[]), Err(InvalidPublish::NoMessages));
        assert!(checked(&vec![message(1, ""); 1_000]).is_ok());
        let many = checked(&vec![message(1, ""); 1_001]);
        assert_eq!(many, Err(InvalidPublish::TooManyMessages { count: 1_001 }));
    }

    #[test]
    fn ten_million_bytes_and_not_one_more() {
        let overhead = PublishRequest {
            topic: "projects/p/topics/abc".into(),
            messages: proto::wire::encode_all(&[message(9_000_000, "")]),
        }
        .encoded_len()
            - 9_000_000;
        let fitting = PUBLISH_REQUEST_BYTES_MAX - overhead;
        assert!(checked(&[message(fitting, "")]).is_ok());
        let larger = checked(&[message(fitting + 1, "")]);
        assert_eq!(
            larger,
            Err(InvalidPublish::TooLarge {
                bytes: PUBLISH_REQUEST_BYTES_MAX + 1
            })
        );
    }

    #[test]
    fn data_or_an_attribute() {
        let empty = checked(&[message(1, ""), message(0, "k")]);
        assert_eq!(empty, Err(InvalidPublish::Empty { index: 1 }));
        assert!(checked(&[with_attribute("k".into(), String::new())]).is_ok());
    }

    #[test]
    fn attributes_have_bounds() {
        let long = |bytes| "k".repeat(bytes);
        assert!(checked(&[with_attribute(long(256), long(1_024))]).is_ok());
        assert!(matches!(
            checked(&[with_attribute(long(257), String::new())]),
            Err(InvalidPublish::AttributeKey {
                index: 0,
                bytes: 257
            })
        ));
        assert!(matches!(
            checked(&[with_attribute("k".into(), long(1_025))]),
            Err(InvalidPublish::AttributeValue {
                index: 0,
                bytes: 1_025
            })
        ));
        assert!(matches!(
            checked(&[with_attribute(String::new(), long(1))]),
            Err(InvalidPublish::NoAttributeKey { index: 0 })
        ));
        let many = |count: usize| PubsubMessage {
            attributes: (0..count)
                .map(|at| (format!("k{at}"), String::new()))
                .collect(),
            ..PubsubMessage::default()
        };
        assert!(checked(&[many(100)]).is_ok());
        let too_many = checked(&[many(101)]);
        assert_eq!(
            too_many,
            Err(InvalidPublish::TooManyAttributes {
                index: 0,
                count: 101
            })
        );
        assert!(checked(&[with_attribute("googclient_traceparent".into(), "x".into())]).is_ok());
    }

    #[test]
    fn one_key_or_none() {
        assert_eq!(
            checked(&[message(1, "k1"), message(1, "k1")]).as_deref(),
            Ok("k1")
        );
        assert_eq!(
            checked(&[message(1, "k1"), message(1, "k2")]),
            Err(InvalidPublish::MixedKeys)
        );
        assert_eq!(
            checked(&[message(1, ""), message(1, "k1")]),
            Err(InvalidPublish::MixedKeys)
        );
        assert!(checked(&[message(1, &"k".repeat(1_024))]).is_ok());
        assert!(matches!(
            checked(&[message(1, &"k".repeat(1_025))]),
            Err(InvalidPublish::OrderingKey {
                index: 0,
                bytes: 1_025
            })
        ));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let request = PublishRequest {
            topic: "projects/p/topics/abc".into(),
            messages: vec![Bytes::from_static(&[0xff; 3])],
        };
        assert!(matches!(
            check(&request),
            Err(InvalidPublish::Malformed { index: 0, .. })
        ));
    }
}
