// Leases and policies: expiry, exactly-once, flow control, dead letter, filter.
'use strict';

const assert = require('node:assert/strict');
const {AckResponses} = require('@google-cloud/pubsub');
const {Code, PROJECT, ack, number, publish, range, receive} = require('./stage');

/** A pulled message that is not acked comes back once its 10 s are over, with its successor. */
async function expiry(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic, {ackDeadlineSeconds: 10});
  await Promise.all(publish(topic, 'key', [1, 2]));

  const asked = Date.now();
  const [first] = await stage.pull(subscription, 1);
  const [again] = await stage.pull(subscription, 1, 20_000);
  const waited = Date.now() - asked;
  assert.equal(number(first.message), 1);
  assert.equal(number(again.message), 1, 'delivery after the deadline');
  assert.equal(again.message.messageId, first.message.messageId);
  assert.ok(waited >= 9_500 && waited <= 15_000, `redelivered after ${waited} ms`);

  await stage.acknowledge(subscription, [again]);
  const [successor] = await stage.pull(subscription, 1);
  assert.equal(number(successor.message), 2, 'after the ack');
  await stage.acknowledge(subscription, [successor]);
}

async function exactlyOnce(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic, {enableExactlyOnceDelivery: true});
  await acksAreConfirmed(stage, topic, subscription);
  await staleAckIdIsRefused(stage, topic, subscription);
}

/**
 * The first receipt loses its lease before its ack, and is told so; the second succeeds.
 *
 * The second ack is sent when the first is decided: the client sends acks that come within 100 ms
 * in one request, and if one of them is refused, it tells the others that they failed too (OTHER).
 */
async function acksAreConfirmed(stage, topic, subscription) {
  const inbox = receive(subscription, message => {
    const [first] = inbox.items;
    const ack = () => message.ackWithResponse();
    return {id: message.id, outcome: first ? first.outcome.then(ack) : ackTooLate(message)};
  });
  const ackTooLate = async message => {
    await giveUp(stage, subscription, message.ackId);
    await assert.rejects(message.ackWithResponse(), {errorCode: AckResponses.Invalid});
  };

  await Promise.all(publish(topic, 'key', [1]));
  const [first, second] = await inbox.waitForCount(2);
  await first.outcome;
  assert.equal(await second.outcome, AckResponses.Success);
  assert.equal(second.id, first.id);
  await subscription.close();
}

/** The wire form of the same: status, reason and one entry of metadata per failing ack id. */
async function staleAckIdIsRefused(stage, topic, subscription) {
  await Promise.all(publish(topic, 'key', [2]));
  const [first] = await stage.pull(subscription, 1);
  await giveUp(stage, subscription, first.ackId);
  const [second] = await stage.pull(subscription, 1);
  await assert.rejects(stage.acknowledge(subscription, [first]), {
    code: Code.INVALID_ARGUMENT,
    reason: 'EXACTLY_ONCE_ACKID_FAILURE',
    errorInfoMetadata: {[first.ackId]: 'PERMANENT_FAILURE_INVALID_ACK_ID'},
  });
  await stage.acknowledge(subscription, [second]);
}

function giveUp(stage, subscription, ackId) {
  return stage.subscriber.modifyAckDeadline({
    subscription: subscription.name,
    ackIds: [ackId],
    ackDeadlineSeconds: 0,
  });
}

/** With maxMessages 5 there are never more than five unfinished messages. */
async function flowControl(stage) {
  const topic = await stage.topic();
  const created = await stage.subscription(topic);
  await Promise.all(range(0, 20).flatMap(n => publish(topic, `key-${n}`, [n])));
  // The limit is one of each stream; by default there are five streams.
  const subscription = stage.pubsub.subscription(created.name, {
    flowControl: {maxMessages: 5},
    streamingOptions: {maxStreams: 1},
  });
  const inbox = receive(subscription, message => message);

  await inbox.waitForCount(5);
  await assert.rejects(inbox.waitForCount(6, 1_000), 'a sixth message came');
  for (let finished = 0; finished < 20; finished++) {
    const received = await inbox.waitForCount(finished + 1);
    const unfinished = received.length - finished;
    assert.ok(unfinished <= 5, `${unfinished} unfinished messages`);
    received[finished].ack();
  }
  await subscription.close();
  const numbers = inbox.items.map(number).sort((a, b) => a - b);
  assert.deepEqual(numbers, range(0, 20));
}

/** After five attempts a message moves to the dead-letter topic, and its key flows on. */
async function deadLetter(stage) {
  const topic = await stage.topic();
  const graveyard = await stage.topic('graveyard');
  const buriedIn = await stage.subscription(graveyard, {suffix: 'buried'});
  const subscription = await stage.subscription(topic, {
    deadLetterPolicy: {deadLetterTopic: graveyard.name, maxDeliveryAttempts: 5},
  });
  const inbox = receive(subscription, message => {
    const what = message.data.toString();
    what === 'poison' ? message.nack() : message.ack();
    return [what, message.deliveryAttempt];
  });

  await Promise.all(publish(topic, 'key', ['poison'], {colour: 'red'}));
  const [buried] = await stage.pull(buriedIn, 1);
  await Promise.all(publish(topic, 'key', ['next']));
  const received = await inbox.wait(items => items.at(-1)[0] === 'next');
  await subscription.close();

  const attempts = received.filter(([what]) => what === 'poison').map(([, attempt]) => attempt);
  assert.deepEqual(attempts, [1, 2, 3, 4, 5], 'attempts');
  assert.equal(buried.message.data.toString(), 'poison');
  assert.equal(buried.message.orderingKey, 'key');
  assertOrigin(buried.message.attributes, subscription.name);
  await stage.acknowledge(buriedIn, [buried]);
}

/** A dead letter tells where it comes from, beside its own attributes. */
function assertOrigin(attributes, subscriptionName) {
  const source = 'CloudPubSubDeadLetterSource';
  assert.equal(attributes.colour, 'red');
  assert.equal(attributes[`${source}DeliveryCount`], '5');
  assert.equal(attributes[`${source}Subscription`], subscriptionName.split('/').at(-1));
  assert.equal(attributes[`${source}SubscriptionProject`], PROJECT);
  assert.match(attributes[`${source}TopicPublishTime`], /\+00:00$/);
}

/** Only matching messages come; the others neither block their key nor stay behind. */
async function filter(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic, {filter: 'attributes.lang = "en"'});
  const inbox = receive(subscription, ack);

  const accepted = range(1, 8).flatMap(n =>
    publish(topic, 'key', [n], {lang: n % 2 === 1 ? 'en' : 'fr'})
  );
  await Promise.all(accepted);
  const received = await inbox.wait(numbers => numbers.includes(7));
  await subscription.close();
  assert.deepEqual(received, [1, 3, 5, 7], 'matching messages');

  const malformed = stage.subscription(topic, {suffix: 'invalid', filter: 'lang = en'});
  await assert.rejects(malformed, {code: Code.INVALID_ARGUMENT});
}

module.exports = {expiry, exactlyOnce, flowControl, deadLetter, filter};
