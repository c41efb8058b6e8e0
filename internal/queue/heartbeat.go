package queue

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrLeaseLost is the cause of a delivery's context when SQS has given, or will
// give, the message to others.
var ErrLeaseLost = errors.New("the message is no longer ours")

// ErrHeldTooLong is the cause when the message's 12 hours are nearly over.
var ErrHeldTooLong = errors.New("the message was held for nearly 12 hours, the limit of SQS")

// heartbeat keeps all held messages invisible to others: one heap ordered by the
// time a lease is due, one loop, batches of ten. A lease is due when half of its
// visibility is over, so there is time for several more attempts. The loop waits
// for no worker and, within inFlight, for no call.
type heartbeat struct {
	visibility *atomic.Int64 // nanoseconds; the queue's own
	extend     func(ctx context.Context, batch []*lease, visibility time.Duration) []error
	onLost     func(l *lease, why error)
	onTick     func()

	mu   sync.Mutex
	heap leaseHeap
	wake chan struct{}
}

// inFlight bounds extensions in flight, and so how far a call that hangs can
// hold up the others.
const inFlight = 16

func newHeartbeat() *heartbeat {
	return &heartbeat{visibility: new(atomic.Int64), wake: make(chan struct{}, 1)}
}

func (h *heartbeat) period() time.Duration { return time.Duration(h.visibility.Load()) }

// run lives until ctx ends, which is after the last worker and acknowledgement.
func (h *heartbeat) run(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	tokens := make(chan struct{}, inFlight)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		h.onTick()
		batch, wait := h.next(time.Now())
		if len(batch) > 0 {
			tokens <- struct{}{}
			calls.Go(func() {
				defer func() { <-tokens }()
				h.beat(ctx, batch)
			})
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-h.wake:
		case <-ctx.Done():
			return
		}
	}
}

// next takes up to ten leases to extend off the heap: those that are due, filled
// up with those that soon will be. It ends the leases whose time is over. Without
// any, it says how long to wait.
func (h *heartbeat) next(now time.Time) (batch []*lease, wait time.Duration) {
	period := h.period()
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.heap) > 0 && len(batch) < BatchMax {
		l := h.heap[0]
		ahead := l.due.Sub(now)
		if ahead > 0 && len(batch) == 0 {
			return nil, min(ahead, tick)
		}
		if ahead > 0 && (ahead > period/8 || l.tooLong) {
			break
		}
		heap.Pop(&h.heap)
		switch {
		case !now.Before(l.deadline):
			h.lose(l, errors.New("no extension was accepted in time"))
		case now.Add(period).After(l.received.Add(maxVisibility)):
			l.tooLong = true
			if l.cancel != nil {
				l.cancel(ErrHeldTooLong)
			}
			l.due = l.deadline
			heap.Push(&h.heap, l)
		default:
			l.extending = make(chan struct{})
			batch = append(batch, l)
		}
	}
	return batch, tick
}

// beat extends one batch and puts back what is still ours.
func (h *heartbeat) beat(ctx context.Context, batch []*lease) {
	period, asked := h.period(), time.Now()
	ctx, cancel := context.WithTimeout(ctx, min(callTimeout, max(period/8, 250*time.Millisecond)))
	defer cancel()
	errs := h.extend(ctx, batch, period)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range batch {
		close(l.extending)
		l.extending = nil
		switch {
		case l.dropped:
			continue
		case errs[i] == nil:
			l.deadline, l.due = asked.Add(period), asked.Add(period/2)
		case isGone(errs[i]) && !l.deleting:
			h.lose(l, errs[i])
			continue
		default: // an error nobody foresaw must not kill the heartbeat; ask again
			l.due = earlier(l.deadline, time.Now().Add(period/20))
		}
		h.push(l)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// push needs mu.
func (h *heartbeat) push(l *lease) {
	heap.Push(&h.heap, l)
	if l.index == 0 {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// lose needs mu.
func (h *heartbeat) lose(l *lease, why error) {
	l.lost, l.dropped = true, true
	if l.cancel != nil {
		l.cancel(ErrLeaseLost)
	}
	h.onLost(l, why)
}

// taken says that a call other than an extension found l lost.
func (h *heartbeat) taken(l *lease, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.lost {
		h.lose(l, why)
	}
}

// add begins to keep a lease that was just received.
func (h *heartbeat) add(leases []*lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range leases {
		h.push(l)
	}
}

// begin notes how to end the work on l, and ends it at once when l must not be
// worked on any more.
func (h *heartbeat) begin(l *lease, cancel context.CancelCauseFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.cancel = cancel
	switch {
	case l.lost:
		cancel(ErrLeaseLost)
	case l.tooLong:
		cancel(ErrHeldTooLong)
	}
}

// remove stops extending l and returns a channel to wait for where an extension
// is in flight, nil where none is: one that arrives after a hand-back would undo it.
func (h *heartbeat) remove(l *lease) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.dropped = true
	if l.index >= 0 {
		heap.Remove(&h.heap, l.index)
	}
	return l.extending
}

// deleting says that l's delete is about to be sent. It is extended meanwhile.
func (h *heartbeat) deleting(l *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.deleting = true
}

// ours reports whether l can still be settled.
func (h *heartbeat) ours(l *lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !l.lost && time.Now().Before(l.deadline)
}
