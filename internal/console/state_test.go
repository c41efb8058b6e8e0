package console

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/deadletter"
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
	c.state.last.read = time.Now().Add(-2 * time.Hour)
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

// hung is a fleet that answers when it is too late.
type hung struct{ reads *int }

func (h hung) Read(ctx context.Context) *fleet.Reading {
	*h.reads++
	<-ctx.Done()
	return &fleet.Reading{}
}
func (hung) From() string { return "a test" }

// TestAReadingThatTookLongIsFresh: it would else be made anew for each page that
// has waited for it.
func TestAReadingThatTookLongIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		c, _ := newTest(t, func(d *Deps, _ *Config) { d.Fleet = hung{&reads} })
		for range 10 {
			c.state.now(t.Context())
		}
		if reads != 1 {
			t.Errorf("ten pages cost %d readings", reads)
		}
	})
}

// TestDepthsDoNotWaitForTheDeadLetters to be found, and pages no longer than for a
// reading.
func TestDepthsDoNotWaitForTheDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTest(t, func(d *Deps, _ *Config) {
			d.Boxes = func(ctx context.Context) ([]*deadletter.Box, error) { <-ctx.Done(); return nil, ctx.Err() }
			d.Depth = func(ctx context.Context, _ string) (queue.Depth, error) { return queue.Depth{Visible: 7}, ctx.Err() }
		})
		if s := c.state.now(t.Context()); s.queues[0].Err != nil || s.queues[0].Depth.Visible != 7 || s.queues[0].DeadErr == nil {
			t.Errorf("it says %+v", s.queues[0])
		}
		start := time.Now()
		_, err := c.state.boxes(t.Context())
		if took := time.Since(start); err == nil || took > readFor+time.Second {
			t.Errorf("pages wait for %s: %v", took, err)
		}
	})
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
		if took := time.Since(start); took > readFor+time.Second || s.queues[0].Err == nil {
			t.Errorf("it took %s and says %v", took, s.queues[0].Err)
		}
	})
}
