"""What one scenario plays on: the official clients, resources with fresh names, an inbox."""

import threading
import time
import uuid
from contextlib import contextmanager

from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.types import BatchSettings, PublisherOptions

PROJECT = "compat"
PATIENCE = 30.0
"""Seconds that a scenario waits for anything that should happen at once."""


class Stage:
    """Clients of one scenario; its topics and subscriptions bear the scenario's name."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.tag = uuid.uuid4().hex[:8]
        self.publisher = pubsub_v1.PublisherClient(
            batch_settings=BatchSettings(max_messages=100, max_latency=0.01),
            publisher_options=PublisherOptions(enable_message_ordering=True),
        )
        self.subscriber = pubsub_v1.SubscriberClient()

    def close(self):
        self.publisher.stop()
        self.subscriber.close()

    def topic_name(self, suffix="topic"):
        return f"projects/{PROJECT}/topics/{self.scenario}-{self.tag}-{suffix}"

    def subscription_name(self, suffix="sub"):
        return f"projects/{PROJECT}/subscriptions/{self.scenario}-{self.tag}-{suffix}"

    def topic(self, suffix="topic"):
        return self.publisher.create_topic(name=self.topic_name(suffix)).name

    def subscription(self, topic, suffix="sub", **fields):
        """Creates a subscription, ordered unless the fields say otherwise."""
        request = {
            "name": self.subscription_name(suffix),
            "topic": topic,
            "enable_message_ordering": True,
            **fields,
        }
        return self.subscriber.create_subscription(request=request).name

    def publish(self, topic, key, values, **attributes):
        """Publishes the values in order under one key; returns when all are accepted."""
        futures = [
            self.publisher.publish(topic, str(value).encode(), ordering_key=key, **attributes)
            for value in values
        ]
        return [future.result(PATIENCE) for future in futures]

    def pull(self, subscription, max_messages, seconds=PATIENCE):
        """Pulls until something comes."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                response = self.subscriber.pull(
                    subscription=subscription, max_messages=max_messages, timeout=left, retry=None
                )
            except exceptions.DeadlineExceeded:
                continue
            if response.received_messages:
                return response.received_messages
        raise AssertionError(f"nothing came from {subscription} in {seconds} s")

    def acknowledge(self, subscription, received):
        ack_ids = [message.ack_id for message in received]
        self.subscriber.acknowledge(subscription=subscription, ack_ids=ack_ids)

    @contextmanager
    def streaming(self, subscription, callback, **options):
        """A streaming subscriber for the time of the `with` block, closed with its acks sent."""
        future = self.subscriber.subscribe(
            subscription, callback=callback, await_callbacks_on_shutdown=True, **options
        )
        try:
            yield future
        finally:
            future.cancel()
            future.exception(PATIENCE)


class Inbox:
    """What a callback has seen so far, for the scenario's thread to wait on."""

    def __init__(self):
        self._changed = threading.Condition()
        self._items = []

    def add(self, item):
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def items(self):
        with self._changed:
            return list(self._items)

    def wait(self, satisfied, seconds=PATIENCE):
        """Waits until `satisfied(items)`; returns the items."""
        with self._changed:
            if not self._changed.wait_for(lambda: satisfied(self._items), seconds):
                raise AssertionError(f"after {seconds} s: {brief(self._items)}")
            return list(self._items)

    def wait_for_count(self, count, seconds=PATIENCE):
        return self.wait(lambda items: len(items) >= count, seconds)


def brief(items):
    """The last few of many items, for a message that a person reads."""
    return f"{len(items)} items, the last {items[-20:]}"


def text(message):
    return message.data.decode()


def number(message):
    return int(message.data)


def refusal(call, *args, **kwargs):
    """The error with which the call is refused."""
    try:
        result = call(*args, **kwargs)
    except Exception as error:  # The caller compares its class or code.
        return error
    raise AssertionError(f"not refused: {result}")


def assert_equal(actual, expected, what):
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")
