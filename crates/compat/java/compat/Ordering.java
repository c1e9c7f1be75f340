package compat;

import static compat.Stage.assertEqual;
import static compat.Stage.last;
import static compat.Stage.number;
import static compat.Stage.numbered;

import com.google.protobuf.ByteString;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.ReceivedMessage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;

/** Ordering keys through the streaming subscriber: in order, in bulk, and after a nack. */
final class Ordering {
  private Ordering() {}

  /** A message of a key, by its number within the key. */
  record Delivery(String key, int number) {}

  static void publishOrdered(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    publishAndReceive(stage, topic, name, List.of("red", "green", "blue"), 20);
  }

  static void stream(Stage stage) throws Exception {
    List<String> keys = IntStream.range(0, 50).mapToObj(index -> "key-" + index).toList();
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    publishAndReceive(stage, topic, name, keys, 200);
    assertBacklogEmpty(stage, topic, name, keys);
  }

  /** Publishes 0, 1, ... under each key; they must come in that order, and once. */
  private static void publishAndReceive(
      Stage stage, String topic, String subscription, List<String> keys, int perKey)
      throws Exception {
    var inbox = new Inbox<Delivery>();
    var subscriber =
        stage.receive(
            subscription,
            inbox,
            (message, reply) -> {
              reply.ack();
              return new Delivery(message.getOrderingKey(), number(message));
            });
    List<PubsubMessage> messages =
        IntStream.range(0, perKey)
            .boxed()
            .flatMap(number -> keys.stream().map(key -> numbered(key, number)))
            .toList();
    Set<String> ids = new HashSet<>(stage.publish(topic, messages));
    List<Delivery> received = inbox.awaitCount(messages.size());
    Stage.stop(subscriber);

    assertEqual(ids.size(), messages.size(), "different message ids");
    List<Integer> expected = IntStream.range(0, perKey).boxed().toList();
    for (String key : keys) {
      assertEqual(numbersOf(received, key), expected, "messages of " + key);
    }
  }

  static List<Integer> numbersOf(List<Delivery> received, String key) {
    return received.stream().filter(one -> one.key().equals(key)).map(Delivery::number).toList();
  }

  /** A new message of a key comes by Pull only once every earlier one of the key is acked. */
  private static void assertBacklogEmpty(
      Stage stage, String topic, String subscription, List<String> keys) throws Exception {
    ByteString last = ByteString.copyFromUtf8("last");
    List<PubsubMessage> messages = new ArrayList<>();
    for (String key : keys) {
      messages.add(PubsubMessage.newBuilder().setOrderingKey(key).setData(last).build());
    }
    stage.publish(topic, messages);
    Set<String> waiting = new HashSet<>(keys);
    while (!waiting.isEmpty()) {
      var received = stage.pull(subscription, keys.size(), Duration.ofSeconds(5));
      for (ReceivedMessage item : received) {
        PubsubMessage message = item.getMessage();
        assertEqual(message.getData(), last, "backlog of " + message.getOrderingKey());
        waiting.remove(message.getOrderingKey());
      }
      stage.acknowledge(subscription, received);
    }
  }

  /** The third of five is refused once: it comes again, and the later ones after it. */
  static void nack(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    var inbox = new Inbox<Integer>();
    var refused = new AtomicBoolean();
    var subscriber =
        stage.receive(
            name,
            inbox,
            (message, reply) -> {
              if (number(message) == 3 && refused.compareAndSet(false, true)) {
                reply.nack();
              } else {
                reply.ack();
              }
              return number(message);
            });
    stage.publish(topic, numbered("key", 1, 6));
    List<Integer> received =
        inbox.await(
            numbers ->
                Collections.frequency(numbers, 3) >= 2 && numbers.get(numbers.size() - 1) == 5);
    Stage.stop(subscriber);
    Sequence.assertLegal(received, 1);
    assertEqual(last(received, 3), List.of(3, 4, 5), "after the nack");
  }
}
