// Package edge is a small HTTP edge that does what a CloudFront distribution
// does: it asks S3 first and COS when S3 answers 403 or 404, so that a visitor
// is served either way. What it does in detail is a Distribution, which can be
// read from a CloudFormation template.
//
// The visitor's path reaches the origin byte for byte. Only GET, HEAD and
// OPTIONS fail over. The answer says in X-Origin who gave it. TLS and
// compression by the edge itself are left out. Safe for concurrent use.
package edge

import (
	"errors"
	"io"
	"maps"
	"net/http"
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
	Own          = "edge" // it was refused without asking
)

// Config is a distribution and what it needs to run.
type Config struct {
	Distribution
	Now  func() time.Time          // by which answers are kept; default time.Now
	Sign func(*http.Request) error // signs requests to origins that are Signed; needed when there are some
}

// Counts is who answered so far.
type Counts struct {
	S3, COS int64 // answers below 400, fresh ones
	Cached  int64 // answers from the edge's own cache
	Errors  int64 // final answers of 400 and above, and cut bodies
}

// Edge is the edge; serve it as an http.Handler.
type Edge struct {
	client *http.Client
	dist   Distribution
	routes []route // of each behaviour
	sign   func(*http.Request) error
	cache  *cache

	fromS3, fromCOS, cached, errors atomic.Int64
}

// New returns an edge before the distribution's origins. It opens no socket and
// copies client, which may be nil.
func New(client *http.Client, c Config) (*Edge, error) {
	if client == nil {
		client = &http.Client{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e := &Edge{client: &own, dist: c.Distribution, sign: c.Sign, cache: newCache(c.Now)}
	var err error
	e.routes, err = routes(c)
	return e, err
}

// Counts returns the counters.
func (e *Edge) Counts() Counts {
	return Counts{e.fromS3.Load(), e.fromCOS.Load(), e.cached.Load(), e.errors.Load()}
}

// ServeHTTP answers a visitor.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = e.rooted(r)
	to := e.route(r)
	if !slices.Contains(to.Methods, r.Method) {
		e.errors.Add(1)
		w.Header().Set(OriginHeader, Own)
		http.Error(w, "This method is not allowed here.", http.StatusForbidden)
		return
	}
	name := to.name(r)
	if kept, ok := e.cache.get(name, r); ok {
		e.cached.Add(1)
		maps.Copy(w.Header(), kept.header)
		to.Answer.set(w.Header(), r)
		kept.write(w)
		return
	}
	resp, from := e.fetch(r, to)
	defer resp.Body.Close()
	e.count(resp.StatusCode, from)
	maps.DeleteFunc(resp.Header, func(name string, _ []string) bool { return hopByHop(name) })
	resp.Header.Set(OriginHeader, from)
	maps.Copy(w.Header(), resp.Header)
	to.Answer.set(w.Header(), r)
	w.WriteHeader(resp.StatusCode)
	keep := e.cache.record(name, resp, e.lifetime(to.Behaviour, r, resp))
	n, err := io.Copy(io.MultiWriter(w, keep), resp.Body)
	if err != nil || resp.ContentLength > 0 && n < resp.ContentLength && r.Method != http.MethodHead {
		e.errors.Add(1)
		panic(http.ErrAbortHandler) // the visitor must see that the body was cut
	}
	keep.done()
}

func (e *Edge) count(status int, from string) {
	switch {
	case status >= 400:
		e.errors.Add(1)
	case from == S3:
		e.fromS3.Add(1)
	default:
		e.fromCOS.Add(1)
	}
}

// fetch asks the origin and, where the origin group says so, the second one. It
// always returns an answer: a gateway's own error where an origin gave none.
func (e *Edge) fetch(r *http.Request, to *route) (*http.Response, string) {
	primary := to.origins[0]
	resp, err := e.ask(r, to, primary)
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
	if len(to.origins) == 1 || !safe || err == nil && !slices.Contains(to.Failover, resp.StatusCode) {
		return orGateway(resp, err), primary.Name
	}
	if err == nil {
		resp.Body.Close()
	}
	secondary := to.origins[1]
	resp, err = e.ask(r, to, secondary)
	return orGateway(resp, err), secondary.Name
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

// hopByHop reports whether a header belongs to one connection only.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
