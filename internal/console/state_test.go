package console

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/queue"
)

// patient is a fleet that counts how often it is read, and answers when it may.
type patient struct {
	reads *atomic.Int32
	may   chan struct{}
}

func (c patient) Read(context.Context) *fleet.Reading {
	c.reads.Add(1)
	<-c.may
	return &fleet.Reading{}
}
func (patient) From() string { return "a test" }

// TestTenPagesCostNoMoreThanOne: whoever asks while a reading is under way waits
// for it, and it is used as long as it is fresh.
func TestTenPagesCostNoMoreThanOne(t *testing.T) {
	f := patient{&atomic.Int32{}, make(chan struct{})}
	c, _ := newTest(t, func(d *Deps, cfg *Config) { d.Fleet, cfg.Fresh = f, time.Hour })
	gone, leave := context.WithCancel(t.Context())
	var pages sync.WaitGroup
	pages.Go(func() { c.state.now(gone) })
	for f.reads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	leave() // the first to ask goes away; the others still get what it asked for
	for range 9 {
		pages.Go(func() { c.state.now(t.Context()) })
	}
	close(f.may)
	pages.Wait()
	if n := f.reads.Load(); n != 1 {
		t.Errorf("ten pages cost %d readings, want 1", n)
	}
	c.state.last.at = time.Now().Add(-2 * time.Hour)
	c.state.now(t.Context())
	c.state.now(t.Context())
	if n := f.reads.Load(); n != 2 {
		t.Errorf("when it is old there are %d readings, want 2", n)
	}
	c.state.stale()
	c.state.now(t.Context())
	if n := f.reads.Load(); n != 3 {
		t.Errorf("after a move there are %d readings, want 3", n)
	}
}

// TestAReadingIsBounded: what hangs costs readFor and no more, and is unknown.
func TestAReadingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTest(t, func(d *Deps, _ *Config) {
			d.Depth = func(ctx context.Context, _ string) (queue.Depth, error) {
				<-ctx.Done()
				return queue.Depth{}, ctx.Err()
			}
		})
		start := time.Now()
		s := c.state.now(t.Context())
		if took := time.Since(start); took > readFor+time.Second || s.queues[0].err == nil {
			t.Errorf("it took %s and says %v", took, s.queues[0].err)
		}
	})
}
