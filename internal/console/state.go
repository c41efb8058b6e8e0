package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

// readFor bounds one reading of everything.
const readFor = 6 * time.Second

// snapshot is everything that the overview shows, as it was at one time.
type snapshot struct {
	at     time.Time // when it was begun
	read   time.Time // when it was complete
	fleet  *fleet.Reading
	queues []queueReading
}

// queueReading is a queue and its dead letters, or why they could not be asked.
type queueReading struct {
	Queue
	Depth   queue.Depth
	Err     error
	DeadURL string
	Dead    queue.Depth
	DeadErr error
}

// state reads, and keeps what it has read for a moment: ten open pages cost no
// more than one.
type state struct {
	deps  Deps
	fresh time.Duration

	mu   sync.Mutex // held while it reads, so that nobody else does
	last *snapshot
	dead []*deadletter.Box // once they were found
}

func newState(d Deps, fresh time.Duration) *state { return &state{deps: d, fresh: fresh} }

// now is a snapshot that is fresh enough.
func (s *state) now(ctx context.Context) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	// From its end on: one that took long would be old for all who have waited for it.
	if s.last == nil || time.Since(s.last.read) > s.fresh {
		// Others wait for it too, so it does not end with the page that asked first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor)
		defer cancel()
		s.last = s.read(ctx)
		s.last.read = time.Now()
	}
	return s.last
}

// stale makes the next page read anew.
func (s *state) stale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// boxes finds the dead-letter queues, once.
func (s *state) boxes(ctx context.Context) ([]*deadletter.Box, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ctx)
}

// find needs mu.
func (s *state) find(ctx context.Context) ([]*deadletter.Box, error) {
	if s.dead != nil {
		return s.dead, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readFor) // pages wait for mu
	defer cancel()
	dead, err := s.deps.Boxes(ctx)
	if err == nil && len(dead) != len(s.deps.Queues) {
		err = fmt.Errorf("%d dead-letter queues for %d queues", len(dead), len(s.deps.Queues))
	}
	if err != nil {
		return nil, fmt.Errorf("find the dead letters: %w", err)
	}
	s.dead = dead
	return dead, nil
}

// read asks everybody at once; it needs mu.
func (s *state) read(ctx context.Context) *snapshot {
	out := &snapshot{at: time.Now().UTC(), queues: make([]queueReading, len(s.deps.Queues))}
	var all sync.WaitGroup
	all.Go(func() { out.fleet = s.deps.Fleet.Read(ctx) })
	for i, q := range s.deps.Queues {
		r := &out.queues[i]
		r.Queue = q
		all.Go(func() { r.Depth, r.Err = s.deps.Depth(ctx, q.URL) })
	}
	dead, err := s.find(ctx)
	for i := range s.deps.Queues {
		r := &out.queues[i]
		if err != nil {
			r.DeadErr = err
			continue
		}
		r.DeadURL = dead[i].URL()
		all.Go(func() { r.Dead, r.DeadErr = s.deps.Depth(ctx, r.DeadURL) })
	}
	all.Wait()
	return out
}
