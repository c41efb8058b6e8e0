package strictaws

import (
	"container/heap"
	"time"
)

// message is one message in one queue. Guarded by queues.mu.
type message struct {
	id         string
	copy       string // the id, or another one for a duplicate of a message
	body       string
	attributes map[string]messageAttribute
	trace      string // AWSTraceHeader
	group      string // MessageGroupId
	sent       time.Time
	first      time.Time // first receive
	receives   int
	dlqSource  string // ARN of the queue it was moved from

	receipt  string // of the latest receive
	received time.Time
	state    messageState
	due      time.Time // when it is visible again
	index    int       // in the heap; -1 when it is not there
}

type messageState int

const (
	waiting messageState = iota
	delayed
	inFlight
	gone // deleted while it waited; skipped when its turn comes
)

// queue keeps waiting messages in a deque and those with a deadline (in flight or
// delayed) in a heap, so that no call's cost depends on the backlog. Guarded by
// queues.mu.
type queue struct {
	name     string
	attrs    queueAttributes
	created  time.Time
	modified time.Time
	purged   time.Time

	ready    deque
	timed    dueHeap
	byCopy   map[string]*message
	waiting  int
	delayed  int
	inFlight int

	journal map[string]int // receives by message id, deleted ones included
	changed chan struct{}  // closed when something may have become visible; nil while nobody waits
}

func newQueue(name string, attrs queueAttributes) *queue {
	now := time.Now()
	return &queue{name: name, attrs: attrs, created: now, modified: now, byCopy: map[string]*message{}, journal: map[string]int{}}
}

// wake tells the long polls that something may have become visible.
func (q *queue) wake() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// wait returns the channel that the next wake closes.
func (q *queue) wait() <-chan struct{} {
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed
}

func (q *queue) count(s messageState, n int) {
	switch s {
	case waiting:
		q.waiting += n
	case delayed:
		q.delayed += n
	case inFlight:
		q.inFlight += n
	}
}

func (q *queue) setState(m *message, s messageState) {
	q.count(m.state, -1)
	m.state = s
	q.count(s, 1)
}

// add puts a new message in, visible after delay.
func (q *queue) add(m *message, now time.Time, delay time.Duration) {
	m.index = -1
	q.byCopy[m.copy] = m
	if delay > 0 {
		m.state, m.due = delayed, now.Add(delay)
		heap.Push(&q.timed, m)
		q.delayed++
	} else {
		m.state = waiting
		q.ready.push(m)
		q.waiting++
	}
	q.wake()
}

// advance makes visible what is due.
func (q *queue) advance(now time.Time) {
	for len(q.timed) > 0 && !q.timed[0].due.After(now) {
		m := heap.Pop(&q.timed).(*message)
		q.setState(m, waiting)
		q.ready.push(m)
	}
}

// next takes the message that waits longest out of the deque, nil when none waits.
func (q *queue) next(now time.Time) *message {
	for {
		m := q.ready.pop()
		if m == nil {
			return nil
		}
		if m.state == gone {
			continue
		}
		if now.Sub(m.sent) > q.attrs.retention {
			q.delete(m)
			continue
		}
		return m
	}
}

// delivery says how a fault bends the receive of a message.
type delivery struct{ duplicate, stale bool }

// delivered is a message as one receive saw it.
type delivered struct {
	message
	handle string
}

// deliver counts a receive of m, which next has returned, and hides it.
func (q *queue) deliver(m *message, now time.Time, visibility time.Duration, how delivery) delivered {
	if how.duplicate {
		again := *m
		again.copy = uuid()
		q.add(&again, now, 0)
	}
	m.receives++
	q.journal[m.id]++
	if m.first.IsZero() {
		m.first = now
	}
	m.received = now
	m.receipt = newReceipt(m.copy)
	q.hide(m, now.Add(visibility))
	d := delivered{*m, m.receipt}
	if how.stale {
		d.handle = newReceipt(m.copy)
	}
	return d
}

// hide keeps m in flight until due.
func (q *queue) hide(m *message, due time.Time) {
	m.due = due
	q.setState(m, inFlight)
	if m.index < 0 {
		heap.Push(&q.timed, m)
	} else {
		heap.Fix(&q.timed, m.index)
	}
	if m.index == 0 {
		q.wake() // polls sleep until the earliest deadline, which is another now
	}
}

// delete takes m out for good.
func (q *queue) delete(m *message) {
	q.setState(m, gone)
	if m.index >= 0 {
		heap.Remove(&q.timed, m.index)
	}
	delete(q.byCopy, m.copy)
}

// purge deletes everything.
func (q *queue) purge() {
	q.ready, q.timed, q.byCopy = deque{}, nil, map[string]*message{}
	q.waiting, q.delayed, q.inFlight = 0, 0, 0
}

// deque is a ring of messages.
type deque struct {
	ring        []*message
	head, count int
}

func (d *deque) push(m *message) {
	if d.count == len(d.ring) {
		bigger := make([]*message, max(16, 2*len(d.ring)))
		n := copy(bigger, d.ring[d.head:])
		copy(bigger[n:], d.ring[:d.head])
		d.ring, d.head = bigger, 0
	}
	d.ring[(d.head+d.count)%len(d.ring)] = m
	d.count++
}

func (d *deque) pop() *message {
	if d.count == 0 {
		return nil
	}
	m := d.ring[d.head]
	d.ring[d.head] = nil
	d.head = (d.head + 1) % len(d.ring)
	d.count--
	return m
}

// dueHeap orders messages by deadline.
type dueHeap []*message

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	m := x.(*message)
	m.index = len(*h)
	*h = append(*h, m)
}

func (h *dueHeap) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	m.index = -1
	return m
}
