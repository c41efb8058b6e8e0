package queue

import (
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// batchMax is SQS's limit of entries a batch.
const batchMax = 10

// batcher gathers items for at most linger and gives each batch to flush in a
// goroutine of its own, which the batcher waits for in wait. flush calls it
// within the limits of SQS: batchMax items and limit bytes.
type batcher[T any] struct {
	linger time.Duration
	limit  int
	size   func(T) int
	flush  func([]T)

	mu    sync.Mutex
	items []T
	bytes int
	timer *time.Timer // of the batch that is being gathered
	wg    sync.WaitGroup
}

// add puts items into batches; now does not linger for more.
func (b *batcher[T]) add(now bool, items ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, item := range items {
		size := b.size(item)
		if b.bytes+size > b.limit {
			b.send()
		}
		b.items = append(b.items, item)
		b.bytes += size
		if len(b.items) == batchMax {
			b.send()
		}
	}
	switch {
	case now:
		b.send()
	case len(b.items) > 0 && b.timer == nil:
		b.timer = time.AfterFunc(b.linger, b.expire)
	}
}

// expire sends what has lingered. A timer that fires while its batch is being
// sent finds the next one and sends that a little early, which does no harm.
func (b *batcher[T]) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.send()
}

// send needs mu.
func (b *batcher[T]) send() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if len(b.items) == 0 {
		return
	}
	items := b.items
	b.items, b.bytes = nil, 0
	b.wg.Go(func() { b.flush(items) })
}

// wait sends what lingers and returns when every flush has. Nothing may be added
// meanwhile.
func (b *batcher[T]) wait() {
	b.expire()
	b.wg.Wait()
}

// entryID is the id of the entry at an index: distinct within its batch.
func entryID(index int) *string {
	id := strconv.Itoa(index)
	return &id
}

// entryErrors tells for each of n entries whether SQS took it. An entry that the
// answer does not name was not taken.
func entryErrors(op string, n int, taken []*string, failed []types.BatchResultErrorEntry) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = &object.Error{Side: object.Queue, Op: op, Class: object.Unavailable, Code: "entry not answered"}
	}
	index := func(id *string) (int, bool) {
		i, err := strconv.Atoi(deref(id))
		return i, err == nil && i >= 0 && i < n
	}
	for _, id := range taken {
		if i, ok := index(id); ok {
			errs[i] = nil
		}
	}
	for _, f := range failed {
		if i, ok := index(f.Id); ok {
			errs[i] = entryError(f, op)
		}
	}
	return errs
}

// allErrors is the result of a call that failed as a whole.
func allErrors(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// result is the label of a batch call: ok, partial, or a class of error.
func result(err error, errs []error) string {
	if err != nil {
		return string(Classify(err, "").Class)
	}
	for _, e := range errs {
		if e != nil {
			return "partial"
		}
	}
	return "ok"
}
