use std::time::Duration;

use super::*;
use crate::control::SubscriptionChange;

fn topic() -> TopicRequest {
    TopicRequest {
        name: "projects/p/topics/top-1".into(),
        ..TopicRequest::default()
    }
}

fn subscription() -> SubscriptionRequest {
    SubscriptionRequest {
        name: "projects/p/subscriptions/sub-1".into(),
        topic: "projects/p/topics/top-1".into(),
        ..SubscriptionRequest::default()
    }
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration { seconds, nanos: 0 }
}

fn mask(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| path.to_string()).collect()
}

/// A field and how a request sets it.
type Set<R> = (&'static str, fn(&mut R));

#[test]
fn every_field_of_a_later_release_is_refused_by_name() {
    let topics: [Set<TopicRequest>; 6] = [
        ("message_retention_duration", |it| {
            it.message_retention_duration = Some(seconds(600))
        }),
        ("kms_key_name", |it| it.kms_key_name = true),
        ("schema_settings", |it| it.schema_settings = true),
        ("ingestion_data_source_settings", |it| {
            it.ingestion_data_source_settings = true
        }),
        ("message_transforms", |it| it.message_transforms = true),
        ("tags", |it| it.tags = true),
    ];
    for (field, set) in topics {
        let mut request = topic();
        set(&mut request);
        let refused = InvalidRequest::from(NotSupported {
            resource: "topic",
            field,
        });
        assert_eq!(request.create(), Err(refused.clone()));
        if field != "tags" {
            assert_eq!(request.update(&mask(&[field])), Err(refused));
            assert!(topic().update(&mask(&[field])).is_ok(), "{field} unset");
        }
    }
    let subscriptions: [Set<SubscriptionRequest>; 9] = [
        ("push_config", |it| it.push_config = true),
        ("bigquery_config", |it| it.bigquery_config = true),
        ("cloud_storage_config", |it| it.cloud_storage_config = true),
        ("bigtable_config", |it| it.bigtable_config = true),
        ("retain_acked_messages", |it| {
            it.retain_acked_messages = true
        }),
        ("message_transforms", |it| it.message_transforms = true),
        ("message_retention_duration", |it| {
            it.message_retention_duration = Some(seconds(600))
        }),
        ("expiration_policy.ttl", |it| {
            it.expiration_policy = Some(Some(seconds(86_400)))
        }),
        ("tags", |it| it.tags = true),
    ];
    for (field, set) in subscriptions {
        let mut request = subscription();
        set(&mut request);
        let refused = InvalidRequest::from(NotSupported {
            resource: "subscription",
            field,
        });
        assert_eq!(request.create(), Err(refused.clone()));
        if field != "tags" {
            assert_eq!(request.update(&mask(&[field])), Err(refused));
            assert!(
                subscription().update(&mask(&[field])).is_ok(),
                "{field} unset"
            );
        }
    }
}

#[test]
fn durations_are_checked_to_the_nanosecond() {
    let of = |seconds, nanos| {
        let mut request = subscription();
        request.retry_policy = Some(RetryRequest {
            minimum_backoff: Some(SignedDuration { seconds, nanos }),
            maximum_backoff: None,
        });
        request.create().map(|create| create.retry.unwrap().minimum)
    };
    assert_eq!(of(0, 0), Ok(Duration::ZERO));
    assert_eq!(of(1, 500_000_000), Ok(Duration::from_millis(1_500)));
    assert_eq!(of(600, 0), Ok(Duration::from_secs(600)));
    for (seconds, nanos) in [
        (600, 1),
        (0, -1),
        (-1, 0),
        (1, -1),
        (0, 1_000_000_000),
        (i64::MAX, 0),
    ] {
        assert!(of(seconds, nanos).is_err(), "{seconds} s {nanos} ns");
    }
}

#[test]
fn labels_follow_the_grammar() {
    let with = |key: &str, value: &str| {
        let mut request = topic();
        request.labels = [(key.to_owned(), value.to_owned())].into();
        request.create().is_ok()
    };
    let longest = "a".repeat(63);
    for (key, value) in [
        ("a", ""),
        ("a_b-9", "9-_z"),
        ("schlüssel", "ü"),
        (&longest, &longest),
    ] {
        assert!(with(key, value), "{key:?}: {value:?}");
    }
    let too_long = "a".repeat(64);
    for key in ["", "A", "aB", "9a", "_a", "a b", "a.b", &too_long] {
        assert!(!with(key, ""), "{key:?}");
    }
    for value in ["A", "a b", "a.b", &too_long] {
        assert!(!with("a", value), "{value:?}");
    }
}

#[test]
fn a_resource_has_at_most_64_labels() {
    let with = |count: usize| {
        let mut request = subscription();
        request.labels = (0..count)
            .map(|number| (format!("l{number}"), String::new()))
            .collect();
        request.create()
    };
    assert!(with(64).is_ok());
    assert_eq!(
        with(65),
        Err(InvalidValue::TooManyLabels { count: 65 }.into())
    );
}

/// The same default as in a create, whichever way round the mask names the two.
#[test]
fn a_cleared_ack_deadline_gets_the_default_that_goes_with_exactly_once() {
    let mut request = subscription();
    request.enable_exactly_once_delivery = true;
    let paths = [
        "ack_deadline_seconds",
        "enable_exactly_once_delivery",
        "ack_deadline_seconds",
    ];
    assert_eq!(
        request.update(&mask(&paths)).unwrap().changes,
        [
            SubscriptionChange::ExactlyOnce(true),
            SubscriptionChange::AckDeadline(None)
        ]
    );
}

#[test]
fn no_subscription_is_born_detached() {
    let mut request = subscription();
    request.detached = true;
    let refused = request.create();
    assert_eq!(refused, Err(InvalidValue::Detached.into()));
}

#[test]
fn fields_outside_the_mask_are_not_even_checked() {
    let mut request = subscription();
    request.ack_deadline_seconds = 9;
    request.topic = "nonsense".into();
    request.push_config = true;
    assert!(request.update(&mask(&["labels"])).is_ok());
    assert!(
        request
            .update(&mask(&["labels", "ack_deadline_seconds"]))
            .is_err()
    );
}

#[test]
fn a_topic_keeps_its_labels_when_the_mask_names_another_field() {
    let mut request = topic();
    request.labels = [("a".into(), "b".into())].into();
    let update = request.update(&mask(&["message_retention_duration"]));
    assert_eq!(update.unwrap().labels, None);
}

#[test]
fn what_the_server_sets_is_not_mutable() {
    for path in ["name", "tags", "state", "satisfies_pzs"] {
        let refused = topic().update(&mask(&["labels", path])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "Invalid update_mask provided in the UpdateTopicRequest: the '{path}' field in \
                 the Topic is not mutable."
            )
        );
    }
    for path in [
        "name",
        "topic",
        "filter",
        "enable_message_ordering",
        "detached",
        "tags",
        "state",
        "topic_message_retention_duration",
        "analytics_hub_subscription_info",
    ] {
        let refused = subscription().update(&mask(&["labels", path])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "Invalid update_mask provided in the UpdateSubscriptionRequest: the '{path}' field \
                 in the Subscription is not mutable."
            )
        );
    }
}

#[test]
fn unknown_paths_are_refused() {
    for path in [
        "",
        "*",
        "label",
        "labels.a",
        "ackDeadlineSeconds",
        "retry_policy.x",
        "push_configs",
    ] {
        let refused = subscription().update(&mask(&[path])).unwrap_err();
        assert!(
            matches!(refused, InvalidRequest::Mask(InvalidMask::Unknown { .. })),
            "{path:?}"
        );
        let refused = topic().update(&mask(&[path])).unwrap_err();
        assert!(
            matches!(refused, InvalidRequest::Mask(InvalidMask::Unknown { .. })),
            "{path:?}"
        );
    }
}

#[test]
fn two_targets_are_invalid_and_one_is_only_not_supported() {
    let mut request = subscription();
    request.push_config = true;
    assert!(matches!(
        request.create(),
        Err(InvalidRequest::NotSupported(_))
    ));
    request.bigquery_config = true;
    assert_eq!(request.create(), Err(InvalidValue::ManyTargets.into()));
}

#[test]
fn an_update_needs_the_name_that_a_create_may_leave_out() {
    let mut request = subscription();
    request.name = String::new();
    assert_eq!(request.create().unwrap().name, None);
    assert!(matches!(
        request.update(&mask(&["labels"])),
        Err(InvalidRequest::Name(_))
    ));
}
