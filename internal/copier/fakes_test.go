package copier

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	bucket = "overseas-media"
	part   = 1 << 10 // the tests' part size
)

// world is a copier between two stores in memory.
type world struct {
	*Copier
	src                *fakeSource
	dst                *fakeDestination
	srcGuard, dstGuard *fakeGuard
	tel                *telemetry.Telemetry
}

type options struct {
	memory, part, maxSize int64 // the defaults' unless given
	route                 func(*config.Route)
	guards                func(w *world) (src, dst Guard)
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	tel, err := telemetry.New(t.Context(), telemetry.Config{Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{src: newFakeSource(), dst: newFakeDestination(), srcGuard: &fakeGuard{}, dstGuard: &fakeGuard{}, tel: tel}
	rc := config.Route{Bucket: bucket, Mode: config.ModeCopy, Source: config.Source{Read: config.ReadAnonymous}}
	if o.route != nil {
		o.route(&rc)
	}
	routes, err := route.New([]config.Route{rc})
	if err != nil {
		t.Fatal(err)
	}
	lane := Lane{Route: routes.Routes()[0], Source: w.src, SourceGuard: w.srcGuard, Destination: w.dst, DestinationGuard: w.dstGuard}
	if o.guards != nil {
		lane.SourceGuard, lane.DestinationGuard = o.guards(w)
	}
	cfg := Config{Memory: 64 * part, PartSize: part, MaxSize: 1 << 20}
	if o.memory != 0 {
		cfg.Memory = o.memory
	}
	if o.part != 0 {
		cfg.PartSize = o.part
	}
	if o.maxSize != 0 {
		cfg.MaxSize = o.maxSize
	}
	if w.Copier, err = New(Deps{Routes: routes, Lanes: []Lane{lane}, Tel: tel}, cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask handles a request whose row is an hour old.
func (w *world) ask(ctx context.Context, key string) queue.Outcome {
	return w.askSeen(ctx, key, time.Now().Add(-time.Hour))
}

func (w *world) askSeen(ctx context.Context, key string, seen time.Time) queue.Outcome {
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: bucket, Key: key, Seen: seen, Cause: "NoSuchKey"})
	if err != nil {
		panic(err)
	}
	return w.Handle(ctx, &queue.Delivery{Body: body, Receives: 1})
}

// metric returns the lines of the metrics page that begin with name.
func (w *world) metric(name string) string {
	rec := httptest.NewRecorder()
	w.tel.MetricsHandler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// wants fails the test unless an outcome has a verb and, as a short text, its end
// or detail.
func wants(t *testing.T, got queue.Outcome, verb queue.Verb, end string, detail object.Detail) {
	t.Helper()
	if got.Verb != verb || got.End != end || got.Detail != string(detail) {
		t.Errorf("outcome %+v, want verb %d, end %q, detail %q", got, verb, end, detail)
	}
}

func wantsEnd(t *testing.T, got queue.Outcome, end object.End) {
	t.Helper()
	wants(t, got, queue.Settle, string(end), "")
}

// wantsCopy fails the test unless the destination holds the source's object.
func (w *world) wantsCopy(t *testing.T, key string) {
	t.Helper()
	src, dst := w.src.objects[key], w.dst.get(key)
	if dst == nil {
		t.Errorf("%q is not there", key)
		return
	}
	if !bytes.Equal(src.body, dst.body) {
		t.Errorf("%q has other bytes than its source: %d of them, want %d", key, len(dst.body), len(src.body))
	}
}

// wantsNothing fails the test if anything is visible or left at the destination.
func (w *world) wantsNothing(t *testing.T) {
	t.Helper()
	if n := len(w.dst.objects); n != 0 {
		t.Errorf("%d objects are visible", n)
	}
	w.wantsTidy(t)
}

// wantsTidy fails the test if an upload or memory is left behind.
func (w *world) wantsTidy(t *testing.T) {
	t.Helper()
	if n := len(w.dst.uploads); n != 0 {
		t.Errorf("%d uploads are left open", n)
	}
	if n := w.memory.held.Load(); n != 0 {
		t.Errorf("%d bytes of memory are still reserved", n)
	}
}

func fails(side object.Side, class object.Class) error {
	return &object.Error{Side: side, Op: "test", Class: class, Code: "test"}
}

func sourceFails(class object.Class) error { return fails(object.Source, class) }
func destFails(class object.Class) error   { return fails(object.Destination, class) }

// content is n bytes that differ from place to place.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13)
	}
	return b
}

// fakeGuard lets calls through, up to a limit, and never tries one twice.
type fakeGuard struct {
	limit  chan struct{} // nil is no limit
	closed error         // what every call is held back with

	mu        sync.Mutex
	busy, max int
}

func (g *fakeGuard) Do(ctx context.Context, _ string, _ int64, call func(context.Context) error) error {
	if g.closed != nil {
		return g.closed
	}
	if g.limit != nil {
		select {
		case g.limit <- struct{}{}:
			defer func() { <-g.limit }()
		case <-ctx.Done():
			return fails("", object.Canceled)
		}
	}
	g.count(1)
	defer g.count(-1)
	return call(ctx)
}

func (g *fakeGuard) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy += n
	g.max = max(g.max, g.busy)
}

func (g *fakeGuard) Refused(ctx context.Context, cause error, reference func(context.Context) error) error {
	err := reference(ctx)
	if object.ClassOf(err) == object.Denied {
		return fmt.Errorf("%w: %w", guard.ErrClosed, cause)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
