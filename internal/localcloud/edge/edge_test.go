package edge

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// origins answers for both origins, without a network.
type origins struct {
	s3, cos func(*http.Request) (*http.Response, error)
	asked   []string // "s3 GET target"
	last    *http.Request
}

func (o *origins) RoundTrip(r *http.Request) (*http.Response, error) {
	name, _, _ := strings.Cut(r.URL.Host, ".")
	o.asked = append(o.asked, name+" "+r.Method+" "+r.URL.RequestURI())
	o.last = r
	if name == "s3" {
		return o.s3(r)
	}
	return o.cos(r)
}

// says answers with a status, a body and header pairs.
func says(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)),
			ContentLength: int64(len(body)), Request: r}, nil
	}
}

func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// timeout is an error of an origin that was too slow.
type timeout struct{}

func (timeout) Error() string { return "too slow" }
func (timeout) Timeout() bool { return true }

// newEdge is the plain fallback, with something changed.
func newEdge(t *testing.T, o *origins, change func(*Distribution)) *Edge {
	t.Helper()
	d := Fallback("http://s3.test", "http://cos.test")
	if change != nil {
		change(&d)
	}
	e, err := New(&http.Client{Transport: o}, Config{Distribution: d})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func visit(e *Edge, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.RequestURI = target
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestFailover(t *testing.T) {
	refused := errors.New("connection refused")
	for _, tc := range []struct {
		name, method string
		failover     []int
		s3, cos      func(*http.Request) (*http.Response, error)
		status       int
		origin       string
		asked        int
		want         Counts
	}{
		{"hit", "GET", nil, says(200, "s"), nil, 200, S3, 1, Counts{S3: 1}},
		{"404", "GET", nil, says(404, ""), says(200, "c"), 200, COS, 2, Counts{COS: 1}},
		{"403", "HEAD", nil, says(403, ""), says(200, ""), 200, COS, 2, Counts{COS: 1}},
		{"OPTIONS", "OPTIONS", nil, says(403, ""), says(200, ""), 200, COS, 2, Counts{COS: 1}},
		{"500 by default does not", "GET", nil, says(500, ""), nil, 500, S3, 1, Counts{Errors: 1}},
		{"500 where configured", "GET", []int{404, 500}, says(500, ""), says(200, "c"), 200, COS, 2, Counts{COS: 1}},
		{"403 where not configured", "GET", []int{404, 500}, says(403, ""), nil, 403, S3, 1, Counts{Errors: 1}},
		{"no answer", "GET", nil, fails(refused), says(200, "c"), 200, COS, 2, Counts{COS: 1}},
		{"nobody has it", "GET", nil, says(404, ""), says(404, ""), 404, COS, 2, Counts{Errors: 1}},
		{"nobody answers", "GET", nil, fails(refused), fails(refused), 502, COS, 2, Counts{Errors: 1}},
		{"nobody in time", "GET", nil, fails(timeout{}), fails(timeout{}), 504, COS, 2, Counts{Errors: 1}},
		{"a write does not", "PUT", nil, says(403, ""), nil, 403, S3, 1, Counts{Errors: 1}},
		{"a write does not, without an answer", "POST", nil, fails(refused), nil, 502, S3, 1, Counts{Errors: 1}},
		{"a redirect is passed on", "GET", nil, says(302, "", "Location", "http://cos.test/x"), nil, 302, S3, 1, Counts{S3: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := &origins{s3: tc.s3, cos: tc.cos}
			e := newEdge(t, o, func(d *Distribution) {
				if tc.failover != nil {
					d.Behaviours[0].Failover = tc.failover
				}
			})
			w := visit(e, tc.method, "/k")
			if w.Code != tc.status || w.Header().Get("X-Origin") != tc.origin || len(o.asked) != tc.asked {
				t.Errorf("%d from %q, asked %q", w.Code, w.Header().Get("X-Origin"), o.asked)
			}
			if diff := cmp.Diff(tc.want, e.Counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// What the visitor typed is what both origins read, over a real connection.
func TestThePathIsPassedExactly(t *testing.T) {
	var got []string
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer origin.Close()
	for _, base := range []string{"", "/bucket"} {
		transport := &http.Transport{}
		e, err := New(&http.Client{Transport: transport}, Config{Distribution: Fallback(origin.URL+base, origin.URL)})
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{
			"/", "/a", "/a%2Fb", "//img.jpg", "///", "/2026/1//1d8c", "/a/../b", "/a+b", "/a%20b", "/100%25.txt", "/x%5B1%5D", "/x[1]",
			"/%E6%B5%8B", "/a%2520b", "/%2F", "/k?imageMogr2/thumbnail/!50p&x=%20+", "/k?", "/a%0Ab", "/%ff", "/:x", "/a;b",
		} {
			got = nil
			visit(e, "GET", target)
			want := []string{base + target, target}
			if target == "/k?" { // an empty query is none
				want = []string{base + "/k", "/k"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("base %q, %s (-want +got):\n%s", base, target, diff)
			}
		}
		transport.CloseIdleConnections()
	}
}

func TestHeadersTowardOriginAndVisitor(t *testing.T) {
	o := &origins{s3: says(206, "ab", "Content-Encoding", "gzip", "ETag", `"e"`, "Connection", "close", "X-Amz-Meta-A", "b")}
	e := newEdge(t, o, nil)
	w := visit(e, "GET", "/k", "Range", "bytes=0-1", "If-None-Match", `"x"`, "User-Agent", "browser", "Connection", "keep-alive")
	want := map[string]string{"Range": "bytes=0-1", "If-None-Match": `"x"`, "User-Agent": "Amazon CloudFront",
		"Accept-Encoding": "identity", "Connection": ""}
	for name, value := range want {
		if got := o.last.Header.Get(name); got != value {
			t.Errorf("toward the origin: %s: %q, want %q", name, got, value)
		}
	}
	if o.last.Host != "s3.test" {
		t.Errorf("toward the origin: host %q", o.last.Host)
	}
	for name, value := range map[string]string{"Content-Encoding": "gzip", "ETag": `"e"`, "X-Amz-Meta-A": "b", "Connection": "", "X-Origin": S3} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("toward the visitor: %s: %q, want %q", name, got, value)
		}
	}
	if w.Body.String() != "ab" || w.Code != 206 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestACutBodyIsCutForTheVisitorToo(t *testing.T) {
	o := &origins{s3: func(r *http.Request) (*http.Response, error) {
		resp, err := says(200, "half")(r)
		resp.ContentLength = 8
		resp.Header.Set("Content-Length", "8")
		return resp, err
	}}
	e := newEdge(t, o, keepObjects(time.Hour))
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the connection was not cut")
			}
		}()
		visit(e, "GET", "/k")
	}()
	o.s3 = says(200, "whole")
	if w := visit(e, "GET", "/k"); w.Body.String() != "whole" {
		t.Errorf("the cut answer was kept: %q", w.Body)
	}
}

// keepObjects keeps every whole object for the same time.
func keepObjects(ttl time.Duration) func(*Distribution) {
	return func(d *Distribution) { d.Behaviours[0].TTL = TTL{ttl, ttl, ttl} }
}

func keepErrors(status int) func(*Distribution) {
	return func(d *Distribution) { d.ErrorTTL = map[int]time.Duration{status: 10 * time.Second} }
}

func TestErrorsAndObjectsAreKeptOnlyIfAskedTo(t *testing.T) {
	for _, tc := range []struct {
		name         string
		change       func(*Distribution)
		found        bool
		header       string
		again, later int // requests to origins at the second and third visit
	}{
		{"error, by default", nil, false, "", 2, 2},
		{"object, by default", nil, true, "", 2, 2},
		{"error", keepErrors(404), false, "", 0, 2},
		{"object beside error", keepErrors(404), true, "", 2, 2},
		{"object", keepObjects(10 * time.Second), true, "", 0, 2},
		{"error beside object", keepObjects(10 * time.Second), false, "", 2, 2},
		{"a range is not", keepObjects(10 * time.Second), true, "bytes=0-1", 2, 2},
		{"another error", keepErrors(403), false, "", 2, 2},
		{"an error of a range", keepErrors(404), false, "bytes=0-1", 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &origins{s3: says(404, ""), cos: says(404, "none")}
				if tc.found {
					o.cos = says(200, "body", "Content-Type", "a/b")
				}
				e := newEdge(t, o, tc.change)
				ask := func() (*httptest.ResponseRecorder, int) {
					before := len(o.asked)
					w := visit(e, "GET", "/k", "Range", tc.header)
					return w, len(o.asked) - before
				}
				first, _ := ask()
				time.Sleep(9 * time.Second)
				second, again := ask()
				time.Sleep(2 * time.Second)
				_, later := ask()
				if again != tc.again || later != tc.later {
					t.Errorf("origins asked %d and %d times, want %d and %d", again, later, tc.again, tc.later)
				}
				if first.Code != second.Code || first.Body.String() != second.Body.String() ||
					!cmp.Equal(first.Header(), second.Header()) {
					t.Errorf("the kept answer differs: %v %v", first, second)
				}
			})
		})
	}
}

func TestAKeptObjectDoesNotAnswerForARange(t *testing.T) {
	o := &origins{s3: says(200, "whole")}
	e := newEdge(t, o, keepObjects(time.Hour))
	visit(e, "GET", "/k")
	o.s3 = says(206, "wh")
	for _, header := range []string{"Range", "If-None-Match", "If-Modified-Since"} {
		if w := visit(e, "GET", "/k", header, "x"); w.Body.String() != "wh" {
			t.Errorf("%s: %q", header, w.Body)
		}
	}
	if w := visit(e, "GET", "/k"); w.Body.String() != "whole" || e.Counts().Cached != 1 {
		t.Errorf("%q, %+v", w.Body, e.Counts())
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	o := &origins{s3: says(200, strings.Repeat("x", maxBytes+1))}
	e := newEdge(t, o, keepObjects(time.Hour))
	visit(e, "GET", "/big")
	if w := visit(e, "GET", "/big"); len(o.asked) != 2 || w.Body.Len() != maxBytes+1 {
		t.Errorf("asked %d times for a body too big to keep", len(o.asked))
	}
	o.s3 = says(200, "x")
	for i := range maxKept + 10 {
		visit(e, "GET", "/"+url.PathEscape(string(rune('a'+i))))
	}
	if n := len(e.cache.kept); n > maxKept {
		t.Errorf("%d answers kept", n)
	}
}

func TestNewRefusesAnOriginWithoutAHost(t *testing.T) {
	for _, urls := range [][2]string{{"bucket", "http://cos.test"}, {"http://s3.test", ""}} {
		if _, err := New(nil, Config{Distribution: Fallback(urls[0], urls[1])}); err == nil {
			t.Errorf("%q was accepted", urls)
		}
	}
}
