package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failure is an answer of a class, with a code.
func failure(c object.Class, code string) error {
	return &object.Error{Side: object.Source, Op: "GetObject", Key: "private/name", Class: c, Code: code}
}

func answer(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// hang ends only with its context.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return &object.Error{Side: object.Source, Op: "GetObject", Class: object.Unavailable, Err: ctx.Err()}
}

// dependency answers calls and probes after a latency, and notes when.
type dependency struct {
	latency time.Duration

	mu      sync.Mutex
	down    error // what everything is answered with
	calls   []time.Time
	probes  []time.Time
	running int
	most    int // calls running at once
}

func (d *dependency) set(down error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *dependency) answer() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

func (d *dependency) call(ctx context.Context) error {
	d.mu.Lock()
	d.calls = append(d.calls, time.Now())
	d.running++
	d.most = max(d.most, d.running)
	d.mu.Unlock()
	_ = sleep(ctx, d.latency)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	return d.down
}

func (d *dependency) probe(ctx context.Context) error {
	d.mu.Lock()
	d.probes = append(d.probes, time.Now())
	d.mu.Unlock()
	_ = sleep(ctx, d.latency)
	return d.answer()
}

// counts returns how many calls and probes there were so far.
func (d *dependency) counts() (calls, probes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls), len(d.probes)
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Name, cfg.Side = "source test", object.Source
	return cfg
}

// start returns a guard that runs until the test ends.
func start(t *testing.T, cfg Config, probe Probe) *Guard {
	t.Helper()
	g, err := New(cfg, probe, telemetry.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return g
}

// bubble runs a test in which time is virtual.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func wantState(t *testing.T, g *Guard, want string) {
	t.Helper()
	if got := g.Status().State; got != want {
		t.Fatalf("gate is %q, want %q", got, want)
	}
}

func wantClass(t *testing.T, err error, want object.Class, closed bool) {
	t.Helper()
	if got := object.ClassOf(err); got != want || errors.Is(err, ErrClosed) != closed {
		t.Errorf("error %v: class %q, closed %v; want %q, %v", err, got, errors.Is(err, ErrClosed), want, closed)
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	if err := testConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	err := Config{ProbeMin: time.Second}.Validate()
	for _, want := range []string{"name", "limit", "messages per call", "timeout", "minimum rate", "longest probe interval", "attempts"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
	if _, err := New(testConfig(), nil, telemetry.Nop()); err == nil {
		t.Error("a guard without a probe was made")
	}
}

// One line a change of state, with codes and never a key.
func TestEachChangeIsOneLine(t *testing.T) {
	var out bytes.Buffer
	tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test", Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{down: failure(object.Unavailable, "http 503")}
		g, err := New(testConfig(), d.probe, tel)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = g.Run(ctx) })
		_ = g.Do(ctx, "GetObject", 0, d.call)
		time.Sleep(time.Minute)
		d.set(nil)
		time.Sleep(5 * time.Minute)
		for range 200 {
			_ = g.Do(ctx, "GetObject", 0, d.call)
		}
		cancel()
		all.Wait()
	})
	type line struct{ Guard, State, Was, Reason string }
	var got []line
	for l := range strings.Lines(out.String()) {
		var parsed line
		if err := json.Unmarshal([]byte(l), &parsed); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		got = append(got, parsed)
	}
	want := []line{
		{"source test", StateClosed, StateOpen, "unavailable: http 503"},
		{"source test", StateSlowStart, StateClosed, "unavailable: http 503"},
		{"source test", StateOpen, StateSlowStart, "unavailable: http 503"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
