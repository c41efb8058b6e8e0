package deadletter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/queue"
)

const (
	// AtOnce is how many letters may be moved without a word that so many are meant.
	AtOnce = 100
	// UsualRate is what is offered where nothing else is asked for, in letters a second.
	UsualRate = 50
)

// Redrive sends held letters back to the queue they came from and deletes each
// once SQS has accepted it; rate bounds it in letters a second, 0 is unbounded.
// Letters that failed are handed back and joined in err; done counts the others.
func (b *Box) Redrive(ctx context.Context, letters []*Letter, rate float64) (done int, err error) {
	return b.move(ctx, letters, rate, func(ctx context.Context, ten []*Letter) ([]*Letter, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &b.source}
		for i, l := range ten {
			e := l.redriven()
			e.Id = queue.EntryID(i)
			in.Entries = append(in.Entries, e)
		}
		out, err := call(ctx, b.api.SendMessageBatch, in)
		if err != nil {
			return nil, fmt.Errorf("redrive to %s: %w", b.source, err)
		}
		return split("redrive", ten, queue.SendErrors(len(ten), out, nil))
	})
}

// Drop deletes held letters after they were written to w, a JSON line each.
func (b *Box) Drop(ctx context.Context, letters []*Letter, w io.Writer, rate float64) (done int, err error) {
	return b.move(ctx, letters, rate, func(_ context.Context, ten []*Letter) ([]*Letter, error) {
		if err := save(w, ten); err != nil {
			return nil, err
		}
		return ten, nil
	})
}

// failuresInARow is how many batches of which no letter could be moved end All:
// something stands in the way that the next letters would meet, too.
const failuresInARow = 3

// All gives the letters that wants picks to do, which is Redrive or Drop, as they
// are received: however many there are, a batch is held at a time, and a kill
// leaves no more than that to come back by itself. A letter that dies after the
// box was opened is not meant, or a redrive of what dies at once would never end.
// What do could not move is handed back, once, and told in err.
func (b *Box) All(ctx context.Context, wants func(*Letter) bool, do func(context.Context, []*Letter) (int, error)) (done, wanted int, err error) {
	var errs []error
	failures := 0
	err = b.each(ctx, func(letters []*Letter) (_, others []*Letter, err error) {
		var mine []*Letter
		for _, l := range letters {
			if l.Sent.Before(b.opened) && wants(l) {
				mine = append(mine, l)
			} else {
				others = append(others, l)
			}
		}
		if len(mine) == 0 {
			return nil, others, nil
		}
		wanted += len(mine)
		n, err := do(ctx, mine)
		done += n
		if err == nil {
			failures = 0
			return nil, others, nil
		}
		if len(errs) < 10 {
			errs = append(errs, err)
		}
		if failures++; n > 0 {
			failures = 0
		}
		others = append(others, mine...) // so that they are not met again
		if failures == failuresInARow {
			return nil, others, errTooManyFailures
		}
		return nil, others, nil
	})
	return done, wanted, errors.Join(append(errs, err)...)
}

var errTooManyFailures = fmt.Errorf("given up after %d batches in a row of which nothing could be moved", failuresInARow)

// move takes letters through step a batch at a time, deletes those that step
// accepted, and hands the others back.
func (b *Box) move(ctx context.Context, letters []*Letter, rate float64, step func(context.Context, []*Letter) ([]*Letter, error)) (done int, err error) {
	keep := newKeeper(b)
	defer keep.stop()
	keep.add(letters...)
	var errs []error
	var back []*Letter
	for len(letters) > 0 {
		if ctx.Err() != nil {
			back, errs = append(back, letters...), append(errs, ctx.Err())
			break
		}
		ten := letters[:batch(letters)]
		letters = letters[len(ten):]
		start := time.Now()
		accepted, err := step(ctx, ten)
		if err != nil {
			errs = append(errs, err)
		}
		// Past this point a kill means a letter is delivered twice, never lost.
		deleted, err := b.remove(context.WithoutCancel(ctx), accepted)
		done += deleted
		if err != nil {
			errs = append(errs, err)
		}
		for _, l := range ten {
			if !slices.Contains(accepted, l) {
				back = append(back, l)
			}
		}
		if rate > 0 {
			pause := time.Duration(float64(len(ten))/rate*float64(time.Second)) - time.Since(start)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
	if err := b.HandBack(context.WithoutCancel(ctx), back); err != nil {
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}

func (b *Box) remove(ctx context.Context, letters []*Letter) (int, error) {
	if len(letters) == 0 {
		return 0, nil
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &b.dead}
	for i, l := range letters {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: queue.EntryID(i), ReceiptHandle: &l.receipt})
	}
	out, err := call(ctx, b.api.DeleteMessageBatch, in)
	if err != nil {
		return 0, fmt.Errorf("delete dead letters of %s (what was already sent may be done twice, which is harmless): %w", b.name, err)
	}
	deleted, err := split("delete", letters, queue.DeleteErrors(len(letters), out, nil))
	return len(deleted), err
}

// split parts letters into those that SQS took and an error for the others.
func split(verb string, letters []*Letter, results []error) (taken []*Letter, err error) {
	var errs []error
	for i, l := range letters {
		if results[i] != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", verb, l, results[i]))
			continue
		}
		taken = append(taken, l)
	}
	return taken, errors.Join(errs...)
}

// batch is how many of letters, one at least, go into one batch: SQS refuses
// what is too large as a whole, each time.
func batch(letters []*Letter) int {
	n, bytes := 0, 0
	for n < min(len(letters), queue.BatchMax) {
		bytes += queue.SizeOf(letters[n].redriven())
		if n > 0 && bytes > queue.MaxBytes {
			break
		}
		n++
	}
	return n
}

// keeper renews the visibility timeout of held letters until it is stopped.
type keeper struct {
	mu      sync.Mutex
	letters []*Letter
	cancel  context.CancelFunc
	done    chan struct{}
}

func newKeeper(b *Box) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		tick := time.NewTicker(hold * time.Second / 2)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			k.mu.Lock()
			held := slices.Clone(k.letters)
			k.mu.Unlock()
			// A failed renewal shows as a letter that another reader gets; it is
			// then delivered twice, which every consumer bears.
			_ = b.visibility(ctx, held, hold)
		}
	}()
	return k
}

func (k *keeper) add(letters ...*Letter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.letters = append(k.letters, letters...)
}

func (k *keeper) stop() { k.cancel(); <-k.done }
