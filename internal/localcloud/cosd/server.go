package cosd

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config names a bucket and who may read it.
type Config struct {
	Bucket     string      // for error bodies and listings; default "media-1250000000"
	Principals []Principal // who signs; see SetPrincipals
	Behaviour  Behaviour   // at the start; see Change
}

// Principal is somebody whose signature the bucket accepts.
type Principal struct {
	ID, Key string
	Token   string // of temporary credentials: must come in x-cos-security-token; "" for permanent ones
}

// Behaviour is how the bucket behaves as a whole. The zero value is a private,
// fast and honest bucket.
type Behaviour struct {
	PublicRead         bool // the bucket's ACL: objects that inherit it, missing keys and the listing
	ForceDownload      bool // answers carry x-cos-force-download and Content-Disposition: attachment
	NoSuchBucket       bool // every answer is 404 NoSuchBucket
	PathStyleForbidden bool // every answer is 403 PathStyleDomainForbidden
	ListDenied         bool // nobody may list the bucket, whatever else may be read

	LatencyMin, LatencyMax time.Duration // round trip before the first byte, uniform in between
	BytesPerSecond         int64         // of bodies, per connection; 0 is no cap
	RequestsPerSecond      int           // more are refused with LimitStatus; 0 is no limit
	LimitStatus            int           // 503 SlowDown (default) or 429 RequestLimitExceeded

	MaxConns      int  // more wait to be accepted; 0 is no limit (Start only)
	ResetOnAccept bool // connections are reset, present ones too (Start only)
}

// Server is one bucket.
type Server struct {
	bucket  string
	store   store
	access  access
	faults  faults
	journal journal
	pace    pace
	net     network

	behaviour atomic.Pointer[Behaviour]
	change    sync.Mutex // one Change at a time
	requests  atomic.Uint64
	closed    chan struct{}
	closeOnce sync.Once
}

// New returns an empty bucket. It opens no socket; serve it as an http.Handler
// or call Start.
func New(c Config) *Server {
	if c.Bucket == "" {
		c.Bucket = "media-1250000000"
	}
	s := &Server{bucket: c.Bucket, closed: make(chan struct{})}
	s.store.objects = map[string]*stored{}
	s.journal.reset()
	s.net.init()
	s.SetPrincipals(c.Principals...)
	b := c.Behaviour
	s.behaviour.Store(&b)
	return s
}

// Change alters the behaviour from the next request on.
func (s *Server) Change(f func(*Behaviour)) {
	s.change.Lock()
	defer s.change.Unlock()
	b := *s.behaviour.Load()
	f(&b)
	s.behaviour.Store(&b)
	s.net.limit(b.MaxConns, b.ResetOnAccept)
}

// ServeHTTP answers one request. It panics with http.ErrAbortHandler to cut a
// connection, as net/http prescribes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := s.behaviour.Load()
	q := newRequest(r)
	e := s.journal.begin(q)
	defer func() { s.journal.end(e) }()

	if !s.pace.latency(r.Context(), b.LatencyMin, b.LatencyMax) {
		return
	}
	lies := s.faults.match(*q)
	for _, l := range lies {
		if l.lie.hang && !s.hang(r.Context(), l.healed) {
			return
		}
		if l.lie.request != nil {
			l.lie.request(s, q)
		}
	}
	a := s.answer(b, q)
	for _, l := range lies {
		if l.lie.answer != nil {
			l.lie.answer(s, q, a)
		}
	}
	e.Status, e.Throttled = a.status, a.limited || a.status == http.StatusTooManyRequests
	s.write(w, r, a, b.BytesPerSecond, &e.Bytes)
}

// hang waits until the lie is healed and reports false when the client or the
// server went first.
func (s *Server) hang(ctx context.Context, healed <-chan struct{}) bool {
	select {
	case <-healed:
		return true
	case <-ctx.Done():
	case <-s.closed:
	}
	return false
}

// answer is the honest answer, in the order in which COS judges: load, bucket,
// signature, policy, object.
func (s *Server) answer(b *Behaviour, q *Request) *answer {
	switch {
	case b.RequestsPerSecond > 0 && !s.pace.admit(b.RequestsPerSecond):
		r := errSlowDown
		if b.LimitStatus == http.StatusTooManyRequests {
			r = errRequestLimit
		}
		a := s.refuse(q, r)
		a.limited = true
		return a
	case b.NoSuchBucket:
		return s.refuse(q, errNoSuchBucket)
	case b.PathStyleForbidden:
		return s.refuse(q, errPathStyle)
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		return s.refuse(q, errMethod)
	}
	if err := s.access.verify(q); err != nil {
		return s.refuse(q, err)
	}
	if q.Key == "" {
		if b.ListDenied || !q.Signed && !b.PublicRead {
			return s.refuse(q, errAccessDenied)
		}
		return s.listing(q)
	}
	o := s.store.get(q.Key)
	if !q.Signed && !o.public(b.PublicRead) {
		return s.refuse(q, errAccessDenied)
	}
	if o == nil {
		return s.refuse(q, errNoSuchKey)
	}
	return s.read(q, o, b.ForceDownload)
}

// ids returns a request id and a trace id that look like COS's.
func (s *Server) ids() (request, trace string) {
	n := s.requests.Add(1)
	request = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%08x_%08x_%04x", time.Now().Unix(), n, n&0xffff))
	return request, base64.StdEncoding.EncodeToString([]byte("trace:" + request))
}
