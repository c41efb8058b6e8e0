package guard

import (
	"context"
	"sync/atomic"
	"time"
)

// flight asks a question once for all who want to know at the same time. An
// answer serves only those who asked before the question was put: it has to be
// news to them. Questions are at least gap apart, whoever asks.
type flight struct {
	gap   time.Duration
	turn  chan struct{} // held by the one who asks
	begun atomic.Int64  // questions put so far

	// Guarded by the turn.
	last     time.Time // when the last question was put
	answered int64     // the number of the question that answer belongs to
	answer   verdict
}

func newFlight(gap time.Duration) *flight {
	return &flight{gap: gap, turn: make(chan struct{}, 1)}
}

// ask returns the answer to a question that was put after the call of ask, or
// ctx's error when ctx ends first. A question whose asker went away counts for
// nothing; the next in turn puts it again.
func (f *flight) ask(ctx context.Context, question func(context.Context) verdict) (verdict, error) {
	before := f.begun.Load()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	}
	if f.answered > before {
		return f.answer, nil
	}
	if err := sleep(ctx, time.Until(f.last.Add(f.gap))); err != nil {
		return verdict{}, err
	}
	n := f.begun.Add(1)
	f.last = time.Now()
	answer := question(ctx)
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	f.answered, f.answer = n, answer
	return answer, nil
}

// sleep waits for d, and returns ctx's error when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
