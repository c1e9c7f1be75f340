package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	project = "compat"
	// patience is how long a scenario waits for anything that should happen at once.
	patience = 30 * time.Second
)

// stage is what one scenario plays on: a client, and resources with fresh names.
type stage struct {
	client *pubsub.Client
	prefix string
}

func newStage(ctx context.Context, scenario string) (*stage, error) {
	client, err := pubsub.NewClient(ctx, project)
	if err != nil {
		return nil, err
	}
	return &stage{client, fmt.Sprintf("%s-%x", scenario, time.Now().UnixNano())}, nil
}

func (s *stage) topicName(suffix string) string {
	return fmt.Sprintf("projects/%s/topics/%s-%s", project, s.prefix, suffix)
}

func (s *stage) subscriptionName(suffix string) string {
	return fmt.Sprintf("projects/%s/subscriptions/%s-%s", project, s.prefix, suffix)
}

// topic creates a topic and returns its name.
func (s *stage) topic(ctx context.Context, suffix string) (string, error) {
	topic, err := s.client.TopicAdminClient.CreateTopic(
		ctx, &pubsubpb.Topic{Name: s.topicName(suffix)})
	return topic.GetName(), err
}

// subscription creates an ordered subscription with these settings and returns its name.
func (s *stage) subscription(
	ctx context.Context, topic, suffix string, settings *pubsubpb.Subscription,
) (string, error) {
	settings.Name = s.subscriptionName(suffix)
	settings.Topic = topic
	settings.EnableMessageOrdering = true
	created, err := s.client.SubscriptionAdminClient.CreateSubscription(ctx, settings)
	return created.GetName(), err
}

// topicAndSubscription creates a topic and an ordered subscription of it.
func (s *stage) topicAndSubscription(
	ctx context.Context, settings *pubsubpb.Subscription,
) (topic, subscription string, err error) {
	if topic, err = s.topic(ctx, "topic"); err != nil {
		return "", "", err
	}
	subscription, err = s.subscription(ctx, topic, "sub", settings)
	return topic, subscription, err
}

func (s *stage) publisher(topic string) *pubsub.Publisher {
	publisher := s.client.Publisher(topic)
	publisher.EnableMessageOrdering = true
	return publisher
}

// publish publishes the messages in order and returns when all are accepted.
func (s *stage) publish(ctx context.Context, topic string, messages ...*pubsub.Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	publisher := s.publisher(topic)
	defer publisher.Stop()
	var results []*pubsub.PublishResult
	for _, message := range messages {
		results = append(results, publisher.Publish(ctx, message))
	}
	for _, result := range results {
		if _, err := result.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pull pulls until something comes.
func (s *stage) pull(
	ctx context.Context, subscription string, count int32, limit time.Duration,
) ([]*pubsubpb.ReceivedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request := &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: count}
	for ctx.Err() == nil {
		response, err := s.client.SubscriptionAdminClient.Pull(ctx, request)
		if err != nil && status.Code(err) != codes.DeadlineExceeded {
			return nil, err
		}
		if received := response.GetReceivedMessages(); len(received) > 0 {
			return received, nil
		}
	}
	return nil, fmt.Errorf("nothing came from %s in %v", subscription, limit)
}

// pullOne pulls one message.
func (s *stage) pullOne(
	ctx context.Context, subscription string,
) (*pubsubpb.ReceivedMessage, error) {
	received, err := s.pull(ctx, subscription, 1, patience)
	if err != nil {
		return nil, err
	}
	return received[0], nil
}

func (s *stage) acknowledge(
	ctx context.Context, subscription string, received ...*pubsubpb.ReceivedMessage,
) error {
	request := &pubsubpb.AcknowledgeRequest{Subscription: subscription}
	for _, message := range received {
		request.AckIds = append(request.AckIds, message.AckId)
	}
	return s.client.SubscriptionAdminClient.Acknowledge(ctx, request)
}

// receiver is a streaming subscriber at work. The callback puts what it sees on the channel.
type receiver[T any] struct {
	seen  chan T
	stop  context.CancelFunc
	ended chan error
}

// receive starts a streaming subscriber; what handle returns for a message is seen by next.
func receive[T any](
	ctx context.Context, subscriber *pubsub.Subscriber, handle func(*pubsub.Message) T,
) *receiver[T] {
	ctx, cancel := context.WithCancel(ctx)
	r := &receiver[T]{make(chan T, 100_000), cancel, make(chan error, 1)}
	go func() {
		r.ended <- subscriber.Receive(ctx, func(_ context.Context, message *pubsub.Message) {
			r.seen <- handle(message)
		})
	}()
	return r
}

// next is what the callback saw next.
func (r *receiver[T]) next(limit time.Duration) (T, error) {
	var none T
	select {
	case seen := <-r.seen:
		return seen, nil
	case err := <-r.ended:
		r.ended <- err
		return none, fmt.Errorf("the stream ended: %w", err)
	case <-time.After(limit):
		return none, fmt.Errorf("nothing came in %v", limit)
	}
}

// close ends the stream; the acks of its messages have been sent when it returns.
func (r *receiver[T]) close() error {
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		return errors.New("the stream does not end")
	}
}

// delivery is a message of a key and its number within the key.
type delivery struct {
	key    string
	number int
}

// ack acknowledges a numbered message.
func ack(message *pubsub.Message) delivery {
	message.Ack()
	return delivery{message.OrderingKey, number(message.Data)}
}

func numbered(key string, number int) *pubsub.Message {
	return &pubsub.Message{OrderingKey: key, Data: []byte(strconv.Itoa(number))}
}

// number is -1 for data that is no number, which no scenario expects.
func number(data []byte) int {
	number, err := strconv.Atoi(string(data))
	if err != nil {
		return -1
	}
	return number
}

func expectEqual[T any](actual, expected T, what string) error {
	if !reflect.DeepEqual(actual, expected) {
		return fmt.Errorf("%s: %v, expected %v", what, actual, expected)
	}
	return nil
}

func expectCode(err error, code codes.Code, what string) error {
	if actual := status.Code(err); actual != code {
		return fmt.Errorf("%s: %v (%v), expected %v", what, actual, err, code)
	}
	return nil
}
