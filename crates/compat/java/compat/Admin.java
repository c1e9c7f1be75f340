package compat;

import static compat.Stage.PATIENCE;
import static compat.Stage.assertEqual;
import static compat.Stage.assertRefused;
import static compat.Stage.assertTrue;
import static compat.Stage.number;
import static compat.Stage.numbered;

import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.StatusCode.Code;
import com.google.protobuf.FieldMask;
import com.google.pubsub.v1.Subscription;
import com.google.pubsub.v1.Topic;
import com.google.pubsub.v1.UpdateSubscriptionRequest;
import com.google.pubsub.v1.UpdateTopicRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Resources: create with defaults, update by mask, delete. */
final class Admin {
  private Admin() {}

  static void create(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");

    Subscription subscription = stage.subscriptions.getSubscription(name);
    assertEqual(subscription.getTopic(), topic, "topic");
    assertEqual(subscription.getAckDeadlineSeconds(), 10, "ack deadline");
    long retention = subscription.getMessageRetentionDuration().getSeconds();
    assertEqual(TimeUnit.SECONDS.toDays(retention), 7L, "retention in days");
    assertEqual(subscription.getEnableMessageOrdering(), true, "ordering");
    assertEqual(subscription.getEnableExactlyOnceDelivery(), false, "exactly-once");
    assertEqual(subscription.getFilter(), "", "filter");
    List<String> listed = new ArrayList<>();
    stage.topics.listTopicSubscriptions(topic).iterateAll().forEach(listed::add);
    assertEqual(listed, List.of(name), "subscriptions of the topic");

    assertRefused(() -> stage.topic("topic"), Code.ALREADY_EXISTS, "second creation of the topic");
    assertRefused(
        () -> stage.subscription(topic, "sub"), Code.ALREADY_EXISTS, "of the subscription");
  }

  static void update(Stage stage) throws Exception {
    String filter = "attributes.lang = \"en\"";
    String topic = stage.topic("topic");
    String name =
        stage.subscription(topic, "sub", Subscription.newBuilder().setFilter(filter));

    Topic labelled =
        stage.topics.updateTopic(
            UpdateTopicRequest.newBuilder()
                .setTopic(Topic.newBuilder().setName(topic).putLabels("team", "a"))
                .setUpdateMask(FieldMask.newBuilder().addPaths("labels"))
                .build());
    assertEqual(labelled.getLabelsMap(), Map.of("team", "a"), "labels of the topic");

    var fields = Subscription.newBuilder().setName(name).setTopic(topic);
    Subscription changed =
        stage.subscriptions.updateSubscription(
            UpdateSubscriptionRequest.newBuilder()
                .setSubscription(fields.putLabels("team", "b").setAckDeadlineSeconds(45))
                .setUpdateMask(
                    FieldMask.newBuilder().addPaths("labels").addPaths("ack_deadline_seconds"))
                .build());
    assertEqual(changed.getLabelsMap(), Map.of("team", "b"), "labels");
    assertEqual(changed.getAckDeadlineSeconds(), 45, "ack deadline");

    var immutable =
        UpdateSubscriptionRequest.newBuilder()
            .setSubscription(fields.setFilter("attributes.lang = \"fr\""))
            .setUpdateMask(FieldMask.newBuilder().addPaths("filter"))
            .build();
    assertRefused(
        () -> stage.subscriptions.updateSubscription(immutable),
        Code.INVALID_ARGUMENT,
        "change of the filter");
    Subscription stored = stage.subscriptions.getSubscription(name);
    assertEqual(stored.getFilter(), filter, "filter");
    assertEqual(stored.getAckDeadlineSeconds(), 45, "stored ack deadline");
  }

  static void delete(Stage stage) throws Exception {
    String topic = stage.topic("topic");
    String name = stage.subscription(topic, "sub");
    String orphan = stage.subscription(topic, "orphan");
    var inbox = new Inbox<Integer>();
    var subscriber =
        stage.receive(
            name,
            inbox,
            (message, reply) -> {
              reply.ack();
              return number(message);
            });
    stage.publish(topic, List.of(numbered("key", 1)));
    inbox.awaitCount(1);

    stage.subscriptions.deleteSubscription(name);
    try {
      subscriber.awaitTerminated(PATIENCE.toSeconds(), TimeUnit.SECONDS);
      throw new AssertionError("the open stream ended without an error");
    } catch (IllegalStateException failed) {
      assertTrue(subscriber.failureCause() instanceof ApiException, "cause: " + failed.getCause());
      var cause = (ApiException) subscriber.failureCause();
      assertEqual(cause.getStatusCode().getCode(), Code.NOT_FOUND, "open stream");
    }
    assertRefused(
        () -> stage.subscriptions.getSubscription(name), Code.NOT_FOUND, "get of the subscription");
    assertRefused(() -> stage.pullOne(name), Code.NOT_FOUND, "pull");

    stage.topics.deleteTopic(topic);
    assertRefused(
        () -> stage.publish(topic, List.of(numbered("key", 2))), Code.NOT_FOUND, "publish");
    Subscription orphaned = stage.subscriptions.getSubscription(orphan);
    assertEqual(orphaned.getTopic(), "_deleted-topic_", "topic of the orphan");
  }
}
