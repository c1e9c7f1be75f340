// Runs the scenarios with the official Go client and prints one line for each.
//
// The server is the one that PUBSUB_EMULATOR_HOST names; ORDERLY_RESTART is explained in the README.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type scenario struct {
	name string
	// play fails if a promise is broken.
	play func(context.Context, *stage) error
}

// concurrent ones are independent of each other, so they run at the same time.
var concurrent = []scenario{
	{"create", create},
	{"update", update},
	{"delete", deleteResources},
	{"publish_ordered", publishOrdered},
	{"stream", stream},
	{"nack", nack},
	{"expiry", expiry},
	{"exactly_once", exactlyOnce},
	{"flow_control", flowControl},
	{"dead_letter", deadLetter},
	{"filter", filter},
}

// disruptive ones disturb every client of the server, so they run alone, at the end.
var disruptive = []scenario{{"restart", restart}}

func main() {
	wanted := func(s scenario) bool {
		return len(os.Args) == 1 || slices.Contains(os.Args[1:], s.name)
	}
	var failed atomic.Bool
	var playing sync.WaitGroup
	for _, s := range concurrent {
		if wanted(s) {
			playing.Go(func() { play(s, &failed) })
		}
	}
	playing.Wait()
	for _, s := range disruptive {
		if !wanted(s) {
			continue
		}
		if _, ok := os.LookupEnv("ORDERLY_RESTART"); ok {
			play(s, &failed)
		} else {
			report(s.name, "skipped", 0, "ORDERLY_RESTART is not set")
		}
	}
	if failed.Load() {
		os.Exit(1)
	}
}

func play(s scenario, failed *atomic.Bool) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := onStage(ctx, s); err != nil {
		report(s.name, "failed", time.Since(began), err.Error())
		failed.Store(true)
		return
	}
	report(s.name, "passed", time.Since(began), "")
}

func onStage(ctx context.Context, s scenario) error {
	stage, err := newStage(ctx, s.name)
	if err != nil {
		return err
	}
	defer stage.client.Close()
	return s.play(ctx, stage)
}

func report(name, outcome string, took time.Duration, reason string) {
	reason = strings.Join(strings.Fields(reason), " ")
	fmt.Printf("%s %s %.1fs %s\n", name, outcome, took.Seconds(), reason)
}
