//! Requests about topics.

use std::collections::{BTreeMap, BTreeSet};

use model::limits::{MESSAGE_RETENTION_MAX, MESSAGE_RETENTION_MIN};
use model::{RegionName, TopicName};

use super::mask::{self, Path};
use super::value::{self, InvalidValue, SignedDuration};
use super::{InvalidRequest, NotSupported};
use crate::control::{
    CreateTopic, Labels, SURVIVAL_LABEL, StoragePolicy, StoragePolicyChange, UpdateTopic,
    survival_goal,
};

/// A topic as a client writes it. Absent fields have the default of their type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRequest {
    /// The full name.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The storage policy, if there is one.
    pub message_storage_policy: Option<StoragePolicyRequest>,
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

/// A storage policy as a client writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoragePolicyRequest {
    /// The names of the regions.
    pub allowed_persistence_regions: Vec<String>,
    /// Whether messages may not even pass through other regions.
    pub enforce_in_transit: bool,
}

/// A field that an update may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Labels,
    MessageStoragePolicy,
    AllowedPersistenceRegions,
    EnforceInTransit,
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
        let labels = labels(&self.labels)?;
        let storage_policy = self.storage_policy()?;
        for field in [
            Field::MessageRetentionDuration,
            Field::KmsKeyName,
            Field::SchemaSettings,
            Field::IngestionDataSourceSettings,
            Field::MessageTransforms,
        ] {
            self.refuse_unsupported(field)?;
        }
        not_supported("tags", self.tags)?;
        Ok(CreateTopic {
            name,
            labels,
            storage_policy,
        })
    }

    /// The command that sets the fields of `mask` to their values here. Other fields don't count.
    ///
    /// # Errors
    /// [`InvalidRequest`] when the mask or a field that it names is wrong, or not supported.
    pub fn update(&self, mask: &[String]) -> Result<UpdateTopic, InvalidRequest> {
        let mut update = UpdateTopic {
            name: TopicName::parse(&self.name)?,
            labels: None,
            storage_policy: None,
        };
        if model::sabotage!("update-beyond-the-mask") {
            update.labels = Some(labels(&self.labels)?);
        }
        let fields = mask::fields("Topic", mask, read_path)?;
        update.storage_policy = self.storage_policy_change(&fields)?;
        for field in fields {
            match field {
                Field::Labels => update.labels = Some(labels(&self.labels)?),
                other => self.refuse_unsupported(other)?,
            }
        }
        Ok(update)
    }

    fn storage_policy(&self) -> Result<Option<StoragePolicy>, InvalidValue> {
        let policy = self.message_storage_policy.as_ref();
        policy.map(StoragePolicyRequest::policy).transpose()
    }

    /// What the fields of a mask say about the storage policy. One that names the whole and a part
    /// means the whole.
    fn storage_policy_change(
        &self,
        fields: &BTreeSet<Field>,
    ) -> Result<Option<StoragePolicyChange>, InvalidValue> {
        if fields.contains(&Field::MessageStoragePolicy) {
            return Ok(Some(StoragePolicyChange::Whole(self.storage_policy()?)));
        }
        let unset = StoragePolicyRequest::default();
        let policy = self.message_storage_policy.as_ref().unwrap_or(&unset);
        let allowed = fields.contains(&Field::AllowedPersistenceRegions);
        let allowed = allowed.then(|| policy.allowed()).transpose()?;
        let enforce_in_transit = fields.contains(&Field::EnforceInTransit);
        let enforce_in_transit = enforce_in_transit.then_some(policy.enforce_in_transit);
        let change = StoragePolicyChange::Parts {
            allowed,
            enforce_in_transit,
        };
        let nothing = StoragePolicyChange::Parts {
            allowed: None,
            enforce_in_transit: None,
        };
        Ok((change != nothing).then_some(change))
    }

    /// Refuses what only a later release serves. Absent, each of these fields is as it always is.
    fn refuse_unsupported(&self, field: Field) -> Result<(), InvalidRequest> {
        match field {
            Field::Labels
            | Field::MessageStoragePolicy
            | Field::AllowedPersistenceRegions
            | Field::EnforceInTransit => Ok(()),
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

impl StoragePolicyRequest {
    fn policy(&self) -> Result<StoragePolicy, InvalidValue> {
        Ok(StoragePolicy {
            allowed: self.allowed()?,
            enforce_in_transit: self.enforce_in_transit,
        })
    }

    fn allowed(&self) -> Result<BTreeSet<RegionName>, InvalidValue> {
        let region = |name: &String| {
            RegionName::parse(name).map_err(|_| InvalidValue::Region { name: name.clone() })
        };
        let allowed: BTreeSet<_> = self
            .allowed_persistence_regions
            .iter()
            .map(region)
            .collect::<Result<_, _>>()?;
        match allowed.is_empty() {
            true => Err(InvalidValue::NoRegions),
            false => Ok(allowed),
        }
    }
}

/// The labels of a topic, one of which may say what it must survive.
fn labels(labels: &Labels) -> Result<Labels, InvalidValue> {
    match labels.get(SURVIVAL_LABEL) {
        Some(goal) if survival_goal(goal).is_none() => Err(InvalidValue::SurvivalGoal {
            given: goal.clone(),
        }),
        _ => value::labels(labels),
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
        "message_storage_policy" => Field::MessageStoragePolicy,
        "message_storage_policy.allowed_persistence_regions" => Field::AllowedPersistenceRegions,
        "message_storage_policy.enforce_in_transit" => Field::EnforceInTransit,
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
