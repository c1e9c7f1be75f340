"""Leases and policies: expiry, exactly-once, flow control, dead letter, filter."""

import threading
import time

from google.api_core import exceptions
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeError, AcknowledgeStatus
from google.cloud.pubsub_v1.types import FlowControl

from stage import PATIENCE, PROJECT, Inbox, assert_equal, number, refusal, text


def expiry(stage):
    """A pulled message that is not acked comes back once its 10 s are over, with its successor."""
    topic = stage.topic()
    name = stage.subscription(topic, ack_deadline_seconds=10)
    stage.publish(topic, "key", [1, 2])

    asked = time.monotonic()
    [first] = stage.pull(name, max_messages=1)
    [again] = stage.pull(name, max_messages=1, seconds=20)
    waited = time.monotonic() - asked
    assert_equal(number(first.message), 1, "first delivery")
    assert_equal(number(again.message), 1, "delivery after the deadline")
    assert_equal(again.message.message_id, first.message.message_id, "message id")
    if not 9.5 <= waited <= 15:
        raise AssertionError(f"redelivered after {waited:.1f} s with a deadline of 10 s")

    stage.acknowledge(name, [again])
    [successor] = stage.pull(name, max_messages=1)
    assert_equal(number(successor.message), 2, "after the ack")
    stage.acknowledge(name, [successor])


def exactly_once(stage):
    topic = stage.topic()
    name = stage.subscription(topic, enable_exactly_once_delivery=True)
    acks_are_confirmed(stage, topic, name)
    stale_ack_id_is_refused(stage, topic, name)


def acks_are_confirmed(stage, topic, name):
    """The first receipt loses its lease before its ack, and is told so; the second succeeds.

    The second ack is sent when the first is decided: the client sends acks that come within 10 ms in
    one request, and if one of them is refused, it tells the others that they failed too (OTHER).
    """
    outcomes = Inbox()
    one_at_a_time = threading.Lock()

    def callback(message):
        with one_at_a_time:
            for _, earlier in outcomes.items():
                earlier.exception(PATIENCE)
            if not outcomes.items():
                stage.subscriber.modify_ack_deadline(
                    subscription=name, ack_ids=[message.ack_id], ack_deadline_seconds=0
                )
            outcomes.add((message.message_id, message.ack_with_response()))

    with stage.streaming(name, callback):
        stage.publish(topic, "key", ["confirmed"])
        (first_id, first), (second_id, second) = outcomes.wait_for_count(2)
        refused = refusal(first.result, PATIENCE)
        assert_equal(type(refused), AcknowledgeError, "ack after the lease was given up")
        assert_equal(refused.error_code, AcknowledgeStatus.INVALID_ACK_ID, "its reason")
        assert_equal(second.result(PATIENCE), AcknowledgeStatus.SUCCESS, "ack of the redelivery")
        assert_equal(second_id, first_id, "message id of the redelivery")


def stale_ack_id_is_refused(stage, topic, name):
    """The wire form of the same: status, reason and one entry of metadata per failing ack id."""
    stage.publish(topic, "key", ["stale"])
    [first] = stage.pull(name, max_messages=1)
    stage.subscriber.modify_ack_deadline(
        subscription=name, ack_ids=[first.ack_id], ack_deadline_seconds=0
    )
    [second] = stage.pull(name, max_messages=1)

    refused = refusal(stage.acknowledge, name, [first])
    assert_equal(type(refused), exceptions.InvalidArgument, "ack of the stale id")
    assert_equal(refused.reason, "EXACTLY_ONCE_ACKID_FAILURE", "reason")
    assert_equal(
        dict(refused.metadata), {first.ack_id: "PERMANENT_FAILURE_INVALID_ACK_ID"}, "metadata"
    )
    stage.acknowledge(name, [second])


def flow_control(stage):
    """With max_messages=5 there are never more than five unfinished messages."""
    topic = stage.topic()
    name = stage.subscription(topic)
    inbox = Inbox()

    with stage.streaming(name, inbox.add, flow_control=FlowControl(max_messages=5)):
        for value in range(20):
            stage.publish(topic, f"key-{value}", [value])
        inbox.wait_for_count(5)
        refusal(inbox.wait_for_count, 6, seconds=1)
        for finished in range(20):
            received = inbox.wait_for_count(finished + 1)
            if len(received) - finished > 5:
                raise AssertionError(f"{len(received) - finished} unfinished messages")
            received[finished].ack()

    assert_equal(sorted(map(number, inbox.items())), list(range(20)), "all messages")


def dead_letter(stage):
    """After five attempts a message moves to the dead-letter topic, and its key flows on."""
    topic, graveyard = stage.topic(), stage.topic("graveyard")
    buried_in = stage.subscription(graveyard, "buried")
    name = stage.subscription(
        topic, dead_letter_policy={"dead_letter_topic": graveyard, "max_delivery_attempts": 5}
    )
    inbox = Inbox()

    def callback(message):
        inbox.add((text(message), message.delivery_attempt))
        if text(message) == "poison":
            message.nack()
        else:
            message.ack()

    with stage.streaming(name, callback):
        stage.publish(topic, "key", ["poison"], colour="red")
        [buried] = stage.pull(buried_in, max_messages=1)
        stage.publish(topic, "key", ["next"])
        received = inbox.wait(lambda items: items[-1][0] == "next")

    assert_equal(
        [attempt for what, attempt in received if what == "poison"], [1, 2, 3, 4, 5], "attempts"
    )
    assert_equal(text(buried.message), "poison", "data of the dead letter")
    assert_equal(buried.message.ordering_key, "key", "key of the dead letter")
    attributes = dict(buried.message.attributes)
    source = "CloudPubSubDeadLetterSource"
    assert_equal(attributes["colour"], "red", "own attribute")
    assert_equal(attributes[source + "DeliveryCount"], "5", "delivery count")
    assert_equal(attributes[source + "Subscription"], name.split("/")[-1], "source subscription")
    assert_equal(attributes[source + "SubscriptionProject"], PROJECT, "source project")
    published = attributes[source + "TopicPublishTime"]
    assert_equal(published[-6:], "+00:00", f"zone of publish time {published}")
    stage.acknowledge(buried_in, [buried])


def filter_(stage):
    """Only matching messages come; the others neither block their key nor stay behind."""
    topic = stage.topic()
    name = stage.subscription(topic, filter='attributes.lang = "en"')
    inbox = Inbox()

    def callback(message):
        inbox.add(number(message))
        message.ack()

    with stage.streaming(name, callback):
        for value in range(1, 8):
            stage.publish(topic, "key", [value], lang="en" if value % 2 else "fr")
        received = inbox.wait(lambda values: 7 in values)
    assert_equal(received, [1, 3, 5, 7], "matching messages")

    invalid = refusal(stage.subscription, topic, "invalid", filter="lang = en")
    assert_equal(type(invalid), exceptions.InvalidArgument, "filter that is not one")
