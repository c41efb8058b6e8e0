package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// ErrTooMany says that more keys are missing than may be requested, so none was.
var ErrTooMany = errors.New("too many keys are missing")

// cause stands where a log row would name S3's error code.
const cause = "reconciled"

// healer requests missing keys. While there is a limit it holds them, at most so
// many, until the end tells whether they keep to it.
type healer struct {
	route  *route.Route
	sender sender
	rate   float64
	atMost int // 0 is unlimited

	held    []string
	pending []queue.Entry
	keys    []string // of pending
}

func (h *healer) add(key string) error {
	if h.atMost == 0 {
		return h.encode(key)
	}
	// One more than the limit is kept: in the state file it says that it was passed.
	if len(h.held) <= h.atMost {
		h.held = append(h.held, key)
	}
	return nil
}

func (h *healer) encode(key string) error {
	if !h.route.Carries(key) { // never, whatever led here
		return fmt.Errorf("request key %q: the route does not carry it", key)
	}
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: h.route.Bucket, Key: key, Seen: time.Now(), Cause: cause})
	if err != nil {
		return fmt.Errorf("request key %q: %w", key, err)
	}
	h.pending, h.keys = append(h.pending, queue.Entry{Body: body}), append(h.keys, key)
	return nil
}

// send sends what is pending, and returns how many the queue took. A key that it
// did not take is an error that ends the run, so that a later one asks again.
func (h *healer) send(ctx context.Context) (sent int64, err error) {
	size := max(len(h.pending), 1)
	if h.rate > 0 {
		size = queue.BatchMax
	}
	for from := 0; from < len(h.pending); from += size {
		to, start := min(from+size, len(h.pending)), time.Now()
		var errs []error
		for i, err := range h.sender.Send(ctx, h.pending[from:to]) {
			if err != nil {
				errs = append(errs, fmt.Errorf("request key %q: %w", h.keys[from+i], err))
				continue
			}
			sent++
		}
		if len(errs) > 0 {
			return sent, errors.Join(errs...)
		}
		if h.rate > 0 {
			if err := pause(ctx, time.Duration(float64(to-from)/h.rate*float64(time.Second))-time.Since(start)); err != nil {
				return sent, err
			}
		}
	}
	h.pending, h.keys = h.pending[:0], h.keys[:0]
	return sent, nil
}

// finish requests what was held, if that is not too much, and returns the new
// total.
func (h *healer) finish(ctx context.Context, requested int64) (int64, error) {
	if h.atMost > 0 && len(h.held) > h.atMost {
		return requested, fmt.Errorf("%w: more than %d", ErrTooMany, h.atMost)
	}
	for _, key := range h.held {
		if err := h.encode(key); err != nil {
			return requested, err
		}
	}
	sent, err := h.send(ctx)
	return requested + sent, err
}
