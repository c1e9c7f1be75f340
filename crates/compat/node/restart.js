// kill -9 of the server in the middle of publishing and consuming.
'use strict';

const {exec} = require('node:child_process');
const {promisify} = require('node:util');
const {assertLegal} = require('./sequence');
const {ack, publish, range, receive} = require('./stage');

const KEYS = range(0, 10).map(index => `key-${index}`);

// Messages that each key gets in one round.
const PER_ROUND = 5;

// Rounds before the restart begins, and again after it is over.
const ROUNDS = 10;

// Milliseconds for the server to come back, and for a client that may wait a minute between two tries.
const RECOVERY = 120_000;

async function restart(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  const inbox = receive(subscription, message => ({key: message.orderingKey, number: ack(message)}));

  const perKey = await publishThroughRestart(topic);
  const received = await inbox.wait(items => {
    const different = new Set(items.map(({key, number}) => `${key} ${number}`));
    return different.size === KEYS.length * perKey;
  }, RECOVERY);
  await subscription.close();
  for (const key of KEYS) {
    const numbers = received.filter(item => item.key === key).map(({number}) => number);
    assertLegal(numbers, 0);
  }
}

/** Publishes round after round while the server is killed and comes back; messages per key. */
async function publishThroughRestart(topic) {
  let published = 0;
  const publishRound = async () => {
    const numbers = range(published, published + PER_ROUND);
    await Promise.all(KEYS.flatMap(key => publish(topic, key, numbers)));
    published += PER_ROUND;
  };
  for (let round = 0; round < ROUNDS; round++) await publishRound();
  let isBack = false;
  const restarting = promisify(exec)(process.env.ORDERLY_RESTART).finally(() => (isBack = true));
  while (!isBack) await publishRound();
  await restarting;
  for (let round = 0; round < ROUNDS; round++) await publishRound();
  return published;
}

module.exports = {restart};
