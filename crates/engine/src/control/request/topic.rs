//! Requests about topics.

use std::collections::BTreeMap;

use model::TopicName;
use model::limits::{MESSAGE_RETENTION_MAX, MESSAGE_RETENTION_MIN};

use super::mask::{self, Path};
use super::value::{self, InvalidValue, SignedDuration};
use super::{InvalidRequest, NotSupported};
use crate::control::{CreateTopic, UpdateTopic};

/// A topic as a client writes it. Absent fields have the default of their type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRequest {
    /// The full name.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The regions of the storage policy, if there is a policy.
    pub message_storage_policy: Option<Vec<String>>,
    /// Whether the name of a key is given.
    pub kms_key_name: bool,
    /// Whether there are schema settings.
    pub schema_settings: bool,
    /// How long the topic itself keeps messages, if at all.
    pub message_retention_duration: Option<SignedDuration>,
    /// Whether there are ingestion settings.
    pub ingestion_data_source_settings: bool,
    /// Whether there are message transforms.
    pub message_transforms: bool,
    /// Whether there are tags.
    pub tags: bool,
}

/// A field that an update may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Labels,
    MessageStoragePolicy,
    MessageRetentionDuration,
    KmsKeyName,
    SchemaSettings,
    IngestionDataSourceSettings,
    MessageTransforms,
}

impl TopicRequest {
    /// The command that creates the topic.
    ///
    /// # Errors
    /// [`InvalidRequest`] when a field is wrong, or not supported.
    pub fn create(&self) -> Result<CreateTopic, InvalidRequest> {
        let name = TopicName::parse(&self.name)?;
        let labels = value::labels(&self.labels)?;
        for field in [
            Field::MessageStoragePolicy,
            Field::MessageRetentionDuration,
            Field::KmsKeyName,
            Field::SchemaSettings,
            Field::IngestionDataSourceSettings,
            Field::MessageTransforms,
        ] {
            self.refuse_unsupported(field)?;
        }
        not_supported("tags", self.tags)?;
        Ok(CreateTopic { name, labels })
    }

    /// The command that sets the fields of `mask` to their values here. Other fields don't count.
    ///
    /// # Errors
    /// [`InvalidRequest`] when the mask or a field that it names is wrong, or not supported.
    pub fn update(&self, mask: &[String]) -> Result<UpdateTopic, InvalidRequest> {
        let name = TopicName::parse(&self.name)?;
        let mut labels = None;
        if model::sabotage!("update-beyond-the-mask") {
            labels = Some(value::labels(&self.labels)?);
        }
        for field in mask::fields("Topic", mask, read_path)? {
            match field {
                Field::Labels => labels = Some(value::labels(&self.labels)?),
                other => self.refuse_unsupported(other)?,
            }
        }
        Ok(UpdateTopic { name, labels })
    }

    /// Refuses what only a later release serves. Absent, each of these fields is as it always is.
    fn refuse_unsupported(&self, field: Field) -> Result<(), InvalidRequest> {
        match field {
            Field::Labels => Ok(()),
            Field::MessageStoragePolicy => match self.message_storage_policy.as_deref() {
                Some([]) => Err(InvalidValue::NoRegions.into()),
                policy => not_supported("message_storage_policy", policy.is_some()),
            },
            Field::MessageRetentionDuration => {
                let name = "message_retention_duration";
                if let Some(retention) = self.message_retention_duration {
                    retention.within(name, MESSAGE_RETENTION_MIN, MESSAGE_RETENTION_MAX)?;
                }
                not_supported(name, self.message_retention_duration.is_some())
            }
            Field::KmsKeyName => not_supported("kms_key_name", self.kms_key_name),
            Field::SchemaSettings => not_supported("schema_settings", self.schema_settings),
            Field::IngestionDataSourceSettings => not_supported(
                "ingestion_data_source_settings",
                self.ingestion_data_source_settings,
            ),
            Field::MessageTransforms => {
                not_supported("message_transforms", self.message_transforms)
            }
        }
    }
}

fn not_supported(field: &'static str, given: bool) -> Result<(), InvalidRequest> {
    let resource = "topic";
    match given {
        true => Err(NotSupported { resource, field }.into()),
        false => Ok(()),
    }
}

fn read_path(path: &str) -> Path<Field> {
    Path::Mutable(match path {
        "labels" => Field::Labels,
        "message_storage_policy"
        | "message_storage_policy.allowed_persistence_regions"
        | "message_storage_policy.enforce_in_transit" => Field::MessageStoragePolicy,
        "message_retention_duration" => Field::MessageRetentionDuration,
        "kms_key_name" => Field::KmsKeyName,
        "schema_settings"
        | "schema_settings.schema"
        | "schema_settings.encoding"
        | "schema_settings.first_revision_id"
        | "schema_settings.last_revision_id" => Field::SchemaSettings,
        "ingestion_data_source_settings" => Field::IngestionDataSourceSettings,
        "message_transforms" => Field::MessageTransforms,
        "name" | "tags" | "state" | "satisfies_pzs" => return Path::Immutable,
        _ => return Path::Unknown,
    })
}
