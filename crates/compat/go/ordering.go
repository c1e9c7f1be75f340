package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

func publishOrdered(ctx context.Context, s *stage) error {
	keys := []string{"red", "green", "blue"}
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	if err := s.publish(ctx, topic, numberedOfAll(keys, 20)...); err != nil {
		return err
	}
	if err := expectInOrder(receiver, keys, 20); err != nil {
		return err
	}
	return receiver.close()
}

func stream(ctx context.Context, s *stage) error {
	const perKey = 200
	var keys []string
	for index := range 50 {
		keys = append(keys, fmt.Sprintf("key-%d", index))
	}
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	if err := s.publish(ctx, topic, numberedOfAll(keys, perKey)...); err != nil {
		return err
	}
	if err := expectInOrder(receiver, keys, perKey); err != nil {
		return err
	}
	if err := receiver.close(); err != nil {
		return err
	}
	return expectBacklogEmpty(ctx, s, topic, name, keys)
}

// numberedOfAll is 0, 1, ... of each key, the keys in turn.
func numberedOfAll(keys []string, perKey int) []*pubsub.Message {
	var messages []*pubsub.Message
	for number := range perKey {
		for _, key := range keys {
			messages = append(messages, numbered(key, number))
		}
	}
	return messages
}

// expectInOrder receives 0, 1, ... of each key, and nothing twice.
func expectInOrder(receiver *receiver[delivery], keys []string, perKey int) error {
	next := map[string]int{}
	for range len(keys) * perKey {
		came, err := receiver.next(patience)
		if err != nil {
			return fmt.Errorf("after %v: %w", next, err)
		}
		if err := expectEqual(came.number, next[came.key], "next of "+came.key); err != nil {
			return err
		}
		next[came.key]++
	}
	return nil
}

// expectBacklogEmpty publishes one more message of each key: it comes by Pull only once every
// earlier one of the key is acked.
func expectBacklogEmpty(
	ctx context.Context, s *stage, topic, subscription string, keys []string,
) error {
	waiting := map[string]bool{}
	for _, key := range keys {
		waiting[key] = true
		last := &pubsub.Message{OrderingKey: key, Data: []byte("last")}
		if err := s.publish(ctx, topic, last); err != nil {
			return err
		}
	}
	for len(waiting) > 0 {
		received, err := s.pull(ctx, subscription, int32(len(keys)), 5*time.Second)
		if err != nil {
			return fmt.Errorf("waiting for %v: %w", waiting, err)
		}
		for _, item := range received {
			data := string(item.Message.Data)
			if err := expectEqual(data, "last", "backlog"); err != nil {
				return err
			}
			delete(waiting, item.Message.OrderingKey)
		}
		if err := s.acknowledge(ctx, subscription, received...); err != nil {
			return err
		}
	}
	return nil
}

// nack refuses the third of five once: it comes again, and the later ones after it.
func nack(ctx context.Context, s *stage) error {
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	refused := false
	receiver := receive(ctx, s.client.Subscriber(name), func(message *pubsub.Message) delivery {
		if number(message.Data) == 3 && !refused {
			refused = true
			message.Nack()
			return delivery{message.OrderingKey, 3}
		}
		return ack(message)
	})
	defer receiver.stop()
	var messages []*pubsub.Message
	for number := 1; number <= 5; number++ {
		messages = append(messages, numbered("key", number))
	}
	if err := s.publish(ctx, topic, messages...); err != nil {
		return err
	}

	var received []int
	for threes := 0; threes < 2 || received[len(received)-1] != 5; {
		came, err := receiver.next(patience)
		if err != nil {
			return fmt.Errorf("after %v: %w", received, err)
		}
		received = append(received, came.number)
		if came.number == 3 {
			threes++
		}
	}
	return errors.Join(
		receiver.close(),
		checkSequence(received, 1),
		expectEqual(received[len(received)-3:], []int{3, 4, 5}, "after the nack"),
	)
}
