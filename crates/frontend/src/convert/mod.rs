//! Resources between the wire and the engine.

mod subscription;
mod topic;

use std::time::Duration;

use engine::control::request::SignedDuration;

pub(crate) use subscription::{from_subscription, to_subscription};
pub(crate) use topic::{from_topic, to_topic};

/// A duration of a client, which may be negative.
fn from_duration(duration: prost_types::Duration) -> SignedDuration {
    SignedDuration {
        seconds: duration.seconds,
        nanos: duration.nanos,
    }
}

/// A duration of ours; none is longer than a few years.
fn to_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).expect("less than a second"),
    }
}
