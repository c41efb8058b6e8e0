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
	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestGateClosesOnlyWhenProbeFails(t *testing.T) {
	bubble(t, "probe passes", func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				err := g.Do(t.Context(), "GetObject", 0, answer(failure(object.Unavailable, "http 503")))
				wantClass(t, err, object.Unavailable, false)
			})
		}
		all.Wait()
		wantState(t, g, StateOpen)
	})
	bubble(t, "probe fails", func(t *testing.T) {
		cfg := testConfig()
		cfg.Limit = 2
		d := &dependency{}
		g := start(t, cfg, d.probe)
		end := make(chan error)
		running := slotted(g, 1, end)
		d.set(failure(object.Unavailable, "http 503"))

		var held atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				err := g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
					time.Sleep(time.Second)
					return d.down
				})
				wantClass(t, err, object.Canceled, true)
				held.Add(1)
			})
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("those who waited for a slot were let go after %v", took)
		}
		if n, _ := g.Admit(); n != 0 {
			t.Errorf("a closed gate admits %d", n)
		}
		if s := g.Status(); s.State != StateClosed || s.Reason != "unavailable: http 503" || s.InUse != 1 {
			t.Errorf("status is %+v", s)
		}
		// A call that ran on when the gate closed is not disturbed.
		end <- nil
		running()
	})
	bubble(t, "running call fails later", func(t *testing.T) {
		d := &dependency{}
		g := start(t, testConfig(), d.probe)
		result := make(chan error)
		go func() {
			result <- g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
				time.Sleep(3 * time.Second)
				return d.down
			})
		}()
		synctest.Wait()
		d.set(failure(object.Unavailable, "http 503"))
		wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Canceled, true)
		wantClass(t, <-result, object.Canceled, true)
		if _, probes := d.counts(); probes != 1 {
			t.Errorf("%d probes, want 1", probes)
		}
	})
}

func TestSickKeyFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{latency: 100 * time.Millisecond}
		g := start(t, testConfig(), d.probe)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 63 {
			all.Go(func() {
				for ctx.Err() == nil {
					if err := g.Do(ctx, "GetObject", 0, d.call); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		for range 20 {
			tries := 0
			err := g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
				tries++
				return failure(object.Unavailable, "http 503")
			})
			wantClass(t, err, object.Unavailable, false)
			if tries != 3 {
				t.Errorf("%d tries, want 3", tries)
			}
			wantState(t, g, StateOpen)
		}
		cancel()
		all.Wait()
	})
}

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
		g := start(t, testConfig(), d.probe)
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
		close(end)
		wait()
		if s := g.Status(); s.State != StateOpen || s.InUse != 0 {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestProbeNeverStorms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, probes atomic.Int64
		g := start(t, testConfig(), func(context.Context) error {
			probes.Add(1)
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(5 * time.Millisecond)
			running.Add(-1)
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = g.Do(ctx, "GetObject", 0, answer(failure(object.Unavailable, "http 503")))
				}
			})
		}
		all.Wait()
		if most.Load() != 1 {
			t.Errorf("%d probes at once", most.Load())
		}
		if n := probes.Load(); n < 30 || n > 61 {
			t.Errorf("%d probes in a minute of failures, want about one a second", n)
		}
	})
}

// A probe that began before a failure says nothing about it.
func TestProbeAnswersOnlyEarlierFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := make(chan error) // each probe takes its answer here
		g := start(t, testConfig(), func(context.Context) error { return <-probes })
		sick := answer(failure(object.Unavailable, "http 503"))
		results := make(chan error, 2)
		do := func() { results <- g.Do(t.Context(), "GetObject", 0, sick) }
		go do()
		synctest.Wait() // its probe is under way
		go do()
		synctest.Wait()
		probes <- nil // sent before the outage
		time.Sleep(time.Second)
		synctest.Wait() // the second failure asks anew
		probes <- failure(object.Unavailable, "http 503")
		wantClass(t, <-results, object.Canceled, true)
		wantClass(t, <-results, object.Canceled, true)
	})
}

func TestHangingProbeIsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, testConfig(), hang)
		began := time.Now()
		err := g.Do(t.Context(), "GetObject", 0, answer(failure(object.Unavailable, "http 503")))
		wantClass(t, err, object.Canceled, true)
		if took := time.Since(began); took != probeTimeout {
			t.Errorf("the gate closed after %v", took)
		}
		time.Sleep(time.Hour)
		if s := g.Status(); s.State != StateClosed && s.State != StateProbing {
			t.Errorf("gate is %q", s.State)
		}
	})
}

func TestOwnDeadlineIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Attempts = 1
		g := start(t, cfg, answer(nil))
		began := time.Now()
		err := g.Do(t.Context(), "GetObject", 64<<20, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err() // not even classified
		})
		wantClass(t, err, object.Unavailable, false)
		if took, want := time.Since(began), 30*time.Second+1024*time.Second; took != want {
			t.Errorf("deadline after %v, want %v", took, want)
		}
	})
}

func TestCanceledNeverCounts(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(context.Context) error
	}{
		{"call says unavailable", hang},
		{"call says canceled", func(ctx context.Context) error {
			<-ctx.Done()
			return failure(object.Canceled, "")
		}},
		{"call says nothing of a class", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		{"backing off", answer(failure(object.Throttled, "SlowDown"))},
		{"while the probe runs", answer(failure(object.Unavailable, "http 503"))},
	} {
		bubble(t, test.name, func(t *testing.T) {
			var probes atomic.Int64
			g := start(t, testConfig(), func(ctx context.Context) error {
				probes.Add(1)
				return hang(ctx)
			})
			for _, limit := range []func() (context.Context, context.CancelFunc){
				func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
				func() (context.Context, context.CancelFunc) {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
					return ctx, cancel
				},
			} {
				var all sync.WaitGroup
				for range 100 { // more than there are slots
					all.Go(func() {
						ctx, cancel := limit()
						defer cancel()
						began := time.Now()
						wantClass(t, g.Do(ctx, "GetObject", 0, test.call), object.Canceled, false)
						if took := time.Since(began); took != time.Second {
							t.Errorf("returned after %v", took)
						}
					})
				}
				all.Wait()
			}
			if s := g.Status(); s.State != StateOpen || s.InUse != 0 {
				t.Errorf("status is %+v", s)
			}
		})
	}
}

func TestObjectAnswersReturnAtOnce(t *testing.T) {
	for _, class := range []object.Class{
		object.Absent, object.Denied, object.Archived, object.Unfit, object.Changed,
		object.Exists, object.Ambiguous, object.Unknown, object.Canceled,
	} {
		bubble(t, string(class), func(t *testing.T) {
			d := &dependency{down: failure(class, "")}
			g := start(t, testConfig(), d.probe)
			for range 100 {
				wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), class, false)
			}
			if calls, probes := d.counts(); calls != 100 || probes != 0 {
				t.Errorf("%d calls and %d probes", calls, probes)
			}
			wantState(t, g, StateOpen)
		})
	}
}

func TestCorruptIsReadAgainAndNeverCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{down: failure(object.Corrupt, "")}
		g := start(t, testConfig(), d.probe)
		for range 20 {
			wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Corrupt, false)
		}
		if calls, probes := d.counts(); calls != 60 || probes != 0 {
			t.Errorf("%d calls and %d probes", calls, probes)
		}
		wantState(t, g, StateOpen)
	})
}

func TestDrainsLeakNothing(t *testing.T) {
	before := time.Now()
	for _, down := range []error{nil, failure(object.Unavailable, "http 503"), failure(object.Throttled, "SlowDown")} {
		d := &dependency{latency: time.Millisecond, down: down}
		cfg := testConfig()
		cfg.ProbeMin, cfg.ProbeMax, cfg.Limit = 20*time.Millisecond, 50*time.Millisecond, 4
		g, err := New(cfg, d.probe, telemetry.Nop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = g.Run(ctx) })
		for range 20 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = g.Do(ctx, "GetObject", 0, d.call)
					_ = sleep(ctx, time.Millisecond)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		cancel()
		all.Wait() // TestMain sees what is left
		if in := g.Status().InUse; in != 0 {
			t.Errorf("%d slots are still in use", in)
		}
		if waiting := len(g.limiter.waiting); waiting != 0 {
			t.Errorf("%d still wait", waiting)
		}
	}
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("the drains took %v", took)
	}
}

func TestPanicGivesSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = g.Do(t.Context(), "GetObject", 0, func(context.Context) error { panic("boom") })
		}()
		if s := g.Status(); s.InUse != 0 || s.State != StateOpen {
			t.Errorf("status is %+v", s)
		}
	})
}
