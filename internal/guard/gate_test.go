package guard

import (
	"context"
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

		var late atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		for range 10 {
			all.Go(func() {
				err := g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
					time.Sleep(time.Second)
					return d.answer()
				})
				wantClass(t, err, object.Canceled, true)
				if time.Since(began) > time.Second {
					late.Add(1)
				}
			})
		}
		all.Wait()
		if n := late.Load(); n > 1 { // it had got the slot before the verdict
			t.Errorf("%d of those who waited for a slot were not let go at once", n)
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
	bubble(t, "throttled call is backing off", func(t *testing.T) {
		d := &dependency{}
		g := start(t, testConfig(), d.probe)
		began := time.Now()
		result := make(chan error)
		go func() {
			err := failure(object.Throttled, "SlowDown").(*object.Error)
			err.RetryAfter = time.Minute
			result <- g.Do(t.Context(), "GetObject", 0, answer(err))
		}()
		time.Sleep(time.Second)
		d.set(failure(object.Unavailable, "http 503"))
		_ = g.Do(t.Context(), "GetObject", 0, d.call)
		wantClass(t, <-result, object.Canceled, true)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it was let go after %v", took)
		}
	})
	bubble(t, "running call fails later", func(t *testing.T) {
		d := &dependency{}
		cfg := testConfig()
		cfg.Attempts = 1
		g := start(t, cfg, d.probe)
		result := make(chan error)
		go func() {
			result <- g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
				time.Sleep(3 * time.Second)
				return d.answer()
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

// A gate that opens only to close again must not fall back to the shortest
// interval: messages are handed back each time, and that must last for days.
func TestIntervalsGrowUntilAReopenedGateHasProvenGood(t *testing.T) {
	down := failure(object.Unavailable, "http 503")
	denied := failure(object.Denied, "AccessDenied")
	for name, fail := range map[string]func(t *testing.T, g *Guard, probe *atomic.Pointer[error]){
		"unavailable as soon as there is a call": func(t *testing.T, g *Guard, probe *atomic.Pointer[error]) {
			probe.Store(&down)
			_ = g.Do(t.Context(), "GetObject", 0, answer(down))
			probe.Store(nil)
		},
		"refused by its code": func(t *testing.T, g *Guard, _ *atomic.Pointer[error]) {
			_ = g.Do(t.Context(), "GetObject", 0, answer(failure(object.Refused, "KMS.DisabledException")))
		},
		"denied, and the reference too": func(t *testing.T, g *Guard, _ *atomic.Pointer[error]) {
			asked := false
			for range 3 { // and before it closes
				_ = g.Do(t.Context(), "GetObject", 0, answer(denied))
			}
			_ = g.Refused(t.Context(), denied, func(context.Context) error {
				if asked {
					return nil
				}
				asked = true
				return denied
			})
		},
		"refused after other calls went well": func(t *testing.T, g *Guard, _ *atomic.Pointer[error]) {
			for range 2 * calm {
				_ = g.Do(t.Context(), "HeadObject", 0, answer(nil))
			}
			_ = g.Do(t.Context(), "PutObject", 0, answer(failure(object.Refused, "KMS.DisabledException")))
		},
	} {
		bubble(t, name, func(t *testing.T) {
			cfg := testConfig()
			cfg.Limit = 1
			var probe atomic.Pointer[error]
			g := start(t, cfg, func(context.Context) error {
				if err := probe.Load(); err != nil {
					return *err
				}
				return nil
			})
			wait := cfg.ProbeMin
			for i := range 10 {
				fail(t, g, &probe)
				wantState(t, g, StateClosed)
				at := time.Now()
				_, changed := g.Admit()
				<-changed
				if took := time.Since(at); took < wait {
					t.Fatalf("return %d after %v, want at least %v", i+1, took, wait)
				}
				wait = min(2*wait, cfg.ProbeMax/3*2)
			}

			// It stays open for as long as it was closed: the next outage is a new one.
			at := time.Now()
			for time.Since(at) < cfg.ProbeMax {
				time.Sleep(time.Second)
				if err := g.Do(t.Context(), "GetObject", 0, answer(nil)); err != nil {
					t.Fatal(err)
				}
			}
			fail(t, g, &probe)
			at = time.Now()
			_, changed := g.Admit()
			<-changed
			if took := time.Since(at); took > 2*cfg.ProbeMin {
				t.Errorf("after a good time the first return took %v", took)
			}
		})
	}
}

// Refusals in the slow start, however slowly they come, are no sign of health.
func TestRefusalsDoNotEndSlowStart(t *testing.T) {
	for _, class := range []object.Class{object.Denied, object.Corrupt, object.Unknown, object.Mangled} {
		bubble(t, string(class), func(t *testing.T) {
			cfg := testConfig()
			cfg.Limit = 1
			d := &dependency{down: failure(object.Unavailable, "http 503")}
			g := start(t, cfg, d.probe)
			_ = g.Do(t.Context(), "GetObject", 0, d.call)
			d.set(nil)
			_, changed := g.Admit()
			<-changed
			for range 10 {
				time.Sleep(time.Minute)
				_ = g.Do(t.Context(), "GetObject", 0, answer(failure(class, "")))
				wantState(t, g, StateSlowStart)
			}
			_ = g.Do(t.Context(), "GetObject", 0, answer(failure(object.Absent, "NoSuchKey")))
			wantState(t, g, StateOpen)
		})
	}
}
