package main

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func create(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	subscription, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	listed, err := s.client.TopicAdminClient.ListTopicSubscriptions(
		ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: topic}).Next()
	if err != nil {
		return err
	}
	_, topicAgain := s.topic(ctx, "topic")
	_, subscriptionAgain := s.subscription(ctx, topic, "sub", &pubsubpb.Subscription{})
	const week = 7 * 24 * time.Hour
	return errors.Join(
		expectEqual(subscription.Topic, topic, "topic"),
		expectEqual(subscription.AckDeadlineSeconds, 10, "ack deadline"),
		expectEqual(subscription.MessageRetentionDuration.AsDuration(), week, "retention"),
		expectEqual(subscription.EnableMessageOrdering, true, "ordering"),
		expectEqual(subscription.EnableExactlyOnceDelivery, false, "exactly-once"),
		expectEqual(subscription.Filter, "", "filter"),
		expectEqual(listed, name, "subscription of the topic"),
		expectCode(topicAgain, codes.AlreadyExists, "second creation of the topic"),
		expectCode(subscriptionAgain, codes.AlreadyExists, "of the subscription"),
	)
}

func update(ctx context.Context, s *stage) error {
	const filter = `attributes.lang = "en"`
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{Filter: filter})
	if err != nil {
		return err
	}
	labelled, err := s.client.TopicAdminClient.UpdateTopic(ctx, &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: topic, Labels: map[string]string{"team": "a"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	if err != nil {
		return err
	}

	change := func(fields *pubsubpb.Subscription, paths ...string) (*pubsubpb.Subscription, error) {
		fields.Name, fields.Topic = name, topic
		return s.client.SubscriptionAdminClient.UpdateSubscription(
			ctx, &pubsubpb.UpdateSubscriptionRequest{
				Subscription: fields,
				UpdateMask:   &fieldmaskpb.FieldMask{Paths: paths},
			})
	}
	changed, err := change(&pubsubpb.Subscription{
		Labels: map[string]string{"team": "b"}, AckDeadlineSeconds: 45,
	}, "labels", "ack_deadline_seconds")
	if err != nil {
		return err
	}
	_, refused := change(&pubsubpb.Subscription{Filter: `attributes.lang = "fr"`}, "filter")
	stored, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(
		expectEqual(labelled.Labels, map[string]string{"team": "a"}, "labels of the topic"),
		expectEqual(changed.Labels, map[string]string{"team": "b"}, "labels"),
		expectEqual(changed.AckDeadlineSeconds, 45, "ack deadline"),
		expectCode(refused, codes.InvalidArgument, "change of the filter"),
		expectEqual(stored.Filter, filter, "filter"),
		expectEqual(stored.AckDeadlineSeconds, 45, "stored ack deadline"),
	)
}

func deleteResources(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	orphan, err := s.subscription(ctx, topic, "orphan", &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	if err := s.publish(ctx, topic, numbered("key", 1)); err != nil {
		return err
	}
	if _, err := receiver.next(patience); err != nil {
		return err
	}

	err = s.client.SubscriptionAdminClient.DeleteSubscription(
		ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	if err != nil {
		return err
	}
	var ended error
	select {
	case ended = <-receiver.ended:
	case <-time.After(patience):
		return errors.New("the stream goes on")
	}
	_, gone := s.get(ctx, name)
	_, pulled := s.pullOne(ctx, name)

	err = s.client.TopicAdminClient.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic})
	if err != nil {
		return err
	}
	published := s.publish(ctx, topic, numbered("key", 2))
	orphaned, err := s.get(ctx, orphan)
	if err != nil {
		return err
	}
	return errors.Join(
		expectCode(ended, codes.NotFound, "open stream"),
		expectCode(gone, codes.NotFound, "get of the subscription"),
		expectCode(pulled, codes.NotFound, "pull"),
		expectCode(published, codes.NotFound, "publish"),
		expectEqual(orphaned.Topic, "_deleted-topic_", "topic of the orphan"),
	)
}

func (s *stage) get(ctx context.Context, name string) (*pubsubpb.Subscription, error) {
	return s.client.SubscriptionAdminClient.GetSubscription(
		ctx, &pubsubpb.GetSubscriptionRequest{Subscription: name})
}
