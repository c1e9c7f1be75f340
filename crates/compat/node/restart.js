// kill -9 of the server in the middle of publishing and consuming.
'use strict';

const assert = require('node:assert/strict');
const {exec} = require('node:child_process');
const {promisify} = require('node:util');
const {assertLegal} = require('./sequence');
const {ack, publish, range, receive} = require('./stage');

const KEYS = ['red', 'green', 'blue', 'black'];

// Messages of each key that are published before the restart, during it and after it.
const PER_PHASE = 200;
const PER_KEY = 3 * PER_PHASE;

// Milliseconds for the server to come back and the clients to find it again.
const RECOVERY = 90_000;

async function restart(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  const missing = new Set(KEYS.flatMap(key => range(0, PER_KEY).map(n => `${key} ${n}`)));
  const inbox = receive(subscription, message => {
    const received = [message.orderingKey, ack(message)];
    missing.delete(received.join(' '));
    return received;
  });
  const everything = inbox.wait(() => missing.size === 0, RECOVERY);
  const [received] = await Promise.all([everything, publishThroughRestart(topic)]);
  await subscription.close();
  for (const key of KEYS) {
    const numbers = received.filter(([of]) => of === key).map(([, n]) => n);
    assertLegal(numbers, 0);
  }
}

/** Publishes to every key; all of it must be accepted in the end. */
async function publishThroughRestart(topic) {
  const publishFrom = start =>
    KEYS.flatMap(key => publish(topic, key, range(start, start + PER_PHASE)));
  await Promise.all(publishFrom(0));
  const restarted = promisify(exec)(process.env.ORDERLY_RESTART);
  const during = publishFrom(PER_PHASE);
  await restarted;
  await Promise.all([...during, ...publishFrom(2 * PER_PHASE)]);
}

module.exports = {restart};
