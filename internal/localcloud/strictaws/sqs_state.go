package strictaws

import (
	"sync"
	"time"
)

// queues is SQS's state. One lock is enough: nothing that holds it waits.
type queues struct {
	region, account string
	maxInFlight     int

	mu     sync.Mutex
	byName map[string]*queue
}

func newQueues(cfg Config) *queues {
	return &queues{region: cfg.Region, account: cfg.Account, maxInFlight: cfg.MaxInFlight, byName: map[string]*queue{}}
}

func (s *queues) arn(name string) string {
	return "arn:aws:sqs:" + s.region + ":" + s.account + ":" + name
}

func (s *queues) exists(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name] != nil
}

func (s *queues) existsLocked(name string) bool { return s.byName[name] != nil }

// get finds a queue and brings it up to now. The caller holds the lock.
func (s *queues) get(name string, now time.Time) (*queue, *apiError) {
	q := s.byName[name]
	if q == nil {
		return nil, badRequest("QueueDoesNotExist", "The specified queue does not exist.")
	}
	q.advance(now)
	return q, nil
}

// create makes a queue; the same call again finds it.
func (s *queues) create(name string, attrs map[string]string) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := defaultAttributes().with(attrs, s.existsLocked)
	if err != nil {
		return err
	}
	if old := s.byName[name]; old != nil {
		same, err := old.attrs.with(attrs, s.existsLocked)
		if err != nil {
			return err
		}
		if !same.equal(old.attrs) {
			return badRequest("QueueNameExists", "A queue already exists with the same name and a different value for an attribute")
		}
		return nil
	}
	s.byName[name] = newQueue(name, a)
	return nil
}

// send puts a message into a queue.
func (s *queues) send(name string, m *message, delay *time.Duration) *apiError {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.get(name, now)
	if err != nil {
		return err
	}
	d := q.attrs.delay
	if delay != nil {
		d = *delay
	}
	m.sent, m.copy = now, m.id
	q.add(m, now, d)
	return nil
}

// sendPlain sends a body without attributes; a queue that is gone loses it, as
// with S3's notifications.
func (s *queues) sendPlain(name, body string) {
	_ = s.send(name, &message{id: uuid(), body: body}, nil)
}

// poll is one look for messages.
type poll struct {
	queue      string
	n          int
	visibility time.Duration // below 0: the queue's own
	short      bool          // nobody waits if there is nothing
	bend       func() delivery
}

// polled is what a poll found; if nothing, look again when changed closes or due
// has come.
type polled struct {
	messages []delivered
	changed  <-chan struct{}
	due      time.Time // zero: never
}

// receive takes up to p.n messages. What was received too often already moves to
// the dead-letter queue instead. With too many in flight a short poll is refused
// and a long one finds nothing.
func (s *queues) receive(p poll) (out polled, err *apiError) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.get(p.queue, now)
	if err != nil {
		return out, err
	}
	if p.visibility < 0 {
		p.visibility = q.attrs.visibility
	}
	if q.inFlight >= s.maxInFlight && p.short {
		return out, badRequest("OverLimit", "The maximum number of in flight messages was reached.")
	}
	for len(out.messages) < p.n && q.inFlight < s.maxInFlight {
		m := q.next(now)
		if m == nil {
			break
		}
		if !s.deadLetter(q, m, now) {
			out.messages = append(out.messages, q.deliver(m, now, p.visibility, p.bend()))
		}
	}
	if len(out.messages) == 0 {
		out.changed = q.wait()
		if len(q.timed) > 0 {
			out.due = q.timed[0].due
		}
	}
	return out, nil
}

// deadLetter moves a message that was received too often, attributes untouched
// and its count kept. It reports whether it did.
func (s *queues) deadLetter(q *queue, m *message, now time.Time) bool {
	r := q.attrs.redrive
	dlq := s.byName[r.target]
	if r.target == "" || m.receives < r.max || dlq == nil {
		return false
	}
	q.delete(m)
	moved := *m
	moved.dlqSource, moved.receipt = s.arn(q.name), ""
	dlq.advance(now)
	dlq.add(&moved, now, 0)
	return true
}

// with runs do on a queue under the lock.
func (s *queues) with(name string, do func(*queue)) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.get(name, time.Now())
	if err != nil {
		return err
	}
	do(q)
	return nil
}

// wait is the queue's own ReceiveMessageWaitTimeSeconds.
func (s *queues) wait(name string) (seconds int) {
	_ = s.with(name, func(q *queue) { seconds = int(q.attrs.wait / time.Second) })
	return seconds
}

// maxSize is the queue's limit of a message in bytes.
func (s *queues) maxSize(name string) int {
	n := maxMessage
	_ = s.with(name, func(q *queue) { n = q.attrs.maxSize })
	return n
}
