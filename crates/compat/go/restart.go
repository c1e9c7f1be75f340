package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

const (
	// perPhase messages of each key are published before the restart, during it and after it.
	perPhase = 200
	perKey   = 3 * perPhase
	// recovery is how long the server may take to come back and the clients to find it again.
	recovery = 60 * time.Second
)

// restart kills the server in the middle of publishing and consuming.
func restart(ctx context.Context, s *stage) error {
	keys := []string{"red", "green", "blue", "black"}
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	published := make(chan error, 1)
	go func() { published <- publishThroughRestart(ctx, s.publisher(topic), keys) }()

	received := map[string][]int{}
	missing := map[delivery]bool{}
	for _, key := range keys {
		for number := range perKey {
			missing[delivery{key, number}] = true
		}
	}
	for len(missing) > 0 {
		came, err := receiver.next(recovery)
		if err != nil {
			return fmt.Errorf("%d messages are missing: %w", len(missing), err)
		}
		delete(missing, came)
		received[came.key] = append(received[came.key], came.number)
	}
	for key, numbers := range received {
		if err := checkSequence(numbers, 0); err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
	}
	if err := <-published; err != nil {
		return err
	}
	return receiver.close()
}

// publishThroughRestart publishes to every key; all of it must be accepted in the end.
func publishThroughRestart(
	ctx context.Context, publisher *pubsub.Publisher, keys []string,
) error {
	defer publisher.Stop()
	var results []*pubsub.PublishResult
	publish := func(start int) {
		for number := start; number < start+perPhase; number++ {
			for _, key := range keys {
				results = append(results, publisher.Publish(ctx, numbered(key, number)))
			}
		}
	}
	publish(0)
	if _, err := results[len(results)-1].Get(ctx); err != nil {
		return err
	}
	restarted := make(chan error, 1)
	go func() { restarted <- restartServer(ctx) }()
	publish(perPhase)
	if err := <-restarted; err != nil {
		return err
	}
	publish(2 * perPhase)
	for _, result := range results {
		if _, err := result.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

func restartServer(ctx context.Context) error {
	command := exec.CommandContext(ctx, "sh", "-c", os.Getenv("ORDERLY_RESTART"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the server did not come back: %w: %s", err, output)
	}
	return nil
}
