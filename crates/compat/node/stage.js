// What one scenario plays on: the official clients, resources with fresh names, an inbox.
'use strict';

const {randomBytes} = require('node:crypto');
const {inspect} = require('node:util');
const {PubSub, v1} = require('@google-cloud/pubsub');

const PROJECT = 'compat';

// Milliseconds that a scenario waits for anything that should happen at once.
const PATIENCE = 30_000;

// The codes of gRPC that the scenarios expect.
const Code = {INVALID_ARGUMENT: 3, DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6};

class Stage {
  constructor(scenario) {
    this.prefix = `${scenario}-${randomBytes(4).toString('hex')}`;
    this.pubsub = new PubSub({projectId: PROJECT});
    // The client of the bare calls, with the address that the other one took from the environment.
    this.subscriber = new v1.SubscriberClient(this.pubsub.options);
  }

  async close() {
    await this.pubsub.close();
    await this.subscriber.close();
  }

  topicName(suffix = 'topic') {
    return `projects/${PROJECT}/topics/${this.prefix}-${suffix}`;
  }

  subscriptionName(suffix = 'sub') {
    return `projects/${PROJECT}/subscriptions/${this.prefix}-${suffix}`;
  }

  /** Creates a topic, ready for ordering keys. */
  async topic(suffix) {
    const [topic] = await this.pubsub.createTopic(this.topicName(suffix));
    topic.setPublishOptions({messageOrdering: true});
    return topic;
  }

  /** Creates an ordered subscription. */
  async subscription(topic, {suffix, ...settings} = {}) {
    const [subscription] = await topic.createSubscription(this.subscriptionName(suffix), {
      enableMessageOrdering: true,
      ...settings,
    });
    return subscription;
  }

  /** Pulls until something comes. */
  async pull(subscription, maxMessages, patience = PATIENCE) {
    const deadline = Date.now() + patience;
    while (Date.now() < deadline) {
      const request = {subscription: subscription.name, maxMessages};
      const options = {timeout: deadline - Date.now(), retry: null};
      try {
        const [{receivedMessages}] = await this.subscriber.pull(request, options);
        if (receivedMessages.length > 0) {
          return receivedMessages;
        }
      } catch (error) {
        if (error.code !== Code.DEADLINE_EXCEEDED) {
          throw error;
        }
      }
    }
    throw new Error(`nothing came from ${subscription.name} in ${patience} ms`);
  }

  async acknowledge(subscription, received) {
    const ackIds = received.map(({ackId}) => ackId);
    await this.subscriber.acknowledge({subscription: subscription.name, ackIds});
  }
}

/** Publishes the numbers in order under one key; the promises of their acceptance. */
function publish(topic, orderingKey, numbers, attributes = {}) {
  return numbers.map(number =>
    topic.publishMessage({data: Buffer.from(String(number)), orderingKey, attributes})
  );
}

/** Starts to receive: what `handle` returns for a message is put in the inbox. */
function receive(subscription, handle) {
  const inbox = new Inbox();
  // The client opens a broken stream again by itself; an error that arrives here is final.
  subscription.on('error', error => inbox.fail(error));
  subscription.on('message', message => inbox.add(handle(message)));
  return inbox;
}

/** Acks a message; its number. */
function ack(message) {
  message.ack();
  return number(message);
}

/** What has been received so far, for a scenario to wait on. */
class Inbox {
  items = [];
  #waiting = new Set();
  #failure;

  add(item) {
    this.items.push(item);
    this.#wake();
  }

  fail(error) {
    this.#failure = error;
    this.#wake();
  }

  #wake() {
    for (const look of this.#waiting) look();
  }

  /** Waits until `satisfied(items)`; the items. */
  wait(satisfied, patience = PATIENCE) {
    return new Promise((resolve, reject) => {
      const finish = settle => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        settle();
      };
      const look = () => {
        if (satisfied(this.items)) finish(() => resolve(this.items));
        else if (this.#failure) finish(() => reject(this.#failure));
      };
      const timer = setTimeout(() => {
        finish(() => reject(new Error(`after ${patience} ms: ${this}`)));
      }, patience);
      this.#waiting.add(look);
      look();
    });
  }

  waitForCount(count, patience) {
    return this.wait(items => items.length >= count, patience);
  }

  toString() {
    return `${this.items.length} items, the last ${inspect(this.items.slice(-20), {depth: 1})}`;
  }
}

const number = message => Number(message.data);

const range = (start, end) => Array.from({length: end - start}, (_, index) => start + index);

module.exports = {Code, PROJECT, Stage, ack, number, publish, range, receive};
