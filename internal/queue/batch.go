package queue

import (
	"sync"
	"time"
)

// batcher gathers items for at most linger and gives each batch to flush in a
// goroutine of its own, which the batcher waits for in wait. flush calls it
// within the limits of SQS: BatchMax items and limit bytes.
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
		if len(b.items) == BatchMax {
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
