"""Ordering keys through the streaming subscriber: in order, in bulk, and after a nack."""

import itertools

from sequence import assert_legal
from stage import Inbox, assert_equal, number

STREAM_MESSAGES = 10_000


def publish_ordered(stage):
    topic = stage.topic()
    name = stage.subscription(topic)
    keys = ["red", "green", "blue"]
    inbox = Inbox()

    def callback(message):
        inbox.add((message.ordering_key, number(message)))
        message.ack()

    with stage.streaming(name, callback):
        for value in range(20):
            for key in keys:
                stage.publisher.publish(topic, str(value).encode(), ordering_key=key)
        received = inbox.wait_for_count(60)

    for key in keys:
        values = [value for of, value in received if of == key]
        assert_equal(values, list(range(20)), f"messages of {key}")


def stream(stage):
    topic = stage.topic()
    name = stage.subscription(topic)
    keys = [f"key-{index}" for index in range(50)]
    inbox = Inbox()

    def callback(message):
        inbox.add((message.ordering_key, number(message)))
        message.ack()

    with stage.streaming(name, callback):
        futures = [
            stage.publisher.publish(topic, str(value).encode(), ordering_key=key)
            for value, key in zip(range(STREAM_MESSAGES), itertools.cycle(keys))
        ]
        message_ids = {future.result(60) for future in futures}
        received = inbox.wait_for_count(STREAM_MESSAGES, 180)

    assert_equal(len(message_ids), STREAM_MESSAGES, "different message ids")
    for index, key in enumerate(keys):
        values = [value for of, value in received if of == key]
        assert_equal(values, list(range(index, STREAM_MESSAGES, len(keys))), f"messages of {key}")
    assert_backlog_empty(stage, topic, name, keys)


def assert_backlog_empty(stage, topic, subscription, keys):
    """A new message of a key comes by Pull only once every earlier one of the key is acked."""
    for key in keys:
        stage.publish(topic, key, [-1])
    waiting = set(keys)
    while waiting:
        received = stage.pull(subscription, max_messages=len(keys), seconds=5)
        for item in received:
            assert_equal(number(item.message), -1, f"backlog of {item.message.ordering_key}")
            waiting.remove(item.message.ordering_key)
        stage.acknowledge(subscription, received)


def nack(stage):
    """The third of five is refused once: it comes again, and the later ones after it."""
    topic = stage.topic()
    name = stage.subscription(topic)
    inbox = Inbox()

    def callback(message):
        value = number(message)
        refuse = value == 3 and 3 not in inbox.items()
        inbox.add(value)
        if refuse:
            message.nack()
        else:
            message.ack()

    with stage.streaming(name, callback):
        stage.publish(topic, "key", range(1, 6))
        received = inbox.wait(lambda values: values.count(3) >= 2 and values[-1] == 5)

    assert_legal(received)
    assert_equal(received[-3:], [3, 4, 5], "after the nack")
