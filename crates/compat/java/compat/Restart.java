package compat;

import static compat.Stage.assertEqual;
import static compat.Stage.number;
import static compat.Stage.numbered;

import com.google.api.core.ApiFuture;
import com.google.api.core.ApiFutures;
import com.google.cloud.pubsub.v1.Publisher;
import compat.Ordering.Delivery;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** kill -9 of the server in the middle of publishing and consuming. */
final class Restart {
  private static final List<String> KEYS =
      IntStream.range(0, 10).mapToObj(index -> "key-" + index).toList();

  /** Messages that each key gets in one round. */
  private static final int PER_ROUND = 5;

  /** Rounds before the restart begins, and again after it is over. */
  private static final int ROUNDS = 10;

  /** For the server to come back, and for a client that may wait a minute between two tries. */
  private static final Duration RECOVERY = Duration.ofMinutes(2);

  private Restart() {}

  static void restart(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    var inbox = new Inbox<Delivery>();
    var subscriber =
        stage.receive(
            name,
            inbox,
            (message, reply) -> {
              reply.ack();
              return new Delivery(message.getOrderingKey(), number(message));
            });

    int perKey = publishThroughRestart(stage.publisher(topic));
    int count = KEYS.size() * perKey;
    List<Delivery> received =
        inbox.await(
            items -> items.size() >= count && new HashSet<>(items).size() == count, RECOVERY);
    Stage.stop(subscriber);
    for (String key : KEYS) {
      Sequence.assertLegal(Ordering.numbersOf(received, key), 0);
    }
  }

  /** Publishes round after round while the server is killed and comes back; messages per key. */
  private static int publishThroughRestart(Publisher publisher) throws Exception {
    int round = 0;
    while (round < ROUNDS) {
      publishRound(publisher, round++);
    }
    CompletableFuture<Void> restarting = CompletableFuture.runAsync(Restart::restartServer);
    while (!restarting.isDone()) {
      publishRound(publisher, round++);
    }
    restarting.get();
    for (int last = round + ROUNDS; round < last; round++) {
      publishRound(publisher, round);
    }
    publisher.shutdown();
    return round * PER_ROUND;
  }

  /** Returns when the server has accepted all messages of the round. */
  private static void publishRound(Publisher publisher, int round) throws Exception {
    List<ApiFuture<String>> accepted = new ArrayList<>();
    for (int number = round * PER_ROUND; number < (round + 1) * PER_ROUND; number++) {
      for (String key : KEYS) {
        accepted.add(publisher.publish(numbered(key, number)));
      }
    }
    ApiFutures.allAsList(accepted).get(RECOVERY.toSeconds(), TimeUnit.SECONDS);
  }

  private static void restartServer() {
    try {
      var command = new ProcessBuilder("sh", "-c", System.getenv("ORDERLY_RESTART"));
      assertEqual(command.inheritIO().start().waitFor(), 0, "exit code of the restart");
    } catch (Exception error) {
      throw new IllegalStateException("the server did not come back", error);
    }
  }
}
