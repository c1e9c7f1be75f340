"""kill -9 of the server in the middle of publishing and consuming."""

import collections
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from sequence import assert_legal
from stage import Inbox, assert_equal, number

KEYS = [f"key-{index}" for index in range(10)]
PER_ROUND = 5
"""Messages that each key gets in one round."""
ROUNDS = 10
"""Rounds before the restart begins, and again after it is over."""
RECOVERY = 120
"""Seconds for the server to come back, and for a client that may wait a minute between two tries."""


def restart(stage):
    topic = stage.topic()
    name = stage.subscription(topic)
    inbox = Inbox()

    def callback(message):
        inbox.add((message.ordering_key, number(message)))
        message.ack()

    with stage.streaming(name, callback):
        per_key = publish_through_restart(stage, topic)
        everything = {(key, value) for key in KEYS for value in range(per_key)}
        received = inbox.wait(lambda items: everything <= set(items), RECOVERY)

    values_of = collections.defaultdict(list)
    for key, value in received:
        values_of[key].append(value)
    for key in KEYS:
        highest = assert_legal(values_of[key], first=0)
        assert_equal(highest, per_key - 1, f"last message of {key}")


def publish_through_restart(stage, topic):
    """Publishes round after round while the server is killed and comes back; messages per key."""
    published = 0

    def publish_rounds(rounds):
        nonlocal published
        for _ in range(rounds):
            publish_round(stage, topic, published)
            published += PER_ROUND

    publish_rounds(ROUNDS)
    with ThreadPoolExecutor(1) as pool:
        restarting = pool.submit(restart_server)
        while not restarting.done():
            publish_rounds(1)
        restarting.result()
    publish_rounds(ROUNDS)
    return published


def publish_round(stage, topic, start):
    """Returns when the server has accepted all messages of the round."""
    futures = [
        stage.publisher.publish(topic, str(value).encode(), ordering_key=key)
        for key in KEYS
        for value in range(start, start + PER_ROUND)
    ]
    for future in futures:
        future.result(RECOVERY)


def restart_server():
    subprocess.run(os.environ["ORDERLY_RESTART"], shell=True, check=True, timeout=RECOVERY)
