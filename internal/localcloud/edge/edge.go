// Package edge is a small HTTP edge that does what CloudFront's origin group
// does: it asks S3 first and COS when S3 answers 403 or 404, so that a visitor
// is served either way.
//
// The visitor's path reaches the origin byte for byte. Only GET, HEAD and
// OPTIONS fail over. The answer says in X-Origin who gave it. Safe for
// concurrent use.
package edge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The values of the X-Origin header.
const (
	OriginHeader = "X-Origin"
	S3           = "s3"
	COS          = "cos"
)

// userAgent is what CloudFront calls itself toward its origins.
const userAgent = "Amazon CloudFront"

// Config names the origins.
type Config struct {
	S3, COS string // origin URLs; a path, as of a path-style bucket, is put before the visitor's
	// Failover are S3's statuses on which COS is asked; default 403 and 404. No
	// answer at all always fails over.
	Failover []int
	// ErrorTTL is for how long a final error is answered again without asking, as
	// CloudFront's error caching does; 0 is off.
	ErrorTTL time.Duration
	// ObjectTTL is the same for whole 200 answers of up to 1 MiB; 0 is off.
	ObjectTTL time.Duration
}

// Counts is who answered so far.
type Counts struct {
	S3, COS int64 // answers below 400, fresh ones
	Cached  int64 // answers from the edge's own cache
	Errors  int64 // final answers of 400 and above, and cut bodies
}

// Edge is the edge; serve it as an http.Handler.
type Edge struct {
	client   *http.Client
	s3, cos  origin
	failover []int
	cache    *cache

	fromS3, fromCOS, cached, errors atomic.Int64
}

// origin is where requests go: base without a trailing slash.
type origin struct {
	name string
	base *url.URL
}

// New returns an edge before two origins. It opens no socket and copies client,
// which may be nil.
func New(client *http.Client, c Config) (*Edge, error) {
	if client == nil {
		client = &http.Client{}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e := &Edge{client: &own, failover: c.Failover, cache: newCache(c.ErrorTTL, c.ObjectTTL)}
	if e.failover == nil {
		e.failover = []int{http.StatusForbidden, http.StatusNotFound}
	}
	for _, o := range []struct {
		to        *origin
		name, url string
	}{{&e.s3, S3, c.S3}, {&e.cos, COS, c.COS}} {
		u, err := url.Parse(o.url)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("parse %s origin %q: it must be a URL with a host", o.name, o.url)
		}
		*o.to = origin{o.name, u}
	}
	return e, nil
}

// Counts returns the counters.
func (e *Edge) Counts() Counts {
	return Counts{e.fromS3.Load(), e.fromCOS.Load(), e.cached.Load(), e.errors.Load()}
}

// ServeHTTP answers a visitor.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if kept, ok := e.cache.get(r); ok {
		e.cached.Add(1)
		kept.write(w)
		return
	}
	resp, from := e.fetch(r)
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 400:
		e.errors.Add(1)
	case from == S3:
		e.fromS3.Add(1)
	default:
		e.fromCOS.Add(1)
	}
	for name, values := range resp.Header {
		if !hopByHop(name) {
			w.Header()[name] = values
		}
	}
	w.Header().Set(OriginHeader, from)
	w.WriteHeader(resp.StatusCode)
	keep := e.cache.record(r, resp, w.Header())
	n, err := io.Copy(io.MultiWriter(w, keep), resp.Body)
	if err != nil || resp.ContentLength > 0 && n < resp.ContentLength && r.Method != http.MethodHead {
		e.errors.Add(1)
		panic(http.ErrAbortHandler) // the visitor must see that the body was cut
	}
	keep.done()
}

// fetch asks S3 and, where the origin group says so, COS. It always returns an
// answer: a gateway's own error where an origin gave none.
func (e *Edge) fetch(r *http.Request) (*http.Response, string) {
	resp, err := e.ask(r, e.s3)
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
	if !safe || err == nil && !slices.Contains(e.failover, resp.StatusCode) {
		return orGateway(resp, err), S3
	}
	if err == nil {
		resp.Body.Close()
	}
	resp, err = e.ask(r, e.cos)
	return orGateway(resp, err), COS
}

// orGateway is resp, or the error page of a gateway whose origin did not answer.
func orGateway(resp *http.Response, err error) *http.Response {
	if err == nil {
		return resp
	}
	status := http.StatusBadGateway
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	return &http.Response{
		StatusCode: status, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   io.NopCloser(strings.NewReader("The origin did not answer.\n")),
	}
}

// ask passes r on to one origin.
func (e *Edge) ask(r *http.Request, o origin) (*http.Response, error) {
	req := r.Clone(r.Context())
	req.RequestURI, req.Close = "", false
	req.Host = o.base.Host
	req.URL = o.target(r)
	for name := range req.Header {
		if hopByHop(name) {
			delete(req.Header, name)
		}
	}
	req.Header.Set("User-Agent", userAgent)
	if req.Header.Get("Accept-Encoding") == "" {
		// Or net/http would ask for gzip on its own and unpack it on the way.
		req.Header.Set("Accept-Encoding", "identity")
	}
	return e.client.Do(req)
}

// target is the visitor's path at the origin, exactly as it came. Opaque is the
// one form that net/url does not touch; but one that begins with "//" it takes
// for a host, and there Path and RawPath keep the text.
func (o origin) target(r *http.Request) *url.URL {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // the absolute form
		path = r.URL.EscapedPath()
	}
	path = strings.TrimSuffix(o.base.EscapedPath(), "/") + path
	u := &url.URL{Scheme: o.base.Scheme, Host: o.base.Host, RawQuery: query, Opaque: path}
	if decoded, err := url.PathUnescape(path); strings.HasPrefix(path, "//") && err == nil {
		u.Opaque, u.Path, u.RawPath = "", decoded, path
	}
	return u
}

// hopByHop reports whether a header belongs to one connection only.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
