// Ordering keys through the streaming subscriber: in order, in bulk, and after a nack.
'use strict';

const assert = require('node:assert/strict');
const {assertLegal} = require('./sequence');
const {ack, number, publish, range, receive} = require('./stage');

async function publishOrdered(stage) {
  const keys = ['red', 'green', 'blue'];
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  await publishAndReceive(topic, subscription, keys, 20);
}

async function stream(stage) {
  const keys = range(0, 50).map(index => `key-${index}`);
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  await publishAndReceive(topic, subscription, keys, 200);
  await assertBacklogEmpty(stage, topic, subscription, keys);
}

/** Publishes 0, 1, ... under each key; they must come in that order, and once. */
async function publishAndReceive(topic, subscription, keys, perKey) {
  const inbox = receive(subscription, message => [message.orderingKey, ack(message)]);
  const ids = await Promise.all(keys.flatMap(key => publish(topic, key, range(0, perKey))));
  const received = await inbox.waitForCount(keys.length * perKey);
  await subscription.close();

  assert.equal(new Set(ids).size, keys.length * perKey, 'different message ids');
  for (const key of keys) {
    const numbers = received.filter(([of]) => of === key).map(([, number]) => number);
    assert.deepEqual(numbers, range(0, perKey), `messages of ${key}`);
  }
}

/** A new message of a key comes by Pull only once every earlier one of the key is acked. */
async function assertBacklogEmpty(stage, topic, subscription, keys) {
  await Promise.all(keys.flatMap(key => publish(topic, key, ['last'])));
  const waiting = new Set(keys);
  while (waiting.size > 0) {
    const received = await stage.pull(subscription, keys.length, 5_000);
    for (const {message} of received) {
      assert.equal(message.data.toString(), 'last', `backlog of ${message.orderingKey}`);
      waiting.delete(message.orderingKey);
    }
    await stage.acknowledge(subscription, received);
  }
}

/** The third of five is refused once: it comes again, and the later ones after it. */
async function nack(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  const inbox = receive(subscription, message => {
    const isRefused = number(message) === 3 && !inbox.items.includes(3);
    isRefused ? message.nack() : message.ack();
    return number(message);
  });

  await Promise.all(publish(topic, 'key', range(1, 6)));
  const received = await inbox.wait(
    numbers => numbers.filter(n => n === 3).length >= 2 && numbers.at(-1) === 5
  );
  await subscription.close();
  assertLegal(received, 1);
  assert.deepEqual(received.slice(-3), [3, 4, 5], 'after the nack');
}

module.exports = {publishOrdered, stream, nack};
