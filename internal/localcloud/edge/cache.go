package edge

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	maxKept  = 1000    // answers
	maxBytes = 1 << 20 // of body of each
)

// cache keeps final errors and, if asked to, small objects for a short while.
type cache struct {
	errorTTL, objectTTL time.Duration

	mu   sync.Mutex
	kept map[string]*answer
}

// answer is a kept answer.
type answer struct {
	until  time.Time
	status int
	header http.Header
	body   []byte
}

func newCache(errorTTL, objectTTL time.Duration) *cache {
	return &cache{errorTTL: errorTTL, objectTTL: objectTTL, kept: map[string]*answer{}}
}

func name(r *http.Request) string { return r.Method + " " + r.RequestURI }

// conditional reports whether r asks for less than the whole object.
func conditional(r *http.Request) bool {
	return r.Header.Get("Range") != "" || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != ""
}

func (c *cache) get(r *http.Request) (*answer, bool) {
	if c.errorTTL == 0 && c.objectTTL == 0 || conditional(r) {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.kept[name(r)]
	return a, ok && time.Now().Before(a.until)
}

func (a *answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	w.Write(a.body) // a visitor who has gone is no matter
}

// recording collects a body while it is passed on; nil in c keeps nothing.
type recording struct {
	c    *cache
	name string
	ttl  time.Duration
	a    answer
	body bytes.Buffer
}

// record begins to keep resp if it is one to be kept.
func (c *cache) record(r *http.Request, resp *http.Response, header http.Header) *recording {
	ttl := time.Duration(0)
	switch {
	case conditional(r) || r.Method != http.MethodGet && r.Method != http.MethodHead:
	case resp.StatusCode >= 400:
		ttl = c.errorTTL
	case resp.StatusCode == http.StatusOK:
		ttl = c.objectTTL
	}
	if ttl == 0 {
		return &recording{}
	}
	return &recording{c: c, name: name(r), ttl: ttl, a: answer{status: resp.StatusCode, header: header.Clone()}}
}

// Write implements io.Writer and never fails: it must not end the visitor's answer.
func (k *recording) Write(p []byte) (int, error) {
	if k.c != nil && k.body.Len()+len(p) > maxBytes {
		k.c = nil
		k.body = bytes.Buffer{}
	}
	if k.c != nil {
		k.body.Write(p)
	}
	return len(p), nil
}

// done keeps the answer, whole. A full cache is emptied: it is a small one.
func (k *recording) done() {
	if k.c == nil {
		return
	}
	k.a.body, k.a.until = k.body.Bytes(), time.Now().Add(k.ttl)
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if len(k.c.kept) >= maxKept {
		clear(k.c.kept)
	}
	k.c.kept[k.name] = &k.a
}
