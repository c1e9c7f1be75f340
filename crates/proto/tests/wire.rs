//! What passes encoded is, on the wire, what Google's declarations say.
//!
//! The other side of each comparison is a message built at run time from the
//! published descriptor set, which knows nothing of our shortcuts.

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};
use prost_types::Timestamp;
use proto::pubsub::streaming_pull_response::{AcknowledgeConfirmation, SubscriptionProperties};
use proto::pubsub::{
    PublishRequest, PubsubMessage, PullResponse, ReceivedMessage, StreamingPullResponse,
};
use proto::wire::{decode_all, encode_all, encode_received_message};

proptest! {
    #[test]
    fn publish_requests_pass_as_declared(topic: String, messages in vec(pubsub_message(), 0..5)) {
        let mut declared = declared("google.pubsub.v1.PublishRequest");
        declared.set_field_by_name("topic", Value::String(topic.clone()));
        set_list(&mut declared, "messages", &messages);

        let request = PublishRequest::decode(declared.encode_to_vec().as_slice()).unwrap();
        prop_assert_eq!(&request.topic, &topic);
        prop_assert_eq!(decode_all::<PubsubMessage>(&request.messages).unwrap(), messages.clone());

        let ours = PublishRequest { topic, messages: encode_all(&messages) };
        let read = DynamicMessage::decode(declared.descriptor(), ours.encode_to_vec().as_slice()).unwrap();
        for field in ["topic", "messages"] {
            prop_assert_eq!(read.get_field_by_name(field), declared.get_field_by_name(field));
        }
    }

    #[test]
    fn pull_responses_pass_as_declared(received in vec(received_message(), 0..5)) {
        let response = PullResponse { received_messages: encode_in_parts(&received) };
        let declared = DynamicMessage::decode(
            declared("google.pubsub.v1.PullResponse").descriptor(),
            response.encode_to_vec().as_slice(),
        ).unwrap();
        prop_assert_eq!(get_list::<ReceivedMessage>(&declared, "received_messages"), received.clone());

        let back = PullResponse::decode(declared.encode_to_vec().as_slice()).unwrap();
        prop_assert_eq!(decode_all::<ReceivedMessage>(&back.received_messages).unwrap(), received);
    }

    #[test]
    fn streaming_pull_responses_pass_as_declared(
        received in vec(received_message(), 0..5),
        ack_ids: Vec<String>,
        exactly_once_delivery_enabled: bool,
    ) {
        let response = StreamingPullResponse {
            received_messages: encode_in_parts(&received),
            acknowledge_confirmation: Some(AcknowledgeConfirmation { ack_ids, ..Default::default() }),
            modify_ack_deadline_confirmation: None,
            subscription_properties: Some(SubscriptionProperties {
                exactly_once_delivery_enabled,
                message_ordering_enabled: true,
            }),
        };
        let declared = DynamicMessage::decode(
            declared("google.pubsub.v1.StreamingPullResponse").descriptor(),
            response.encode_to_vec().as_slice(),
        ).unwrap();
        prop_assert_eq!(get_list::<ReceivedMessage>(&declared, "received_messages"), received.clone());

        let back = StreamingPullResponse::decode(declared.encode_to_vec().as_slice()).unwrap();
        prop_assert_eq!(decode_all::<ReceivedMessage>(&back.received_messages).unwrap(), received);
        prop_assert_eq!(back.acknowledge_confirmation, response.acknowledge_confirmation);
        prop_assert_eq!(back.subscription_properties, response.subscription_properties);
    }

    #[test]
    fn received_messages_encode_as_declared_wherever_the_parts_are_cut(
        received in received_message(),
        cuts: [Index; 2],
    ) {
        let message = received.message.clone().unwrap_or_default().encode_to_vec();
        let mut at = cuts.map(|cut| cut.index(message.len() + 1));
        at.sort();
        let parts = [&message[..at[0]], &message[at[0]..at[1]], &message[at[1]..]];

        let encoded = encode_received_message(&received.ack_id, &parts, received.delivery_attempt);
        prop_assert_eq!(encoded, received.encode_to_vec());
    }
}

#[test]
fn published_messages_are_slices_of_the_request() {
    let message = PubsubMessage {
        data: vec![7; 1000].into(),
        ..Default::default()
    };
    let request = PublishRequest {
        topic: "t".into(),
        messages: encode_all(&[message]),
    };
    let buffer = Bytes::from(request.encode_to_vec());

    let decoded = PublishRequest::decode(buffer.clone()).unwrap();
    let message = decoded.messages[0].as_ptr_range();
    let buffer = buffer.as_ptr_range();
    assert!(buffer.start <= message.start && message.end <= buffer.end);
}

#[test]
fn what_is_no_message_passes_but_does_not_decode() {
    // A field of wire type 7, which there is not.
    let request = PublishRequest {
        topic: "t".into(),
        messages: vec![Bytes::from_static(&[7])],
    };
    let passed = PublishRequest::decode(request.encode_to_vec().as_slice()).unwrap();
    assert_eq!(passed, request);
    assert!(decode_all::<PubsubMessage>(&passed.messages).is_err());
}

/// An empty message of a type as Google declares it.
fn declared(name: &str) -> DynamicMessage {
    let pool = DescriptorPool::decode(proto::FILE_DESCRIPTOR_SET).unwrap();
    DynamicMessage::new(pool.get_message_by_name(name).unwrap())
}

fn set_list<M: Message>(message: &mut DynamicMessage, field: &str, elements: &[M]) {
    let descriptor = message.descriptor().get_field_by_name(field).unwrap();
    let kind = descriptor.kind().as_message().unwrap().clone();
    let elements = elements.iter().map(|element| {
        let mut dynamic = DynamicMessage::new(kind.clone());
        dynamic.transcode_from(element).unwrap();
        Value::Message(dynamic)
    });
    message.set_field(&descriptor, Value::List(elements.collect()));
}

fn get_list<M: Message + Default>(message: &DynamicMessage, field: &str) -> Vec<M> {
    let list = message.get_field_by_name(field).unwrap();
    let elements = list.as_list().unwrap().iter();
    elements
        .map(|element| element.as_message().unwrap().transcode_to().unwrap())
        .collect()
}

/// Encodes as a node does: the client's bytes, then what the server adds.
fn encode_in_parts(received: &[ReceivedMessage]) -> Vec<Bytes> {
    let encode = |received: &ReceivedMessage| {
        let mut published = received.message.clone().unwrap();
        let added = PubsubMessage {
            message_id: std::mem::take(&mut published.message_id),
            publish_time: published.publish_time.take(),
            ..Default::default()
        };
        let parts = [published.encode_to_vec(), added.encode_to_vec()];
        let parts = [parts[0].as_slice(), parts[1].as_slice()];
        encode_received_message(&received.ack_id, &parts, received.delivery_attempt)
    };
    received.iter().map(encode).collect()
}

fn received_message() -> impl Strategy<Value = ReceivedMessage> {
    let delivery_attempt = prop_oneof![Just(0), 1..1000, any::<i32>()];
    (any::<String>(), pubsub_message(), delivery_attempt).prop_map(
        |(ack_id, message, delivery_attempt)| ReceivedMessage {
            ack_id,
            message: Some(message),
            delivery_attempt,
        },
    )
}

fn pubsub_message() -> impl Strategy<Value = PubsubMessage> {
    // Around 127 bytes, lengths begin to take two bytes.
    let data = vec(any::<u8>(), 0..300).prop_map(Bytes::from);
    let attributes = btree_map(any::<String>(), any::<String>(), 0..3);
    let publish_time = proptest::option::of(
        (any::<i64>(), any::<i32>()).prop_map(|(seconds, nanos)| Timestamp { seconds, nanos }),
    );
    (
        data,
        attributes,
        any::<String>(),
        publish_time,
        any::<String>(),
    )
        .prop_map(
            |(data, attributes, message_id, publish_time, ordering_key)| PubsubMessage {
                data,
                attributes,
                message_id,
                publish_time,
                ordering_key,
            },
        )
}
