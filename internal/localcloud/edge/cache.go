package edge

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxKept  = 1000    // answers
	maxBytes = 1 << 20 // of body of each
)

// cache keeps final errors and small objects for a while.
type cache struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[string]*answer
}

// answer is a kept answer, as the origin gave it.
type answer struct {
	until  time.Time
	status int
	header http.Header
	body   []byte
}

func newCache(now func() time.Time) *cache { return &cache{now: now, kept: map[string]*answer{}} }

// conditional reports whether r asks for less than the whole object.
func conditional(r *http.Request) bool {
	for _, name := range []string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// get finds what may be answered without asking. An error answers for every part
// of an object; a kept object answers for the whole only.
func (c *cache) get(name string, r *http.Request) (*answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.kept[name]
	return a, ok && c.now().Before(a.until) && (a.status >= 400 || !conditional(r))
}

func (a *answer) write(w http.ResponseWriter) {
	w.WriteHeader(a.status)
	w.Write(a.body) // a visitor who has gone is no matter
}

// name is what tells kept answers apart.
func (b *Behaviour) name(r *http.Request) string {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if b.Query {
		path += "?" + query
	}
	return r.Method + " " + path + " " + b.accepted(r)
}

// lifetime is for how long an answer is kept.
func (e *Edge) lifetime(b *Behaviour, r *http.Request, resp *http.Response) time.Duration {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return 0
	}
	age, refused := said(resp.Header, e.cache.now())
	if least, ok := e.dist.ErrorTTL[resp.StatusCode]; ok {
		minded := []int{http.StatusNotFound, http.StatusGone, http.StatusRequestURITooLong, http.StatusNotImplemented}
		if refused && slices.Contains(minded, resp.StatusCode) {
			return 0
		}
		return max(least, min(age, b.TTL.Max))
	}
	if resp.StatusCode != http.StatusOK || conditional(r) {
		return 0
	}
	if age < 0 && !refused {
		age = b.TTL.Default
	}
	return min(max(age, b.TTL.Min), b.TTL.Max)
}

var maxAge = regexp.MustCompile(`(?:^|[, ])(s-maxage|max-age)=(\d+)`)

// said is for how long an origin wants its answer kept, below 0 when it does not
// say, and whether it wants it not kept at all.
func said(h http.Header, now time.Time) (age time.Duration, refused bool) {
	control := strings.ToLower(strings.Join(h.Values("Cache-Control"), ","))
	for _, word := range []string{"no-store", "no-cache", "private"} {
		if strings.Contains(control, word) {
			return 0, true
		}
	}
	found := map[string]time.Duration{}
	for _, m := range maxAge.FindAllStringSubmatch(control, -1) {
		seconds, _ := strconv.Atoi(m[2]) // digits; too many are no age
		found[m[1]] = time.Duration(seconds) * time.Second
	}
	if age, ok := found["s-maxage"]; ok {
		return age, false
	}
	if age, ok := found["max-age"]; ok {
		return age, false
	}
	if at, err := http.ParseTime(h.Get("Expires")); err == nil {
		return max(at.Sub(now), 0), false
	}
	return -1, false
}

// recording collects a body while it is passed on; nil in c keeps nothing.
type recording struct {
	c    *cache
	name string
	ttl  time.Duration
	a    answer
	body bytes.Buffer
}

// record begins to keep resp for ttl.
func (c *cache) record(name string, resp *http.Response, ttl time.Duration) *recording {
	if ttl <= 0 {
		return &recording{}
	}
	return &recording{c: c, name: name, ttl: ttl, a: answer{status: resp.StatusCode, header: maps.Clone(resp.Header)}}
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
	k.a.body, k.a.until = k.body.Bytes(), k.c.now().Add(k.ttl)
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if len(k.c.kept) >= maxKept {
		clear(k.c.kept)
	}
	k.c.kept[k.name] = &k.a
}
