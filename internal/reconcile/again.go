package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

const (
	attempts    = 5
	firstPause  = 500 * time.Millisecond // doubled each time, with jitter
	longest     = 30 * time.Second       // of what a server may ask us to wait
	callTimeout = time.Minute
)

// again makes a call, and makes it again when the other side was not there or
// throttled it. The stores themselves never repeat a call.
func again[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		got, err := call(bounded)
		cancel()
		var e *object.Error
		if attempt == attempts || !errors.As(err, &e) || e.Class != object.Unavailable && e.Class != object.Throttled {
			return got, err
		}
		wait := firstPause << (attempt - 1)
		wait = max(wait/2+rand.N(wait/2), min(e.RetryAfter, longest))
		if err := pause(ctx, wait); err != nil {
			return got, err
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
