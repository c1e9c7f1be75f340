"""Resources: create with defaults, update by mask, delete."""

import os

import grpc
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from stage import PATIENCE, Inbox, assert_equal, refusal


def create(stage):
    topic = stage.topic()
    name = stage.subscription(topic)

    subscription = stage.subscriber.get_subscription(subscription=name)
    assert_equal(subscription.topic, topic, "topic")
    assert_equal(subscription.ack_deadline_seconds, 10, "ack deadline")
    assert_equal(subscription.message_retention_duration.days, 7, "retention in days")
    assert_equal(subscription.enable_message_ordering, True, "ordering")
    assert_equal(subscription.enable_exactly_once_delivery, False, "exactly-once")
    assert_equal(subscription.filter, "", "filter")
    assert_equal(list(stage.publisher.list_topic_subscriptions(topic=topic)), [name], "list")

    again = refusal(stage.publisher.create_topic, name=topic)
    assert_equal(type(again), exceptions.AlreadyExists, "second creation of the topic")
    again = refusal(stage.subscription, topic)
    assert_equal(type(again), exceptions.AlreadyExists, "second creation of the subscription")
    listed = topic_through_a_list(topic)
    assert_equal(listed.name, topic, "topic through a list of addresses")


def topic_through_a_list(topic):
    """Reads a topic through a gRPC target that lists addresses.

    Such a client sends the list as its :authority unless it is told another. The list is no host,
    and HTTP/2 ends the call before the node sees it.
    """
    port = os.environ["PUBSUB_EMULATOR_HOST"].rsplit(":", 1)[1]
    options = [("grpc.default_authority", "localhost")]
    target = f"ipv4:127.0.0.1:{port},127.0.0.1:{port}"
    with grpc.insecure_channel(target, options=options) as channel:
        client = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        return client.get_topic(topic=topic, timeout=PATIENCE)


def update(stage):
    topic = stage.topic()
    name = stage.subscription(topic, filter='attributes.lang = "en"')

    labelled = stage.publisher.update_topic(
        request={"topic": {"name": topic, "labels": {"team": "a"}}, "update_mask": "labels"}
    )
    assert_equal(dict(labelled.labels), {"team": "a"}, "labels of the topic")

    def change(mask, **fields):
        request = {"subscription": {"name": name, "topic": topic, **fields}, "update_mask": mask}
        return stage.subscriber.update_subscription(request=request)

    changed = change(
        {"paths": ["labels", "ack_deadline_seconds"]},
        labels={"team": "b"},
        ack_deadline_seconds=45,
    )
    assert_equal(dict(changed.labels), {"team": "b"}, "labels")
    assert_equal(changed.ack_deadline_seconds, 45, "ack deadline")

    immutable = refusal(change, {"paths": ["filter"]}, filter='attributes.lang = "fr"')
    assert_equal(type(immutable), exceptions.InvalidArgument, "change of the filter")
    stored = stage.subscriber.get_subscription(subscription=name)
    assert_equal(stored.filter, 'attributes.lang = "en"', "filter")
    assert_equal(stored.ack_deadline_seconds, 45, "stored ack deadline")


def delete(stage):
    topic = stage.topic()
    name = stage.subscription(topic)
    orphan = stage.subscription(topic, suffix="orphan")
    inbox = Inbox()

    def callback(message):
        message.ack()
        inbox.add(message)

    with stage.streaming(name, callback) as streaming:
        stage.publish(topic, "key", [1])
        inbox.wait_for_count(1)
        stage.subscriber.delete_subscription(subscription=name)
        assert_equal(type(streaming.exception(PATIENCE)), exceptions.NotFound, "open stream")

    gone = refusal(stage.subscriber.get_subscription, subscription=name)
    assert_equal(type(gone), exceptions.NotFound, "get of the subscription")
    gone = refusal(stage.subscriber.pull, subscription=name, max_messages=1)
    assert_equal(type(gone), exceptions.NotFound, "pull")

    stage.publisher.delete_topic(topic=topic)
    gone = refusal(stage.publish, topic, "key", [2])
    assert_equal(type(gone), exceptions.NotFound, "publish")
    orphaned = stage.subscriber.get_subscription(subscription=orphan)
    assert_equal(orphaned.topic, "_deleted-topic_", "topic of the orphan")
