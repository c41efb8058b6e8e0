package queue

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testGate admits what it was last set to.
type testGate struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (g *testGate) Admit() (int, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n, g.changed
}

func (g *testGate) set(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n = n
	close(g.changed)
	g.changed = make(chan struct{})
}

// logBuffer holds the lines of the process's own log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) lines(with string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rig is a consumer over a fake SQS; it lives in one synctest bubble.
type rig struct {
	*fakeSQS
	t    *testing.T
	gate *testGate
	log  *logBuffer
	tel  *telemetry.Telemetry
	cfg  Config
	c    *Consumer

	intake, work context.CancelFunc // the first and the second signal
	done         chan error
}

func newRig(t *testing.T) *rig {
	r := &rig{fakeSQS: newFakeSQS(t), t: t, gate: &testGate{n: 1 << 20, changed: make(chan struct{})}, log: &logBuffer{}, cfg: DefaultConfig()}
	r.cfg.Name, r.cfg.URL, r.cfg.Slots = "main", mainURL, 8
	tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test", Writer: r.log})
	if err != nil {
		t.Fatal(err)
	}
	r.tel = tel
	return r
}

// start opens the consumer and runs it until stop.
func (r *rig) start(h Handler) {
	r.t.Helper()
	c, err := NewConsumer(r.fakeSQS, r.gate, h, r.cfg, r.tel)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.c = c
	intake, stopIntake := context.WithCancel(context.Background())
	work, stopWork := context.WithCancel(context.Background())
	r.intake, r.work, r.done = stopIntake, stopWork, make(chan error, 1)
	go func() { r.done <- c.Run(intake, work) }()
}

// stop drains and returns what Run returned.
func (r *rig) stop() error {
	r.intake()
	err := <-r.done
	r.work()
	r.mu.Lock()
	polling := r.polling
	r.mu.Unlock()
	if s := r.c.Status(); err == nil && (s.Held != 0 || polling != 0) {
		r.t.Errorf("at exit %d messages held, %d receives in flight", s.Held, polling)
	}
	return err
}

func (r *rig) mustStop() {
	r.t.Helper()
	if err := r.stop(); err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

// until waits for a condition, at most for limit.
func (r *rig) until(limit time.Duration, what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Errorf("not within %s: %s\n%s", limit, what, r.log)
			r.work() // no goroutine may outlive the bubble
			<-r.done
			r.t.FailNow()
		}
	}
	synctest.Wait()
}

func (r *rig) look(m *fakeMessage) fakeMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *m
}

func (r *rig) deleted(ms ...*fakeMessage) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range ms {
			if !m.deleted {
				return false
			}
		}
		return true
	}
}

func (r *rig) letters() []*fakeMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*fakeMessage(nil), r.queues[deadURL].all...)
}

// metric returns the value of a line of the Prometheus page, "" without one.
func (r *rig) metric(line string) string {
	w := httptest.NewRecorder()
	r.tel.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for l := range strings.Lines(w.Body.String()) {
		if v, ok := strings.CutPrefix(l, line+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

var copied = Outcome{Verb: Settle, End: string(object.EndCopied)}

func settle(context.Context, *Delivery) Outcome { return copied }

// working settles after d, or hands back when its context ends first.
func working(d time.Duration) Handler {
	return func(ctx context.Context, _ *Delivery) Outcome {
		if pause(ctx, d) {
			return copied
		}
		return Outcome{Verb: HandBack}
	}
}
