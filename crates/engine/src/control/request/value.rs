//! Values that several fields share, and their bounds.

use std::fmt;
use std::time::Duration;

use model::limits::{LABEL_KEY_CHARACTERS_MAX, LABEL_VALUE_CHARACTERS_MAX, LABELS_MAX};
use thiserror::Error;

use crate::control::{Labels, SURVIVAL_LABEL};

/// A duration as it comes over the wire, where it may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignedDuration {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds beside them, of the same sign.
    pub nanos: i32,
}

/// A value is out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidValue {
    /// A number or duration is too small or too large.
    #[error("{field} is {given}, but must be {allowed}")]
    OutOfRange {
        /// The field, as its message on the wire calls it.
        field: &'static str,
        /// The value.
        given: String,
        /// What it might have been.
        allowed: String,
    },
    /// The minimum back-off is above the maximum.
    #[error(
        "retry_policy.minimum_backoff is {minimum:?}, which is above the maximum_backoff of \
         {maximum:?}"
    )]
    BackoffsCrossed {
        /// The minimum.
        minimum: Duration,
        /// The maximum.
        maximum: Duration,
    },
    /// There are too many labels.
    #[error("there are {count} labels, but at most {LABELS_MAX} are allowed")]
    TooManyLabels {
        /// How many there are.
        count: usize,
    },
    /// The key of a label does not follow the grammar.
    #[error(
        "label key {key:?} must have 1 to {LABEL_KEY_CHARACTERS_MAX} lower-case letters, digits, \
         '_' and '-', and begin with a letter"
    )]
    LabelKey {
        /// The key.
        key: String,
    },
    /// The value of a label does not follow the grammar.
    #[error(
        "the value of label {key:?} must have at most {LABEL_VALUE_CHARACTERS_MAX} lower-case \
         letters, digits, '_' and '-'"
    )]
    LabelValue {
        /// The key of the label.
        key: String,
    },
    /// Only a call of its own detaches a subscription.
    #[error("detached can't be set: call DetachSubscription")]
    Detached,
    /// A subscription can send its messages to one place at most.
    #[error(
        "at most one of push_config, bigquery_config, cloud_storage_config and bigtable_config may be set"
    )]
    ManyTargets,
    /// A storage policy that allows no region leaves no place for a message.
    #[error("message_storage_policy must have at least one of allowed_persistence_regions")]
    NoRegions,
    /// No region can have that name.
    #[error("message_storage_policy allows {name:?}, which is not the name of a region")]
    Region {
        /// The name.
        name: String,
    },
    /// A topic must survive something else than there is.
    #[error("the label {SURVIVAL_LABEL} is {given:?}, but must be zone or region")]
    SurvivalGoal {
        /// The value of the label.
        given: String,
    },
}

impl SignedDuration {
    /// The duration, if it is from `min` to `max`, both included.
    pub(super) fn within(
        self,
        field: &'static str,
        min: Duration,
        max: Duration,
    ) -> Result<Duration, InvalidValue> {
        match self.non_negative() {
            Some(duration) if (min..=max).contains(&duration) => Ok(duration),
            _ => Err(InvalidValue::OutOfRange {
                field,
                given: self.to_string(),
                allowed: match max {
                    Duration::MAX => format!("at least {} s", min.as_secs()),
                    _ => format!("from {} s to {} s", min.as_secs(), max.as_secs()),
                },
            }),
        }
    }

    fn non_negative(self) -> Option<Duration> {
        let seconds = u64::try_from(self.seconds).ok()?;
        let nanos = u32::try_from(self.nanos).ok()?;
        (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
    }
}

impl fmt::Display for SignedDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.seconds)?;
        match self.nanos {
            0 => Ok(()),
            nanos => write!(f, " and {nanos} ns"),
        }
    }
}

/// Checks the labels of a resource.
pub(super) fn labels(labels: &Labels) -> Result<Labels, InvalidValue> {
    if labels.len() > LABELS_MAX {
        let count = labels.len();
        return Err(InvalidValue::TooManyLabels { count });
    }
    for (key, value) in labels {
        let fits = (1..=LABEL_KEY_CHARACTERS_MAX).contains(&key.chars().count());
        if !fits || !key.starts_with(is_letter) || !key.chars().all(is_label_character) {
            return Err(InvalidValue::LabelKey { key: key.clone() });
        }
        let fits = value.chars().count() <= LABEL_VALUE_CHARACTERS_MAX;
        if !fits || !value.chars().all(is_label_character) {
            return Err(InvalidValue::LabelValue { key: key.clone() });
        }
    }
    Ok(labels.clone())
}

/// A letter of any language, unless it is an upper-case one.
fn is_letter(character: char) -> bool {
    character.is_alphabetic() && !character.is_uppercase()
}

fn is_label_character(character: char) -> bool {
    is_letter(character) || character.is_numeric() || character == '_' || character == '-'
}
