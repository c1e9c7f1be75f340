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
	// perRound messages go to each key in one round.
	perRound = 5
	// rounds are published before the restart begins, and again after it is over.
	rounds = 10
	// recovery is for the server to come back, and for a client that may wait a minute between two
	// tries.
	recovery = 2 * time.Minute
)

// restart kills the server in the middle of publishing and consuming.
func restart(ctx context.Context, s *stage) error {
	var keys []string
	for index := range 10 {
		keys = append(keys, fmt.Sprintf("key-%d", index))
	}
	topic, name, err := s.topicAndSubscription(ctx, &pubsubpb.Subscription{})
	if err != nil {
		return err
	}
	receiver := receive(ctx, s.client.Subscriber(name), ack)
	defer receiver.stop()
	perKey, err := publishThroughRestart(ctx, s.publisher(topic), keys)
	if err != nil {
		return err
	}

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
	return receiver.close()
}

// publishThroughRestart publishes round after round while the server is killed and comes back; it
// returns how many messages each key has got.
func publishThroughRestart(
	ctx context.Context, publisher *pubsub.Publisher, keys []string,
) (published int, err error) {
	defer publisher.Stop()
	publishRounds := func(count int) error {
		for range count {
			if err := publishRound(ctx, publisher, keys, published); err != nil {
				return err
			}
			published += perRound
		}
		return nil
	}
	if err := publishRounds(rounds); err != nil {
		return published, err
	}
	restarted := make(chan error, 1)
	go func() { restarted <- restartServer(ctx) }()
	for {
		select {
		case err := <-restarted:
			if err == nil {
				err = publishRounds(rounds)
			}
			return published, err
		default:
			if err := publishRounds(1); err != nil {
				return published, err
			}
		}
	}
}

// publishRound returns when the server has accepted all messages of the round.
func publishRound(
	ctx context.Context, publisher *pubsub.Publisher, keys []string, start int,
) error {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	var results []*pubsub.PublishResult
	for number := start; number < start+perRound; number++ {
		for _, key := range keys {
			results = append(results, publisher.Publish(ctx, numbered(key, number)))
		}
	}
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
