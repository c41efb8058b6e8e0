package interop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// engineRules are kept by internal/queue and the cloud together.
var engineRules = []rule{
	{"everything that is sent is handled and then gone", nil, engineSettles},
	{"what is worked on longer than its timeout is received once", nil, engineKeeps},
	{"a drain leaves nothing in flight", nil, engineDrains},
	{"the last receive makes a dead letter with its reason, which can be redriven", nil, engineBuries},
}

// engine is a consumer and a sender of one queue that has dead letters.
type engine struct {
	box
	sender *queue.Sender

	mu   sync.Mutex
	seen map[string]int // deliveries by body
}

// newEngine creates a queue with a visibility timeout in seconds.
func newEngine(t *testing.T, c *cloud, visibility int) *engine {
	t.Helper()
	dead := open(t, c, 60)
	b := box{t, c.sqs(), c.queue(t, map[string]string{"VisibilityTimeout": fmt.Sprint(visibility), "RedrivePolicy": c.redrive(dead.url, 30)})}
	e := &engine{box: b, sender: queue.NewSender(b.api, nil, queue.SenderConfig{Name: "test", URL: b.url}, telemetry.Nop()), seen: map[string]int{}}
	t.Cleanup(func() { e.sender.Close(context.WithoutCancel(t.Context())) })
	return e
}

// ask sends n messages.
func (e *engine) ask(n int) {
	e.Helper()
	list := make([]queue.Entry, n)
	for i := range list {
		list[i] = queue.Entry{Body: fmt.Sprintf("body %d", i), Attributes: map[string]string{"number": fmt.Sprint(i)}}
	}
	for _, err := range e.sender.Send(e.Context(), list) {
		if err != nil {
			e.Fatalf("send: %v", err)
		}
	}
}

// consume handles deliveries until done is true of what was seen, then drains
// within the time.
func (e *engine) consume(handle queue.Handler, drain time.Duration, done func(seen map[string]int) bool) error {
	e.Helper()
	cfg := queue.DefaultConfig()
	cfg.Name, cfg.URL, cfg.Slots, cfg.Receives, cfg.BackoffMin, cfg.Wait = "test", e.url, 16, 2, time.Second, 2*time.Second
	progress := make(chan struct{}, 1)
	note := func(ctx context.Context, d *queue.Delivery) queue.Outcome {
		e.mu.Lock()
		e.seen[d.Body]++
		e.mu.Unlock()
		defer func() {
			select {
			case progress <- struct{}{}:
			default:
			}
		}()
		return handle(ctx, d)
	}
	consumer, err := queue.NewConsumer(e.api, guard.Slots(cfg.Slots), note, cfg, telemetry.Nop())
	if err != nil {
		return err
	}
	if err := consumer.Open(e.Context()); err != nil {
		return err
	}
	intake, stop := context.WithCancel(e.Context())
	work, abort := context.WithCancel(e.Context())
	defer abort()
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(intake, work) }()
	deadline := time.After(time.Minute)
	for waiting := true; waiting; {
		select {
		case <-progress:
		case <-time.After(100 * time.Millisecond):
		case <-deadline:
			stop()
			abort()
			return errors.Join(errors.New("not done within a minute"), <-ended)
		}
		e.mu.Lock()
		waiting = !done(e.seen)
		e.mu.Unlock()
	}
	stop()
	defer time.AfterFunc(drain, abort).Stop()
	return <-ended
}

// left is an error when the queue holds anything, in flight or not.
func (e *engine) left() error {
	e.Helper()
	if waiting, inFlight := e.depth(); waiting != 0 || inFlight != 0 {
		return fmt.Errorf("%d wait and %d are in flight", waiting, inFlight)
	}
	return nil
}

func settle(context.Context, *queue.Delivery) queue.Outcome {
	return queue.Outcome{Verb: queue.Settle, End: string(object.EndCopied)}
}

func engineSettles(t *testing.T, c *cloud) error {
	e := newEngine(t, c, 60)
	n := 25
	if long {
		n = 250
	}
	e.ask(n)
	if err := e.consume(settle, 30*time.Second, func(seen map[string]int) bool { return len(seen) == n }); err != nil {
		return err
	}
	return e.left()
}

func engineKeeps(t *testing.T, c *cloud) error {
	e := newEngine(t, c, 10)
	e.ask(1)
	slow := func(ctx context.Context, d *queue.Delivery) queue.Outcome {
		select {
		case <-time.After(14 * time.Second):
			return settle(ctx, d)
		case <-ctx.Done():
			return queue.Outcome{Verb: queue.HandBack}
		}
	}
	start := time.Now()
	if err := e.consume(slow, 30*time.Second, func(map[string]int) bool { return time.Since(start) > 13*time.Second }); err != nil {
		return err
	}
	if diff := cmp.Diff(map[string]int{"body 0": 1}, e.seen); diff != "" {
		return fmt.Errorf("deliveries (-want +got):\n%s", diff)
	}
	return e.left()
}

// engineDrains ends work that would go on for ever; what was held comes back to
// the next receiver long before its timeout.
func engineDrains(t *testing.T, c *cloud) error {
	e := newEngine(t, c, 600)
	e.ask(20)
	stuck := func(ctx context.Context, _ *queue.Delivery) queue.Outcome {
		<-ctx.Done()
		return queue.Outcome{Verb: queue.HandBack}
	}
	if err := e.consume(stuck, time.Second, func(seen map[string]int) bool { return len(seen) >= 16 }); err != nil {
		return err
	}
	e.seen = map[string]int{}
	if err := e.consume(settle, 30*time.Second, func(seen map[string]int) bool { return len(seen) == 20 }); err != nil {
		return fmt.Errorf("handling what the first drain gave back: %w", err)
	}
	return e.left()
}

func engineBuries(t *testing.T, c *cloud) error {
	e := newEngine(t, c, 60)
	e.ask(1)
	fail := func(context.Context, *queue.Delivery) queue.Outcome {
		return queue.Outcome{Verb: queue.Retry, Detail: string(object.DetailCorrupt)}
	}
	if err := e.consume(fail, 30*time.Second, func(seen map[string]int) bool { return seen["body 0"] == 2 }); err != nil {
		return err
	}
	letters, err := deadletter.Open(t.Context(), e.api, "test", e.url)
	if err != nil {
		return err
	}
	found, err := letters.Look(t.Context(), func(*deadletter.Letter) (bool, error) { return true, nil })
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d letters, want 1: %w", len(found), err)
	}
	if l := found[0]; l.Body != "body 0" || l.Reason() != "failed corrupt" || l.Receives != 2 || l.DeadAt.IsZero() {
		return fmt.Errorf("the letter is %+v", *l)
	}
	if n, err := letters.Redrive(t.Context(), found, 0); n != 1 || err != nil {
		return fmt.Errorf("redriven %d: %w", n, err)
	}
	again := e.one()
	want := map[string]string{"number": "String:0", "redriven": "String:1"}
	if diff := cmp.Diff(want, plain(again.MessageAttributes)); diff != "" || *again.Body != "body 0" || count(again) != "1" {
		return fmt.Errorf("redriven with body %q, count %s, attributes (-want +got):\n%s", *again.Body, count(again), diff)
	}
	return nil
}
