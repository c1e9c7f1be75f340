package compat;

import static compat.Stage.PATIENCE;
import static compat.Stage.PROJECT;
import static compat.Stage.assertEqual;
import static compat.Stage.assertRefused;
import static compat.Stage.assertTrue;
import static compat.Stage.number;
import static compat.Stage.numbered;

import com.google.api.core.ApiFuture;
import com.google.api.gax.batching.FlowControlSettings;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.StatusCode.Code;
import com.google.cloud.pubsub.v1.AckReplyConsumer;
import com.google.cloud.pubsub.v1.AckResponse;
import com.google.cloud.pubsub.v1.MessageReceiverWithAckResponse;
import com.google.cloud.pubsub.v1.Subscriber;
import com.google.pubsub.v1.DeadLetterPolicy;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.ReceivedMessage;
import com.google.pubsub.v1.Subscription;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Leases and policies: expiry, exactly-once, flow control, dead letter, filter. */
final class Delivery {
  private Delivery() {}

  /** A pulled message that is not acked comes back once its 10 s are over, with its successor. */
  static void expiry(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    var settings = Subscription.newBuilder().setAckDeadlineSeconds(10);
    String name = stage.subscription(topic, "sub", settings);
    stage.publish(topic, numbered("key", 1, 3));

    long asked = System.nanoTime();
    ReceivedMessage first = stage.pullOne(name);
    ReceivedMessage again = stage.pullOne(name);
    var waited = Duration.ofNanos(System.nanoTime() - asked);
    assertEqual(number(first.getMessage()), 1, "first delivery");
    assertEqual(number(again.getMessage()), 1, "delivery after the deadline");
    String id = first.getMessage().getMessageId();
    assertEqual(again.getMessage().getMessageId(), id, "message id");
    boolean inTime = waited.toMillis() >= 9_500 && waited.toSeconds() < 15;
    assertTrue(inTime, "redelivered after " + waited);

    stage.acknowledge(name, List.of(again));
    ReceivedMessage successor = stage.pullOne(name);
    assertEqual(number(successor.getMessage()), 2, "after the ack");
    stage.acknowledge(name, List.of(successor));
  }

  static void exactlyOnce(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    var settings = Subscription.newBuilder().setEnableExactlyOnceDelivery(true);
    String name = stage.subscription(topic, "sub", settings);
    assertAckConfirmed(stage, topic, name);
    assertStaleAckRefused(stage, topic, name);
  }

  private static void assertAckConfirmed(Stage stage, String topic, String name) throws Exception {
    var outcomes = new Inbox<ApiFuture<AckResponse>>();
    MessageReceiverWithAckResponse receiver = (message, reply) -> outcomes.add(reply.ack());
    Subscriber subscriber = Stage.start(stage.confirmedSubscriber(name, receiver));
    stage.publish(topic, List.of(numbered("key", 1)));
    ApiFuture<AckResponse> outcome = outcomes.awaitCount(1).get(0);
    AckResponse response = outcome.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    Stage.stop(subscriber);
    assertEqual(response, AckResponse.SUCCESSFUL, "ack");
  }

  /** A lease is given up; the ack by its id is then refused. */
  private static void assertStaleAckRefused(Stage stage, String topic, String name)
      throws Exception {
    stage.publish(topic, List.of(numbered("key", 2)));
    ReceivedMessage first = stage.pullOne(name);
    stage.subscriptions.modifyAckDeadline(name, List.of(first.getAckId()), 0);
    ReceivedMessage second = stage.pullOne(name);
    ApiException refused =
        assertRefused(
            () -> {
              stage.acknowledge(name, List.of(first));
              return null;
            },
            Code.INVALID_ARGUMENT,
            "ack of the stale id");
    assertEqual(refused.getReason(), "EXACTLY_ONCE_ACKID_FAILURE", "reason");
    var reasons = Map.of(first.getAckId(), "PERMANENT_FAILURE_INVALID_ACK_ID");
    assertEqual(refused.getMetadata(), reasons, "metadata");
    stage.acknowledge(name, List.of(second));
  }

  /** With a limit of five there are never more than five unfinished messages. */
  static void flowControl(Stage stage) throws Exception {
    int count = 20;
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    stage.publish(
        topic, IntStream.range(0, count).mapToObj(n -> numbered("key-" + n, n)).toList());
    var inbox = new Inbox<AckReplyConsumer>();
    var limit = FlowControlSettings.newBuilder().setMaxOutstandingElementCount(5L).build();
    var builder =
        stage
            .subscriber(name, (message, reply) -> inbox.add(reply))
            .setFlowControlSettings(limit);
    Subscriber subscriber = Stage.start(builder);

    inbox.awaitCount(5);
    try {
      inbox.await(items -> items.size() > 5, Duration.ofSeconds(1));
      throw new IllegalStateException("a sixth message came");
    } catch (AssertionError noSixth) {
      // As it should be.
    }
    for (int finished = 0; finished < count; finished++) {
      List<AckReplyConsumer> received = inbox.awaitCount(finished + 1);
      int unfinished = received.size() - finished;
      assertTrue(unfinished <= 5, unfinished + " unfinished messages");
      received.get(finished).ack();
    }
    Stage.stop(subscriber);
  }

  /** After five attempts a message moves to the dead-letter topic, and its key flows on. */
  static void deadLetter(Stage stage) throws Exception {
    int poison = 1;
    String topic = stage.topic("topic");
    String graveyard = stage.topic("graveyard");
    String buriedIn = stage.subscription(graveyard, "buried");
    var policy =
        DeadLetterPolicy.newBuilder().setDeadLetterTopic(graveyard).setMaxDeliveryAttempts(5);
    var settings = Subscription.newBuilder().setDeadLetterPolicy(policy);
    String name = stage.subscription(topic, "sub", settings);
    var inbox = new Inbox<Integer>();
    Subscriber subscriber =
        stage.receive(
            name,
            inbox,
            (message, reply) -> {
              if (number(message) != poison) {
                reply.ack();
                return 0;
              }
              reply.nack();
              return Subscriber.getDeliveryAttempt(message);
            });

    PubsubMessage bad = numbered("key", poison).toBuilder().putAttributes("colour", "red").build();
    stage.publish(topic, List.of(bad));
    ReceivedMessage buried = stage.pullOne(buriedIn);
    stage.publish(topic, List.of(numbered("key", 2)));
    List<Integer> seen = inbox.awaitCount(6);
    Stage.stop(subscriber);
    assertEqual(seen, List.of(1, 2, 3, 4, 5, 0), "attempts, then the next message of the key");
    assertEqual(number(buried.getMessage()), poison, "data of the dead letter");
    assertEqual(buried.getMessage().getOrderingKey(), "key", "key of the dead letter");
    assertOrigin(buried.getMessage().getAttributesMap(), name);
    stage.acknowledge(buriedIn, List.of(buried));
  }

  /** A dead letter tells where it comes from, beside its own attributes. */
  private static void assertOrigin(Map<String, String> attributes, String subscription) {
    String source = "CloudPubSubDeadLetterSource";
    String shortName = subscription.substring(subscription.lastIndexOf('/') + 1);
    assertEqual(attributes.get("colour"), "red", "own attribute");
    assertEqual(attributes.get(source + "DeliveryCount"), "5", "delivery count");
    assertEqual(attributes.get(source + "Subscription"), shortName, "source subscription");
    assertEqual(attributes.get(source + "SubscriptionProject"), PROJECT, "source project");
    String published = attributes.getOrDefault(source + "TopicPublishTime", "none");
    assertTrue(published.endsWith("+00:00"), "zone of publish time " + published);
  }

  /** Only matching messages come; the others neither block their key nor stay behind. */
  static void filter(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    var english = Subscription.newBuilder().setFilter("attributes.lang = \"en\"");
    String name = stage.subscription(topic, "sub", english);
    var inbox = new Inbox<Integer>();
    Subscriber subscriber =
        stage.receive(
            name,
            inbox,
            (message, reply) -> {
              reply.ack();
              return number(message);
            });
    List<PubsubMessage> messages = new ArrayList<>();
    for (int number = 1; number <= 7; number++) {
      String language = number % 2 == 1 ? "en" : "fr";
      messages.add(
          numbered("key", number).toBuilder().putAttributes("lang", language).build());
    }
    stage.publish(topic, messages);
    List<Integer> received = inbox.await(numbers -> numbers.contains(7));
    Stage.stop(subscriber);
    assertEqual(received, List.of(1, 3, 5, 7), "matching messages");

    var malformed = Subscription.newBuilder().setFilter("lang = en");
    assertRefused(
        () -> stage.subscription(topic, "invalid", malformed),
        Code.INVALID_ARGUMENT,
        "malformed filter");
  }
}
