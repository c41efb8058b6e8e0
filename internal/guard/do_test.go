package guard

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

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

// A call that may bring a large body must still begin to answer within the
// timeout; only then is it given the body's time.
func TestExpectCountsDeadlineAnew(t *testing.T) {
	for name, test := range map[string]struct {
		answers bool
		want    time.Duration
	}{
		"no answer": {false, 30 * time.Second},
		"answer":    {true, 10*time.Second + 30*time.Second + 1024*time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			cfg := testConfig()
			cfg.Attempts = 1
			g := start(t, cfg, answer(nil))
			began := time.Now()
			err := g.Do(t.Context(), "GetObject", 0, func(ctx context.Context) error {
				if test.answers {
					time.Sleep(10 * time.Second)
					Expect(ctx, 64<<20)
				}
				return hang(ctx)
			})
			wantClass(t, err, object.Unavailable, false)
			if took := time.Since(began); took != test.want {
				t.Errorf("deadline after %v, want %v", took, test.want)
			}
		})
	}
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

// What we cut off ourselves must not look like an outage in the metrics either.
func TestCanceledIsMeasuredAsCanceled(t *testing.T) {
	tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test", Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g, err := New(testConfig(), answer(nil), tel)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantClass(t, g.Do(ctx, "GetObject", 0, hang), object.Canceled, false)
	})
	page := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if got := page.Body.String(); !strings.Contains(got, `objectferry_guard_calls_total{class="canceled",guard="source test",op="GetObject"} 1`) || strings.Contains(got, "unavailable") {
		t.Errorf("metrics are %s", got)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestObjectAnswersReturnAtOnce(t *testing.T) {
	for _, class := range []object.Class{
		object.Absent, object.Denied, object.Archived, object.Unfit, object.Changed,
		object.Exists, object.Mangled, object.Unknown, object.Canceled,
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

// A write that may have been committed is not the guard's to repeat. But an outage
// of writes shows itself in nothing else, for reads go on working.
func TestUnclearWriteAsksTheDependency(t *testing.T) {
	for name, test := range map[string]struct {
		probe error
		state string
	}{
		"writes work":    {nil, StateOpen},
		"writes are out": {failure(object.Unavailable, "http 503"), StateClosed},
	} {
		bubble(t, name, func(t *testing.T) {
			d := &dependency{down: test.probe}
			g := start(t, testConfig(), d.probe)
			tries := 0
			err := g.Do(t.Context(), "PutObject", 0, func(context.Context) error {
				tries++
				return failure(object.Ambiguous, "http 500")
			})
			wantClass(t, err, object.Ambiguous, false)
			if _, probes := d.counts(); tries != 1 || probes != 1 {
				t.Errorf("%d tries and %d probes, want one each", tries, probes)
			}
			wantState(t, g, test.state)
		})
	}
}

// A human must hear of it, however late the answer was.
func TestMangledIsNeverRepeatedNorTakenForInterrupted(t *testing.T) {
	for name, cut := range map[string]time.Duration{"own deadline": time.Hour, "cancelled": time.Second} {
		bubble(t, name, func(t *testing.T) {
			g := start(t, testConfig(), answer(nil))
			ctx, cancel := context.WithTimeout(t.Context(), cut)
			defer cancel()
			tries := 0
			err := g.Do(ctx, "PutObject", 0, func(ctx context.Context) error {
				tries++
				<-ctx.Done() // it came nevertheless
				return failure(object.Mangled, "http 200")
			})
			wantClass(t, err, object.Mangled, false)
			if tries != 1 {
				t.Errorf("%d tries", tries)
			}
		})
	}
}
