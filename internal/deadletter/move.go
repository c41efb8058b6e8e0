package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Redrive sends held letters back to the queue they came from and deletes each
// once SQS has accepted it; rate bounds it in letters a second, 0 is unbounded.
// Letters that failed are handed back and joined in err; done counts the others.
func (b *Box) Redrive(ctx context.Context, letters []*Letter, rate float64) (done int, err error) {
	return b.move(ctx, letters, rate, func(ctx context.Context, ten []*Letter) ([]*Letter, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &b.source}
		for i, l := range ten {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: entryID(i), MessageBody: &l.Body, MessageAttributes: l.redriveAttributes()})
		}
		out, err := b.api.SendMessageBatch(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("redrive to %s: %w", b.source, err)
		}
		accepted, errs := split(ten, out.Failed, "redrive")
		return accepted, errs
	})
}

// Drop deletes held letters after they were written to w, a JSON line each.
func (b *Box) Drop(ctx context.Context, letters []*Letter, w io.Writer, rate float64) (done int, err error) {
	return b.move(ctx, letters, rate, func(_ context.Context, ten []*Letter) ([]*Letter, error) {
		for i, l := range ten {
			line, err := json.Marshal(l)
			if err != nil {
				return ten[:i], fmt.Errorf("write %s: %w", l, err)
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return ten[:i], fmt.Errorf("write %s: %w", l, err)
			}
		}
		if f, ok := w.(interface{ Sync() error }); ok {
			if err := f.Sync(); err != nil { // not durable, so not to be deleted
				return nil, fmt.Errorf("write dead letters: %w", err)
			}
		}
		return ten, nil
	})
}

// move takes letters ten by ten through step, deletes those that step accepted,
// and hands the others back.
func (b *Box) move(ctx context.Context, letters []*Letter, rate float64, step func(context.Context, []*Letter) ([]*Letter, error)) (done int, err error) {
	keep := newKeeper(b)
	defer keep.stop()
	keep.add(letters...)
	var errs []error
	var back []*Letter
	for at := 0; at < len(letters); at += batch {
		if ctx.Err() != nil {
			back, errs = append(back, letters[at:]...), append(errs, ctx.Err())
			break
		}
		ten := letters[at:min(at+batch, len(letters))]
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
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: entryID(i), ReceiptHandle: &l.receipt})
	}
	out, err := b.api.DeleteMessageBatch(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("delete dead letters of %s (what was already sent may be done twice, which is harmless): %w", b.name, err)
	}
	deleted, err := split(letters, out.Failed, "delete")
	return len(deleted), err
}

// split parts a batch into what was accepted and an error for what was not.
func split(letters []*Letter, failed []types.BatchResultErrorEntry, verb string) (accepted []*Letter, err error) {
	refused := map[string]string{}
	for _, f := range failed {
		refused[aws.ToString(f.Id)] = aws.ToString(f.Code)
	}
	var errs []error
	for i, l := range letters {
		if code, ok := refused[strconv.Itoa(i)]; ok {
			errs = append(errs, fmt.Errorf("%s %s: %s", verb, l, code))
		} else {
			accepted = append(accepted, l)
		}
	}
	return accepted, errors.Join(errs...)
}

func entryID(i int) *string { return aws.String(strconv.Itoa(i)) }

func chunks(letters []*Letter) iter.Seq[[]*Letter] { return slices.Chunk(letters, batch) }

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
