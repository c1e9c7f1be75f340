//! Topics.

use engine::control::request::{StoragePolicyRequest, TopicRequest};
use engine::control::{StoragePolicy, Topic};
use proto::pubsub;

use super::from_duration;

/// What a client writes about a topic. Fields that only the server sets are ignored.
pub(crate) fn from_topic(topic: pubsub::Topic) -> TopicRequest {
    TopicRequest {
        name: topic.name,
        labels: topic.labels,
        message_storage_policy: topic.message_storage_policy.map(from_storage_policy),
        kms_key_name: !topic.kms_key_name.is_empty(),
        schema_settings: topic.schema_settings.is_some(),
        message_retention_duration: topic.message_retention_duration.map(from_duration),
        ingestion_data_source_settings: topic.ingestion_data_source_settings.is_some(),
        message_transforms: !topic.message_transforms.is_empty(),
        tags: !topic.tags.is_empty(),
    }
}

fn from_storage_policy(policy: pubsub::MessageStoragePolicy) -> StoragePolicyRequest {
    StoragePolicyRequest {
        allowed_persistence_regions: policy.allowed_persistence_regions,
        enforce_in_transit: policy.enforce_in_transit,
    }
}

fn to_storage_policy(policy: StoragePolicy) -> pubsub::MessageStoragePolicy {
    let regions = policy.allowed.iter();
    pubsub::MessageStoragePolicy {
        allowed_persistence_regions: regions.map(|region| region.to_string()).collect(),
        enforce_in_transit: policy.enforce_in_transit,
    }
}

/// What a client reads of a topic.
pub(crate) fn to_topic(topic: Topic) -> pubsub::Topic {
    pubsub::Topic {
        name: topic.name.to_string(),
        labels: topic.labels,
        message_storage_policy: topic.storage_policy.map(to_storage_policy),
        state: pubsub::topic::State::Active.into(),
        ..pubsub::Topic::default()
    }
}
