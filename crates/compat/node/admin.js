// Resources: create with defaults, update by mask, delete.
'use strict';

const assert = require('node:assert/strict');
const {Code, ack, publish, receive} = require('./stage');

async function create(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);

  const [metadata] = await subscription.getMetadata();
  assert.equal(metadata.topic, topic.name);
  assert.equal(metadata.ackDeadlineSeconds, 10);
  assert.equal(Number(metadata.messageRetentionDuration.seconds), 7 * 86_400);
  assert.equal(metadata.enableMessageOrdering, true);
  assert.equal(metadata.enableExactlyOnceDelivery, false);
  assert.equal(metadata.filter, '');
  const [listed] = await topic.getSubscriptions();
  assert.deepEqual(listed.map(({name}) => name), [subscription.name]);

  await assert.rejects(stage.topic(), {code: Code.ALREADY_EXISTS});
  await assert.rejects(stage.subscription(topic), {code: Code.ALREADY_EXISTS});
}

async function update(stage) {
  const filter = 'attributes.lang = "en"';
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic, {filter});

  const [labelled] = await topic.setMetadata({labels: {team: 'a'}});
  assert.deepEqual(labelled.labels, {team: 'a'});
  const [changed] = await subscription.setMetadata({labels: {team: 'b'}, ackDeadlineSeconds: 45});
  assert.deepEqual(changed.labels, {team: 'b'});
  assert.equal(changed.ackDeadlineSeconds, 45);

  const immutable = subscription.setMetadata({filter: 'attributes.lang = "fr"'});
  await assert.rejects(immutable, {code: Code.INVALID_ARGUMENT});
  const [stored] = await subscription.getMetadata();
  assert.equal(stored.filter, filter);
  assert.equal(stored.ackDeadlineSeconds, 45);
}

async function deleteResources(stage) {
  const topic = await stage.topic();
  const subscription = await stage.subscription(topic);
  const orphan = await stage.subscription(topic, {suffix: 'orphan'});
  const inbox = receive(subscription, ack);

  await Promise.all(publish(topic, 'key', [1]));
  await inbox.waitForCount(1);
  await stage.subscriber.deleteSubscription({subscription: subscription.name});
  await assert.rejects(inbox.waitForCount(2), {code: Code.NOT_FOUND}, 'open stream');
  await subscription.close();
  await assert.rejects(subscription.getMetadata(), {code: Code.NOT_FOUND});
  await assert.rejects(stage.pull(subscription, 1), {code: Code.NOT_FOUND});

  await topic.delete();
  await assert.rejects(publish(topic, 'key', [2])[0], {code: Code.NOT_FOUND});
  const [orphaned] = await orphan.getMetadata();
  assert.equal(orphaned.topic, '_deleted-topic_');
}

module.exports = {create, update, deleteResources};
