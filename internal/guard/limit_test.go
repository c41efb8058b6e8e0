package guard

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// rated is a source that answers so many calls a second and throttles the rest.
type rated struct {
	rate, burst float64
	latency     func() time.Duration

	mu              sync.Mutex
	tokens          float64
	last            time.Time
	down            bool
	good, throttled atomic.Int64
}

func (s *rated) call(ctx context.Context) error {
	s.mu.Lock()
	down, wait := s.down, s.latency()
	now := time.Now()
	s.tokens = min(s.burst, s.tokens+s.rate*now.Sub(s.last).Seconds())
	s.last = now
	pass := s.tokens >= 1
	if pass && !down {
		s.tokens--
	}
	s.mu.Unlock()
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	switch {
	case down:
		return failure(object.Unavailable, "http 503")
	case !pass:
		s.throttled.Add(1)
		return failure(object.Throttled, "SlowDown")
	}
	s.good.Add(1)
	return nil
}

func (s *rated) probe(ctx context.Context) error {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return failure(object.Unavailable, "http 503")
	}
	return nil
}

func fixed(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// Four processes on one source that limits requests a second: a minute after its
// return, few of its answers are 429, and what it allows is used.
func TestFleetSettles(t *testing.T) {
	for _, test := range []struct {
		name        string
		fleet       int
		rate, burst float64
		latency     func() time.Duration
		probeMin    time.Duration
	}{
		{"latency 50 ms", 4, 200, 20, fixed(50 * time.Millisecond), 5 * time.Second},
		{"a second's burst", 4, 200, 200, fixed(50 * time.Millisecond), 5 * time.Second},
		{"latency 1 ms", 4, 200, 20, fixed(time.Millisecond), 5 * time.Second},
		{"latency 100 to 300 ms", 4, 200, 20, func() time.Duration { return 100*time.Millisecond + rand.N(200*time.Millisecond) }, 5 * time.Second},
		{"alone", 1, 50, 5, fixed(50 * time.Millisecond), 5 * time.Second},
		{"few a second", 4, 8, 4, fixed(50 * time.Millisecond), 5 * time.Second},
		{"scaled", 4, 200, 20, fixed(50 * time.Millisecond), 50 * time.Millisecond},
	} {
		bubble(t, test.name, func(t *testing.T) {
			s := &rated{rate: test.rate, burst: test.burst, latency: test.latency, last: time.Now(), down: true}
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var guards []*Guard
			for range test.fleet {
				cfg := testConfig()
				cfg.ProbeMin = test.probeMin
				g := start(t, cfg, s.probe)
				guards = append(guards, g)
				for range 80 {
					all.Go(func() {
						for ctx.Err() == nil {
							if n, changed := g.Admit(); n == 0 {
								select {
								case <-changed:
								case <-ctx.Done():
								}
								continue
							}
							_ = g.Do(ctx, "GetObject", 0, s.call)
						}
					})
				}
			}
			time.Sleep(20 * time.Second)
			for _, g := range guards {
				wantState(t, g, StateClosed)
			}
			s.mu.Lock()
			s.down = false
			s.mu.Unlock()
			time.Sleep(time.Minute)
			good, throttled := s.good.Load(), s.throttled.Load()
			window := max(time.Minute, time.Duration(2000/test.rate)*time.Second) // few answers tell little
			time.Sleep(window)
			good, throttled = s.good.Load()-good, s.throttled.Load()-throttled
			if share := float64(throttled) / float64(good+throttled); share >= 0.05 {
				t.Errorf("%.1f %% of the answers are throttled", 100*share)
			}
			if used := float64(good) / (window.Seconds() * test.rate); used < 0.8 {
				t.Errorf("%.2f of what the source allows is used", used)
			}
			cancel()
			all.Wait()
			synctest.Wait()
		})
	}
}

// slotted fills g with calls that end with what is sent to end, and returns once
// n of them run.
func slotted(g *Guard, n int, end <-chan error) (wait func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_ = g.Do(context.Background(), "GetObject", 0, func(context.Context) error { return <-end })
		})
	}
	synctest.Wait()
	return all.Wait
}

func TestLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{latency: 100 * time.Millisecond}
		g := start(t, testConfig(), d.probe)
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if err := g.Do(t.Context(), "GetObject", 0, d.call); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if d.most != 64 {
			t.Errorf("%d calls ran at once, want 64", d.most)
		}
		if in := g.Status().InUse; in != 0 {
			t.Errorf("%d slots are still in use", in)
		}
	})
}

func TestThrottleHalvesOncePerRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		end := make(chan error)
		wait := slotted(g, 64, end)
		for i := range 64 { // all were in flight when the first was throttled
			time.Sleep(10 * time.Millisecond)
			end <- failure(object.Throttled, "SlowDown")
			synctest.Wait()
			if got := g.Status().Limit; got != 32 {
				t.Fatalf("after %d throttled answers of one round trip the limit is %d, want 32", i+1, got)
			}
		}
		wantState(t, g, StateOpen)
		if got := g.Status().Reason; got != "throttled" {
			t.Errorf("reason is %q", got)
		}
		time.Sleep(10 * time.Second) // their retries are in flight now
		end <- failure(object.Throttled, "SlowDown")
		synctest.Wait()
		if got := g.Status().Limit; got != 16 {
			t.Errorf("throttled in the next round trip the limit is %d, want 16", got)
		}
		close(end)
		wait()
	})
}

func TestThrottledHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Limit = 1
		g := start(t, cfg, answer(nil))
		began := time.Now()
		throttled := make(chan time.Duration)
		go func() {
			tries := 0
			err := g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
				time.Sleep(10 * time.Millisecond)
				if tries++; tries > 1 {
					return nil
				}
				err := failure(object.Throttled, "SlowDown").(*object.Error)
				err.RetryAfter = time.Minute
				return err
			})
			if err != nil {
				t.Error(err)
			}
			throttled <- time.Since(began)
		}()
		synctest.Wait()
		if err := g.Do(t.Context(), "GetObject", 0, answer(nil)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("another call waited %v while the throttled one backed off", took)
		}
		if took := <-throttled; took < time.Minute {
			t.Errorf("the throttled call was tried again after %v, the server asked for a minute", took)
		}
	})
}

func TestThrottledThroughoutClosesGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{latency: 50 * time.Millisecond, down: failure(object.Throttled, "SlowDown")}
		g := start(t, testConfig(), d.probe)
		began := time.Now()
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Canceled, true)
			})
		}
		all.Wait()
		if took := time.Since(began); took < 5*time.Second || took > 15*time.Second {
			t.Errorf("the gate closed after %v", took)
		}
		if s := g.Status(); s.State != StateClosed || s.Reason != "throttled" {
			t.Errorf("gate is %q because of %q", s.State, s.Reason)
		}
		if calls, _ := d.counts(); calls > 64*6 {
			t.Errorf("%d calls before the gate closed", calls)
		}
		d.set(nil)
		time.Sleep(15 * time.Second)
		wantState(t, g, StateSlowStart)
	})
}

// A few throttled answers after a quiet time, or far apart, are not hopeless.
func TestThrottledNowAndThenStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Limit = 1
		g := start(t, cfg, answer(nil))
		for range 10 {
			time.Sleep(time.Minute)
			tries := 0
			err := g.Do(t.Context(), "GetObject", 0, func(context.Context) error {
				if tries++; tries > 2 {
					return nil
				}
				return failure(object.Throttled, "SlowDown")
			})
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, g, StateOpen)
		}
	})
}
