package copier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
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

// fakeSource is a COS in memory that holds callers to the interface's contract.
type fakeSource struct {
	hook    sync.Mutex // held while onGet runs
	mu      sync.Mutex // guards what follows
	objects map[string]*stored
	gets    []get
	refs    []string // keys that Reference was asked for

	// onGet may fail a read, or change its answer, nil when it failed, in place. n
	// counts the reads of the key from 1. One runs at a time.
	onGet       func(n int, g get, r *object.Read) error
	onReference func(key string) error
	latency     time.Duration // of the answer
	transfer    time.Duration // of the body
	reads       map[string]int
	bodies      int // that were read from
}

type get struct {
	key string
	r   object.Range
	pin string
}

type stored struct {
	body []byte
	a    object.Attributes
	p    object.Provenance
}

func newFakeSource() *fakeSource {
	return &fakeSource{objects: map[string]*stored{}, reads: map[string]int{}}
}

func (s *fakeSource) put(key string, body []byte) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	crc := crc64.Checksum(body, crc64.MakeTable(crc64.ECMA))
	o := &stored{body: body, a: object.Attributes{
		Size: int64(len(body)), ETag: fmt.Sprintf("%q", fmt.Sprintf("%x", crc)), CRC64: crc, HasCRC64: true,
		ContentType: "image/jpeg", LastModified: time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC),
	}}
	s.objects[key] = o
	return o
}

func (s *fakeSource) Get(ctx context.Context, key string, r object.Range, pin string) (*object.Read, error) {
	if err := sleep(ctx, s.latency); err != nil {
		return nil, sourceFails(object.Canceled)
	}
	g := get{key, r, pin}
	read, n, err := s.read(ctx, g)
	if s.onGet != nil {
		s.hook.Lock()
		defer s.hook.Unlock()
		if err := s.onGet(n, g, read); err != nil {
			return nil, err
		}
	}
	return read, err
}

func (s *fakeSource) read(ctx context.Context, g get) (*object.Read, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets = append(s.gets, g)
	s.reads[g.key]++
	n := s.reads[g.key]
	o, r := s.objects[g.key], g.r
	if o == nil {
		return nil, n, sourceFails(object.Absent)
	}
	if g.pin != "" && g.pin != o.a.ETag {
		return nil, n, sourceFails(object.Changed)
	}
	if r.Length <= 0 || r.Offset > 0 && r.Offset+r.Length > int64(len(o.body)) {
		panic(fmt.Sprintf("range %+v of %d bytes", r, len(o.body)))
	}
	r.Length = min(r.Length, int64(len(o.body))-r.Offset)
	body := bytes.NewReader(o.body[r.Offset:][:r.Length])
	return &object.Read{Attributes: o.a, Range: r, Body: &fakeBody{s: s, ctx: ctx, Reader: body}}, n, nil
}

func (s *fakeSource) Reference(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs = append(s.refs, key)
	if s.onReference != nil {
		return s.onReference(key)
	}
	return nil
}

func (s *fakeSource) countGets(keep func(get) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gets {
		if keep(g) {
			n++
		}
	}
	return n
}

type fakeBody struct {
	io.Reader
	s    *fakeSource
	ctx  context.Context
	read bool
}

func (b *fakeBody) Read(p []byte) (int, error) {
	if !b.read {
		b.read = true
		b.s.mu.Lock()
		b.s.bodies++
		b.s.mu.Unlock()
		if err := sleep(b.ctx, b.s.transfer); err != nil {
			return 0, sourceFails(object.Canceled)
		}
	}
	return b.Reader.Read(p)
}

func (b *fakeBody) Close() error { return nil }

// fakeDestination is an S3 in memory: create-only, whole uploads only.
type fakeDestination struct {
	mu      sync.Mutex
	objects map[string]*stored
	deleted map[string]bool
	uploads map[*fakeUpload]bool
	calls   map[string]int
	aborts  int
	refs    []string // keys that WriteReference was asked for
	bodies  [][]byte // that were handed over, not copied

	// before may fail a call, after an answer to a call that was carried out; n
	// counts the calls of op from 1.
	before, after func(op string, n int) error
	latency       time.Duration
	hangs         string // the operation that is never answered
}

func newFakeDestination() *fakeDestination {
	return &fakeDestination{objects: map[string]*stored{}, deleted: map[string]bool{}, uploads: map[*fakeUpload]bool{}, calls: map[string]int{}}
}

func (d *fakeDestination) get(key string) *stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects[key]
}

// call does one call of an operation with the lock held.
func (d *fakeDestination) call(ctx context.Context, op string, do func() error) error {
	latency := d.latency
	if op == d.hangs {
		latency = time.Hour
	}
	if err := sleep(ctx, latency); err != nil {
		return destFails(object.Canceled)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[op]++
	n := d.calls[op]
	if d.before != nil {
		if err := d.before(op, n); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if d.after != nil {
		return d.after(op, n)
	}
	return nil
}

// keep remembers a body as it was handed over, as a client does that still reads
// from it after a call has failed.
func (d *fakeDestination) keep(body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies = append(d.bodies, body)
}

func (d *fakeDestination) create(key string, o *stored) error {
	if d.objects[key] != nil {
		return destFails(object.Exists)
	}
	d.objects[key] = o
	return nil
}

func (d *fakeDestination) Head(ctx context.Context, key string) (f object.Found, err error) {
	return f, d.call(ctx, "Head", func() error {
		f.Deleted = d.deleted[key]
		if o := d.objects[key]; o != nil {
			f = object.Found{Attributes: o.a, Exists: true, CopyID: o.p.CopyID}
		}
		return nil
	})
}

func (d *fakeDestination) Put(ctx context.Context, key string, body []byte, a object.Attributes, p object.Provenance) error {
	d.keep(body)
	return d.call(ctx, "Put", func() error { return d.create(key, &stored{bytes.Clone(body), a, p}) })
}

func (d *fakeDestination) Begin(ctx context.Context, key string, a object.Attributes, p object.Provenance) (Upload, error) {
	u := &fakeUpload{d: d, key: key, a: a, p: p, parts: map[int][]byte{}}
	return u, d.call(ctx, "Begin", func() error {
		d.uploads[u] = true
		return nil
	})
}

func (d *fakeDestination) ReadReference(ctx context.Context) error {
	return d.call(ctx, "ReadReference", func() error { return nil })
}

func (d *fakeDestination) WriteReference(ctx context.Context, key string) error {
	return d.call(ctx, "WriteReference", func() error {
		d.refs = append(d.refs, key)
		return nil
	})
}

type fakeUpload struct {
	d     *fakeDestination
	key   string
	a     object.Attributes
	p     object.Provenance
	parts map[int][]byte
}

func (u *fakeUpload) Part(ctx context.Context, n int, body []byte) error {
	u.d.keep(body)
	return u.d.call(ctx, "Part", func() error {
		u.parts[n] = bytes.Clone(body)
		return nil
	})
}

func (u *fakeUpload) Complete(ctx context.Context) error {
	return u.d.call(ctx, "Complete", func() error {
		if !u.d.uploads[u] {
			return destFails(object.Ambiguous) // no such upload
		}
		var body []byte
		for n := 1; n <= len(u.parts); n++ {
			p, ok := u.parts[n]
			if !ok {
				return errors.New("a part is missing")
			}
			body = append(body, p...)
		}
		if err := u.d.create(u.key, &stored{body, u.a, u.p}); err != nil {
			return err
		}
		delete(u.d.uploads, u)
		return nil
	})
}

func (u *fakeUpload) Abort(ctx context.Context) error {
	return u.d.call(ctx, "Abort", func() error {
		u.d.aborts++
		delete(u.d.uploads, u)
		return nil
	})
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

func (g *fakeGuard) Refused(ctx context.Context, cause error, reference func(context.Context) error) (bool, error) {
	err := reference(ctx)
	if object.ClassOf(err) == object.Denied {
		return true, fmt.Errorf("%w: %w", guard.ErrClosed, cause)
	}
	return false, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
