"""kill -9 of the server in the middle of publishing and consuming."""

import collections
import os
import subprocess
import threading

from sequence import assert_legal
from stage import Inbox, assert_equal, number

KEYS = ["red", "green", "blue", "black"]
BEFORE, DURING, AFTER = 200, 200, 200
"""Messages per key that are published before, during and after the restart."""


def restart(stage):
    topic = stage.topic()
    name = stage.subscription(topic)
    inbox = Inbox()

    def callback(message):
        inbox.add((message.ordering_key, number(message)))
        message.ack()

    with stage.streaming(name, callback):
        futures = publish(stage, topic, 0, BEFORE)
        inbox.wait_for_count(len(KEYS) * BEFORE // 2)
        restarting = threading.Thread(target=restart_server)
        restarting.start()
        futures += publish(stage, topic, BEFORE, DURING)
        restarting.join()
        futures += publish(stage, topic, BEFORE + DURING, AFTER)
        for future in futures:
            future.result(60)
        everything = {(key, value) for key in KEYS for value in range(BEFORE + DURING + AFTER)}
        received = inbox.wait(lambda items: everything <= set(items), 90)

    per_key = collections.defaultdict(list)
    for key, value in received:
        per_key[key].append(value)
    for key in KEYS:
        highest = assert_legal(per_key[key], first=0)
        assert_equal(highest, BEFORE + DURING + AFTER - 1, f"last message of {key}")


def publish(stage, topic, start, count):
    return [
        stage.publisher.publish(topic, str(value).encode(), ordering_key=key)
        for value in range(start, start + count)
        for key in KEYS
    ]


def restart_server():
    subprocess.run(os.environ["ORDERLY_RESTART"], shell=True, check=True, timeout=60)
