package guard

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

func TestOutageSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{latency: 100 * time.Millisecond, down: failure(object.Unavailable, "http 503")}
		g := start(t, testConfig(), d.probe)
		wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Canceled, true)
		calls, _ := d.counts()

		// An hour of it: nothing is sent but probes, further and further apart.
		for range 3600 {
			time.Sleep(time.Second)
			wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Canceled, true)
			if n, _ := g.Admit(); n != 0 {
				t.Fatalf("a closed gate admits %d", n)
			}
		}
		if now, _ := d.counts(); now != calls {
			t.Errorf("%d calls while the gate was closed", now-calls)
		}
		d.mu.Lock()
		var gaps []time.Duration
		for i := 1; i < len(d.probes); i++ {
			gaps = append(gaps, (d.probes[i].Sub(d.probes[i-1]) - d.latency))
		}
		d.mu.Unlock()
		if first := gaps[0]; first < 5*time.Second || first > 8*time.Second {
			t.Errorf("first probe after %v", first)
		}
		if longest := slices.Max(gaps); longest > 5*time.Minute || longest < 3*time.Minute {
			t.Errorf("longest interval is %v", longest)
		}
		if slices.Min(gaps) < 5*time.Second || gaps[len(gaps)-1] == gaps[len(gaps)-2] {
			t.Errorf("intervals are %v", gaps)
		}

		// It returns: one at once, then doubling.
		d.set(nil)
		var seen []int
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				n, changed := g.Admit()
				seen = append(seen, n)
				if n > 64 {
					return
				}
				<-changed
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var most atomic.Int64
		for range 100 {
			all.Go(func() {
				for ctx.Err() == nil {
					if n, changed := g.Admit(); n == 0 {
						<-changed
						continue
					}
					_ = g.Do(ctx, "GetObject", 0, func(ctx context.Context) error {
						s := g.Status()
						if int64(s.InUse) > most.Load() {
							most.Store(int64(s.InUse))
						}
						if s.InUse > s.Limit {
							t.Errorf("%d calls at once with a limit of %d", s.InUse, s.Limit)
						}
						return d.call(ctx)
					})
				}
			})
		}
		<-done
		if want := []int{0, 1, 2, 4, 8, 16, 32, 128}; !slices.Equal(seen, want) {
			t.Errorf("the gate admitted %v, want %v", seen, want)
		}
		wantState(t, g, StateOpen)
		time.Sleep(time.Second)
		if most.Load() != 64 {
			t.Errorf("at most %d calls at once", most.Load())
		}
		cancel()
		all.Wait()
	})
}

func TestSlowStartFailureProbesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		var down atomic.Bool
		down.Store(true)
		g := start(t, testConfig(), func(context.Context) error {
			probes.Add(1)
			if down.Load() {
				return failure(object.Unavailable, "http 503")
			}
			return nil
		})
		sick := answer(failure(object.Unavailable, "http 503"))
		for i := range 3 { // it comes back, and goes away as soon as there is a call
			_ = g.Do(t.Context(), "GetObject", 0, sick)
			wantState(t, g, StateClosed)
			down.Store(false)
			at := time.Now()
			_, changed := g.Admit()
			<-changed
			wantState(t, g, StateSlowStart)
			if took := time.Since(at); took < 5*time.Second<<i {
				t.Errorf("return %d after %v: the interval must go on growing", i+1, took)
			}
			down.Store(true)
		}
		before := probes.Load()
		wantClass(t, g.Do(t.Context(), "GetObject", 0, sick), object.Canceled, true)
		if probes.Load() != before+1 {
			t.Errorf("%d probes after a failure in the slow start", probes.Load()-before)
		}
		wantState(t, g, StateClosed)
	})
}

// A call that hangs on from before the outage must not hold up the return.
func TestHangingCallDoesNotHoldUpSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{latency: 10 * time.Millisecond}
		cfg := testConfig()
		cfg.Limit = 4
		g := start(t, cfg, d.probe)
		end := make(chan error)
		wait := slotted(g, 3, end)
		d.set(failure(object.Unavailable, "http 503"))
		_ = g.Do(t.Context(), "GetObject", 0, d.call)
		wantState(t, g, StateClosed)
		d.set(nil)
		_, changed := g.Admit()
		<-changed
		began := time.Now()
		for range 200 {
			if err := g.Do(t.Context(), "GetObject", 0, d.call); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("200 calls took %v", took)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = g.Do(t.Context(), "GetObject", 0, d.call) })
		}
		all.Wait()
		if d.most != 1 {
			t.Errorf("%d calls ran beside the three that hang, want 1", d.most)
		}
		close(end)
		wait()
		if s := g.Status(); s.State != StateOpen || s.InUse != 0 {
			t.Errorf("status is %+v", s)
		}
	})
}
