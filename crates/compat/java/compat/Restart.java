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
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** kill -9 of the server in the middle of publishing and consuming. */
final class Restart {
  private static final List<String> KEYS = List.of("red", "green", "blue", "black");

  /** Messages of each key that are published before the restart, during it and after it. */
  private static final int PER_PHASE = 200;

  private static final int PER_KEY = 3 * PER_PHASE;

  /** How long the server may take to come back and the clients to find it again. */
  private static final Duration RECOVERY = Duration.ofSeconds(90);

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

    publishThroughRestart(stage.publisher(topic));
    Set<Delivery> everything = new HashSet<>();
    for (String key : KEYS) {
      for (int number = 0; number < PER_KEY; number++) {
        everything.add(new Delivery(key, number));
      }
    }
    List<Delivery> received =
        inbox.await(
            items -> items.size() >= everything.size() && new HashSet<>(items).equals(everything),
            RECOVERY);
    Stage.stop(subscriber);
    for (String key : KEYS) {
      Sequence.assertLegal(Ordering.numbersOf(received, key), 0);
    }
  }

  /** Publishes to every key; all of it must be accepted in the end. */
  private static void publishThroughRestart(Publisher publisher) throws Exception {
    ApiFutures.allAsList(publish(publisher, 0)).get(RECOVERY.toSeconds(), TimeUnit.SECONDS);
    CompletableFuture<Void> restarting = CompletableFuture.runAsync(Restart::restartServer);
    List<ApiFuture<String>> accepted = publish(publisher, PER_PHASE);
    restarting.get(RECOVERY.toSeconds(), TimeUnit.SECONDS);
    accepted.addAll(publish(publisher, 2 * PER_PHASE));
    ApiFutures.allAsList(accepted).get(RECOVERY.toSeconds(), TimeUnit.SECONDS);
    publisher.shutdown();
  }

  private static List<ApiFuture<String>> publish(Publisher publisher, int start) {
    List<ApiFuture<String>> accepted = new ArrayList<>();
    for (int number = start; number < start + PER_PHASE; number++) {
      for (String key : KEYS) {
        accepted.add(publisher.publish(numbered(key, number)));
      }
    }
    return accepted;
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
