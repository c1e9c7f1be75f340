package compat;

import com.google.api.core.ApiFuture;
import com.google.api.core.ApiFutures;
import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.grpc.GrpcCallContext;
import com.google.api.gax.grpc.GrpcTransportChannel;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.DeadlineExceededException;
import com.google.api.gax.rpc.FixedTransportChannelProvider;
import com.google.api.gax.rpc.StatusCode;
import com.google.api.gax.rpc.TransportChannelProvider;
import com.google.cloud.pubsub.v1.AckReplyConsumer;
import com.google.cloud.pubsub.v1.MessageReceiver;
import com.google.cloud.pubsub.v1.MessageReceiverWithAckResponse;
import com.google.cloud.pubsub.v1.Publisher;
import com.google.cloud.pubsub.v1.Subscriber;
import com.google.cloud.pubsub.v1.SubscriptionAdminClient;
import com.google.cloud.pubsub.v1.SubscriptionAdminSettings;
import com.google.cloud.pubsub.v1.TopicAdminClient;
import com.google.cloud.pubsub.v1.TopicAdminSettings;
import com.google.protobuf.ByteString;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.PullRequest;
import com.google.pubsub.v1.ReceivedMessage;
import com.google.pubsub.v1.Subscription;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/** What one scenario plays on: the official clients, and resources with fresh names. */
final class Stage implements AutoCloseable {
  static final String PROJECT = "compat";

  /** How long a scenario waits for anything that should happen at once. */
  static final Duration PATIENCE = Duration.ofSeconds(30);

  private final String prefix;
  private final ManagedChannel connection;
  private final TransportChannelProvider channel;
  private final NoCredentialsProvider nobody = NoCredentialsProvider.create();
  final TopicAdminClient topics;
  final SubscriptionAdminClient subscriptions;

  Stage(String scenario) throws IOException {
    prefix = scenario + "-" + UUID.randomUUID().toString().substring(0, 8);
    String endpoint = System.getenv("PUBSUB_EMULATOR_HOST");
    connection = ManagedChannelBuilder.forTarget(endpoint).usePlaintext().build();
    channel = FixedTransportChannelProvider.create(GrpcTransportChannel.create(connection));
    topics =
        TopicAdminClient.create(
            TopicAdminSettings.newBuilder()
                .setTransportChannelProvider(channel)
                .setCredentialsProvider(nobody)
                .build());
    subscriptions =
        SubscriptionAdminClient.create(
            SubscriptionAdminSettings.newBuilder()
                .setTransportChannelProvider(channel)
                .setCredentialsProvider(nobody)
                .build());
  }

  @Override
  public void close() {
    topics.close();
    subscriptions.close();
    connection.shutdownNow();
  }

  /** Creates a topic; its name. */
  String topic(String suffix) {
    return topics.createTopic("projects/" + PROJECT + "/topics/" + prefix + "-" + suffix).getName();
  }

  /** Creates an ordered subscription with the default settings; its name. */
  String subscription(String topic, String suffix) {
    return subscription(topic, suffix, Subscription.newBuilder());
  }

  /** Creates an ordered subscription with these settings; its name. */
  String subscription(String topic, String suffix, Subscription.Builder settings) {
    Subscription subscription =
        settings
            .setName("projects/" + PROJECT + "/subscriptions/" + prefix + "-" + suffix)
            .setTopic(topic)
            .setEnableMessageOrdering(true)
            .build();
    return subscriptions.createSubscription(subscription).getName();
  }

  Publisher publisher(String topic) throws IOException {
    return Publisher.newBuilder(topic)
        .setChannelProvider(channel)
        .setCredentialsProvider(nobody)
        .setEnableMessageOrdering(true)
        .build();
  }

  /** Publishes the messages in order and returns their ids when all are accepted. */
  List<String> publish(String topic, List<PubsubMessage> messages) throws Exception {
    Publisher publisher = publisher(topic);
    try {
      List<ApiFuture<String>> accepted = messages.stream().map(publisher::publish).toList();
      return ApiFutures.allAsList(accepted).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    } finally {
      publisher.shutdown();
    }
  }

  /** Pulls until something comes. */
  List<ReceivedMessage> pull(String subscription, int maxMessages, Duration patience) {
    long deadline = System.nanoTime() + patience.toNanos();
    PullRequest request =
        PullRequest.newBuilder().setSubscription(subscription).setMaxMessages(maxMessages).build();
    for (long left = patience.toNanos(); left > 0; left = deadline - System.nanoTime()) {
      var context = GrpcCallContext.createDefault().withTimeoutDuration(Duration.ofNanos(left));
      try {
        var response = subscriptions.pullCallable().call(request, context);
        if (response.getReceivedMessagesCount() > 0) {
          return response.getReceivedMessagesList();
        }
      } catch (DeadlineExceededException nothingCame) {
        // The loop ends with the time that is left.
      }
    }
    throw new AssertionError("nothing came from " + subscription + " in " + patience);
  }

  ReceivedMessage pullOne(String subscription) {
    return pull(subscription, 1, PATIENCE).get(0);
  }

  void acknowledge(String subscription, List<ReceivedMessage> received) {
    subscriptions.acknowledge(
        subscription, received.stream().map(ReceivedMessage::getAckId).toList());
  }

  Subscriber.Builder subscriber(String subscription, MessageReceiver receiver) {
    return Subscriber.newBuilder(subscription, receiver)
        .setChannelProvider(channel)
        .setCredentialsProvider(nobody);
  }

  Subscriber.Builder confirmedSubscriber(
      String subscription, MessageReceiverWithAckResponse receiver) {
    return Subscriber.newBuilder(subscription, receiver)
        .setChannelProvider(channel)
        .setCredentialsProvider(nobody);
  }

  /** A subscriber that puts what {@code handle} returns for each message into the inbox. */
  <T> Subscriber receive(
      String subscription, Inbox<T> inbox, BiFunction<PubsubMessage, AckReplyConsumer, T> handle) {
    MessageReceiver receiver = (message, reply) -> inbox.add(handle.apply(message, reply));
    return start(subscriber(subscription, receiver));
  }

  static Subscriber start(Subscriber.Builder builder) {
    Subscriber subscriber = builder.build();
    subscriber.startAsync().awaitRunning();
    return subscriber;
  }

  /** Ends the subscriber once the acks of its messages are sent. */
  static void stop(Subscriber subscriber) throws Exception {
    subscriber.stopAsync().awaitTerminated(PATIENCE.toSeconds(), TimeUnit.SECONDS);
  }

  /** A message whose data is its number within its key. */
  static PubsubMessage numbered(String key, int number) {
    return PubsubMessage.newBuilder()
        .setOrderingKey(key)
        .setData(ByteString.copyFromUtf8(String.valueOf(number)))
        .build();
  }

  static List<PubsubMessage> numbered(String key, int start, int end) {
    return IntStream.range(start, end).mapToObj(number -> numbered(key, number)).toList();
  }

  static int number(PubsubMessage message) {
    return Integer.parseInt(message.getData().toStringUtf8());
  }

  static void assertEqual(Object actual, Object expected, String what) {
    if (!Objects.equals(actual, expected)) {
      throw new AssertionError(what + ": " + actual + ", expected " + expected);
    }
  }

  static void assertTrue(boolean condition, String what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  /** The error with which the call is refused, which must have this code. */
  static ApiException assertRefused(Callable<?> call, StatusCode.Code code, String what)
      throws Exception {
    Object answer;
    try {
      answer = call.call();
    } catch (ApiException error) {
      assertEqual(error.getStatusCode().getCode(), code, what + " (" + error.getMessage() + ")");
      return error;
    } catch (ExecutionException error) {
      ApiException cause = (ApiException) error.getCause();
      assertEqual(cause.getStatusCode().getCode(), code, what);
      return cause;
    }
    throw new AssertionError(what + " was not refused: " + answer);
  }

  /** The last few items, in a list of its own. */
  static <T> List<T> last(List<T> items, int count) {
    return new ArrayList<>(items.subList(Math.max(0, items.size() - count), items.size()));
  }
}
