package copier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

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
