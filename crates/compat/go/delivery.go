package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/grpc/codes"
)

// expiry pulls a message and does not ack it: it comes back once its 10 s are over, and its
// successor only after it is acked.
func expiry(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(
		ctx, &pubsubpb.Subscription{AckDeadlineSeconds: 10})
	if err != nil {
		return err
	}
	if err := s.publish(ctx, topic, numbered("key", 1), numbered("key", 2)); err != nil {
		return err
	}
	asked := time.Now()
	first, err := s.pullOne(ctx, name)
	if err != nil {
		return err
	}
	again, err := s.pullOne(ctx, name)
	if err != nil {
		return err
	}
	if waited := time.Since(asked); waited < 9500*time.Millisecond || waited > 15*time.Second {
		return fmt.Errorf("redelivered after %v with a deadline of 10 s", waited)
	}
	if err := s.acknowledge(ctx, name, again); err != nil {
		return err
	}
	successor, err := s.pullOne(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(
		expectEqual(number(first.Message.Data), 1, "first delivery"),
		expectEqual(number(again.Message.Data), 1, "delivery after the deadline"),
		expectEqual(again.Message.MessageId, first.Message.MessageId, "message id"),
		expectEqual(number(successor.Message.Data), 2, "after the ack"),
		s.acknowledge(ctx, name, successor),
	)
}

func exactlyOnce(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(
		ctx, &pubsubpb.Subscription{EnableExactlyOnceDelivery: true})
	if err != nil {
		return err
	}
	if err := expectAckConfirmed(ctx, s, topic, name); err != nil {
		return err
	}
	return expectStaleAckRefused(ctx, s, topic, name)
}

func expectAckConfirmed(ctx context.Context, s *stage, topic, name string) error {
	confirm := func(message *pubsub.Message) *pubsub.AckResult { return message.AckWithResult() }
	receiver := receive(ctx, s.client.Subscriber(name), confirm)
	defer receiver.stop()
	if err := s.publish(ctx, topic, numbered("key", 1)); err != nil {
		return err
	}
	result, err := receiver.next(patience)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	outcome, err := result.Get(limited)
	if err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return errors.Join(
		expectEqual(outcome, pubsub.AcknowledgeStatusSuccess, "outcome of the ack"),
		receiver.close(),
	)
}

// expectStaleAckRefused gives a lease up and then acks by its id.
func expectStaleAckRefused(ctx context.Context, s *stage, topic, name string) error {
	if err := s.publish(ctx, topic, numbered("key", 2)); err != nil {
		return err
	}
	first, err := s.pullOne(ctx, name)
	if err != nil {
		return err
	}
	err = s.client.SubscriptionAdminClient.ModifyAckDeadline(ctx,
		&pubsubpb.ModifyAckDeadlineRequest{Subscription: name, AckIds: []string{first.AckId}})
	if err != nil {
		return err
	}
	second, err := s.pullOne(ctx, name)
	if err != nil {
		return err
	}
	refused := s.acknowledge(ctx, name, first)
	if err := expectCode(refused, codes.InvalidArgument, "ack of the stale id"); err != nil {
		return err
	}
	detail, _ := apierror.FromError(refused)
	reasons := map[string]string{first.AckId: "PERMANENT_FAILURE_INVALID_ACK_ID"}
	return errors.Join(
		expectEqual(detail.Reason(), "EXACTLY_ONCE_ACKID_FAILURE", "reason"),
		expectEqual(detail.Metadata(), reasons, "metadata"),
		expectEqual(second.Message.MessageId, first.Message.MessageId, "message id"),
		s.acknowledge(ctx, name, second),
	)
}

// flowControl finishes no message before five are there: there are never more than five.
func flowControl(ctx context.Context, s *stage) error {
	const count = 20
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	var messages []*pubsub.Message
	for number := range count {
		messages = append(messages, numbered(fmt.Sprintf("key-%d", number), number))
	}
	if err := s.publish(ctx, topic, messages...); err != nil {
		return err
	}

	arrived, finish := make(chan int, count), make(chan struct{}, count)
	var unfinished atomic.Int32
	subscriber := s.client.Subscriber(name)
	subscriber.ReceiveSettings.MaxOutstandingMessages = 5
	receiver := receive(ctx, subscriber, func(message *pubsub.Message) int32 {
		now := unfinished.Add(1)
		arrived <- number(message.Data)
		<-finish
		unfinished.Add(-1)
		message.Ack()
		return now
	})
	defer receiver.stop()
	defer close(finish)

	seen := map[int]bool{}
	for len(seen) < count {
		limit := patience
		if len(seen) == 5 {
			limit = time.Second // A sixth would come at once.
		}
		select {
		case number := <-arrived:
			seen[number] = true
			if len(seen) > 5 {
				finish <- struct{}{}
			}
		case <-time.After(limit):
			if len(seen) != 5 {
				return fmt.Errorf("only %d messages came", len(seen))
			}
			finish <- struct{}{}
		}
		if now := unfinished.Load(); now > 5 {
			return fmt.Errorf("%d unfinished messages", now)
		}
	}
	return nil
}

// deadLetter refuses a message five times: it moves to the dead-letter topic, and its key goes on.
func deadLetter(ctx context.Context, s *stage) error {
	topic, err := s.topic(ctx, "topic")
	if err != nil {
		return err
	}
	graveyard, err := s.topic(ctx, "graveyard")
	if err != nil {
		return err
	}
	buriedIn, err := s.subscription(ctx, graveyard, "buried", &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	name, err := s.subscription(ctx, topic, "sub", &pubsubpb.Subscription{
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{
			DeadLetterTopic: graveyard, MaxDeliveryAttempts: 5,
		},
	})
	if err != nil {
		return err
	}

	const poison = 1
	receiver := receive(ctx, s.client.Subscriber(name), func(message *pubsub.Message) int {
		if number(message.Data) != poison {
			message.Ack()
			return 0
		}
		attempt := *message.DeliveryAttempt
		message.Nack()
		return attempt
	})
	defer receiver.stop()
	bad := numbered("key", poison)
	bad.Attributes = map[string]string{"colour": "red"}
	if err := s.publish(ctx, topic, bad); err != nil {
		return err
	}
	buried, err := s.pullOne(ctx, buriedIn)
	if err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	if err := s.publish(ctx, topic, numbered("key", 2)); err != nil {
		return err
	}
	var seen []int
	for len(seen) < 6 {
		attempt, err := receiver.next(patience)
		if err != nil {
			return fmt.Errorf("after attempts %v: %w", seen, err)
		}
		seen = append(seen, attempt)
	}
	return errors.Join(
		expectEqual(seen, []int{1, 2, 3, 4, 5, 0}, "attempts, then the next message of the key"),
		expectEqual(number(buried.Message.Data), poison, "data of the dead letter"),
		expectEqual(buried.Message.OrderingKey, "key", "key of the dead letter"),
		expectOrigin(buried.Message.Attributes, name),
		s.acknowledge(ctx, buriedIn, buried),
		receiver.close(),
	)
}

// expectOrigin checks that a dead letter tells where it comes from, beside its own attributes.
func expectOrigin(attributes map[string]string, subscription string) error {
	const source = "CloudPubSubDeadLetterSource"
	shortName := subscription[strings.LastIndex(subscription, "/")+1:]
	published := attributes[source+"TopicPublishTime"]
	return errors.Join(
		expectEqual(attributes["colour"], "red", "own attribute"),
		expectEqual(attributes[source+"DeliveryCount"], "5", "delivery count"),
		expectEqual(attributes[source+"Subscription"], shortName, "source subscription"),
		expectEqual(attributes[source+"SubscriptionProject"], project, "source project"),
		expectEqual(strings.HasSuffix(published, "+00:00"), true, "zone of "+published),
	)
}

// filter receives only what matches; the rest neither blocks its key nor stays behind.
func filter(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(
		ctx, &pubsubpb.Subscription{Filter: `attributes.lang = "en"`})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	var messages []*pubsub.Message
	for number := 1; number <= 7; number++ {
		message := numbered("key", number)
		message.Attributes = map[string]string{"lang": []string{"fr", "en"}[number%2]}
		messages = append(messages, message)
	}
	if err := s.publish(ctx, topic, messages...); err != nil {
		return err
	}
	var received []int
	for len(received) == 0 || received[len(received)-1] != 7 {
		came, err := receiver.next(patience)
		if err != nil {
			return fmt.Errorf("after %v: %w", received, err)
		}
		received = append(received, came.number)
	}
	_, refused := s.subscription(
		ctx, topic, "invalid", &pubsubpb.Subscription{Filter: "lang = en"})
	return errors.Join(
		expectEqual(received, []int{1, 3, 5, 7}, "matching messages"),
		expectCode(refused, codes.InvalidArgument, "malformed filter"),
		receiver.close(),
	)
}
