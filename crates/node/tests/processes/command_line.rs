//! The commands, as the README has them.

use serde_json::Value;

use crate::command::orderly;
use crate::node::Node;

#[test]
fn the_readmes_commands_do_what_it_says() {
    let node = Node::start();
    node.orderly_ok(&["topics", "create", "orders"]);
    let create = ["subscriptions", "create", "shipping", "--topic", "orders"];
    node.orderly_ok(&[&create[..], &["--enable-message-ordering"]].concat());
    for step in ["paid", "packed", "shipped"] {
        let publish = ["topics", "publish", "orders", "--message", step];
        node.orderly_ok(&[&publish[..], &["--ordering-key", "order-7"]].concat());
    }

    let pull = [
        "subscriptions",
        "pull",
        "shipping",
        "--auto-ack",
        "--limit",
        "2",
    ];
    assert_eq!(
        first_column(&node.orderly_ok(&pull)),
        ["DATA", "paid", "packed"]
    );
    let tail = node.orderly_ok(&["tail", "shipping", "--limit", "1"]);
    assert_eq!(first_column(&tail), ["shipped"]);
    let nothing = node.orderly_ok(&["subscriptions", "pull", "shipping", "--no-wait"]);
    assert_eq!(nothing, "");
}

#[test]
fn resources_change_in_part_and_show_as_json() {
    let node = Node::start();
    node.orderly_ok(&[
        "topics",
        "create",
        "orders",
        "dead",
        "--labels",
        "team=red,stage=test",
    ]);
    node.orderly_ok(&["topics", "update", "orders", "--update-labels", "team=blue"]);
    let topic = json(&node.orderly_ok(&["topics", "describe", "orders", "-o", "json"]));
    assert_eq!(
        topic["labels"],
        serde_json::json!({ "team": "blue", "stage": "test" })
    );

    let create = "subscriptions create shipping --topic orders --ack-deadline 30 \
                  --dead-letter-topic dead --max-delivery-attempts 7";
    node.orderly_ok(&words(create));
    let update = "subscriptions update shipping --max-delivery-attempts 9 --min-retry-delay 1s";
    node.orderly_ok(&words(update));
    let list = json(&node.orderly_ok(&words("subscriptions list -o json")));
    let shipping = &list[0];
    assert_eq!(shipping["name"], "projects/orderly/subscriptions/shipping");
    assert_eq!(shipping["ackDeadlineSeconds"], 30);
    assert_eq!(shipping["retryPolicy"]["minimumBackoff"], "1s");
    assert_eq!(shipping["messageRetentionDuration"], "604800s");
    assert_eq!(shipping["state"], "ACTIVE");
    assert_eq!(shipping["filter"], Value::Null);
    let policy = &shipping["deadLetterPolicy"];
    assert_eq!(policy["maxDeliveryAttempts"], 9);
    assert_eq!(policy["deadLetterTopic"], "projects/orderly/topics/dead");
}

#[test]
fn an_ack_by_hand_settles_and_a_deadline_of_zero_gives_back() {
    let node = Node::start();
    node.orderly_ok(&words("topics create orders"));
    node.orderly_ok(&words("subscriptions create shipping --topic orders"));
    node.orderly_ok(&words("topics publish orders --message paid"));

    let first = pulled_ack_id(&node);
    let give_back = "subscriptions modify-message-ack-deadline shipping --ack-deadline 0 --ack-ids";
    node.orderly_ok(&[&words(give_back)[..], &[&first]].concat());
    let second = pulled_ack_id(&node);
    node.orderly_ok(
        &[
            &words("subscriptions ack shipping --ack-ids")[..],
            &[&second],
        ]
        .concat(),
    );
    assert_eq!(
        node.orderly_ok(&words("subscriptions pull shipping --no-wait")),
        ""
    );
}

#[test]
fn an_exit_code_tells_who_is_wrong() {
    let node = Node::start();
    let code = |arguments: &str| node.orderly(&words(arguments)).status.code();
    assert_eq!(code("topics create x"), Some(2), "too short a name");
    assert_eq!(code("topics update orders"), Some(2), "nothing to update");
    assert_eq!(code("topics"), Some(2), "no verb");
    assert_eq!(
        code("topics describe nothing"),
        Some(4),
        "refused by the node"
    );

    let refused = node.orderly(&words("subscriptions pull nothing"));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("NOT_FOUND"),
        "{refused:?}"
    );
    let endpoint = node.endpoint();
    drop(node);
    let unreachable = orderly(&endpoint, &["topics", "list"]);
    assert_eq!(unreachable.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&unreachable.stderr).contains(&endpoint),
        "{unreachable:?}"
    );
}

#[test]
fn a_shell_gets_what_it_needs_to_complete_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = orderly("", &["completions", shell]);
        assert!(script.status.success());
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("enable-message-ordering"), "{shell}");
    }
}

#[test]
fn a_small_load_passes_its_checks() {
    let node = Node::start();
    let load = "bench --count 2000 --batch 10 --keys 20 --size 100 --consumers 2 -o json";
    let report = json(&node.orderly_ok(&words(load)));
    assert_eq!(report["checks"]["ok"], true, "{report:#}");
    assert_eq!(report["checks"]["received"], 2_000);
    // It leaves nothing behind.
    assert_eq!(node.orderly_ok(&["topics", "list"]), "");
    assert_eq!(node.orderly_ok(&["subscriptions", "list"]), "");
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("output is JSON")
}

fn first_column(table: &str) -> Vec<&str> {
    table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

fn pulled_ack_id(node: &Node) -> String {
    let pulled = json(&node.orderly_ok(&words("subscriptions pull shipping -o json")));
    pulled[0]["ackId"]
        .as_str()
        .expect("a message came")
        .to_owned()
}
