package console

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// still is a fleet of which nothing is known.
type still struct{}

func (still) Read(context.Context) *fleet.Reading { return &fleet.Reading{} }
func (still) From() string                        { return "a test" }

var errNoAWS = errors.New("no AWS in this test")

// newTest is a console that has nobody to ask; log is what it logs.
func newTest(t *testing.T, change func(*Deps, *Config)) (c *Console, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	d := Deps{Queues: []Queue{{Name: "logs", URL: "https://sqs.example.com/111122223333/q-logs"}, {Name: "sync", URL: "https://sqs.example.com/111122223333/q-sync"}}, Fleet: still{}, Log: zerolog.New(log),
		Depth: func(context.Context, string) (queue.Depth, error) { return queue.Depth{}, errNoAWS },
		Boxes: func(context.Context) ([]*deadletter.Box, error) { return nil, errNoAWS }}
	cfg := DefaultConfig()
	cfg.Who = "tester"
	if change != nil {
		change(&d, &cfg)
	}
	c, err := New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.desk.stop(context.Background()) })
	return c, log
}

func TestRefusals(t *testing.T) {
	c, log := newTest(t, func(_ *Deps, cfg *Config) { cfg.Hosts = []string{"ops.example.com"} })
	form := func(token string) string { return url.Values{"token": {token}}.Encode() }
	for name, q := range map[string]struct {
		method, host, body string
		header             [2]string
		want               int
	}{
		"a page":                            {"GET", "localhost:8090", "", [2]string{}, 200},
		"a page by a forwarded port":        {"GET", "127.0.0.1:1234", "", [2]string{}, 200},
		"a page by IPv6":                    {"GET", "[::1]:8090", "", [2]string{}, 200},
		"a page by a name that was given":   {"GET", "OPS.example.com:8090", "", [2]string{}, 200},
		"a name that resolves to us":        {"GET", "rebound.example.net:8090", "", [2]string{}, 403},
		"a name that begins as ours":        {"GET", "localhost.example.net", "", [2]string{}, 403},
		"no name":                           {"GET", "", "", [2]string{}, 403},
		"our form":                          {"POST", "localhost:8090", form(c.token), [2]string{"Sec-Fetch-Site", "same-origin"}, 303},
		"our form from an older browser":    {"POST", "localhost:8090", form(c.token), [2]string{"Origin", "http://localhost:8090"}, 303},
		"our form from another site":        {"POST", "localhost:8090", form(c.token), [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"our form from another port":        {"POST", "localhost:8090", form(c.token), [2]string{"Sec-Fetch-Site", "same-site"}, 403},
		"our form from a foreign origin":    {"POST", "localhost:8090", form(c.token), [2]string{"Origin", "http://localhost:9999"}, 403},
		"our form from a sandboxed page":    {"POST", "localhost:8090", form(c.token), [2]string{"Origin", "null"}, 403},
		"a form without a token":            {"POST", "localhost:8090", "", [2]string{"Sec-Fetch-Site", "same-origin"}, 403},
		"a form with another token":         {"POST", "localhost:8090", form("guess"), [2]string{"Sec-Fetch-Site", "same-origin"}, 403},
		"a form of a program, with a token": {"POST", "localhost:8090", form(c.token), [2]string{}, 303},
		"a form that is too large":          {"POST", "localhost:8090", form(c.token) + "&x=" + strings.Repeat("x", maxForm), [2]string{}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/"
			if q.method == "POST" {
				path = "/look"
			}
			r := httptest.NewRequest(q.method, path, strings.NewReader(q.body))
			r.Host = q.host
			if q.body != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			if q.header[0] != "" {
				r.Header.Set(q.header[0], q.header[1])
			}
			c.desk.jobs.Wait()
			log.Reset()
			w := httptest.NewRecorder()
			c.Handler().ServeHTTP(w, r)
			if w.Code != q.want {
				t.Errorf("the answer is %d, want %d: %s", w.Code, q.want, w.Body)
			}
			if refused := strings.Contains(log.String(), "request refused"); refused != (q.want == 403) {
				t.Errorf("logged: %s", log)
			}
			for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
				if got := w.Header().Get(name); !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q", name, got)
				}
			}
		})
	}
}

// TestNothingIsDoneByGET: a link or a picture cannot move letters.
func TestNothingIsDoneByGET(t *testing.T) {
	c, _ := newTest(t, nil)
	for _, path := range []string{"/look", "/plans", "/static/", "/web/templates/plan.html", "/static/../templates/plan.html"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusOK || w.Code == http.StatusSeeOther {
			t.Errorf("GET %s gives %d", path, w.Code)
		}
	}
	if busy, _, last := c.desk.now(); busy != "" || last != nil {
		t.Error("something was begun")
	}
}

func TestTraceURLNeedsAPlaceForTheID(t *testing.T) {
	for pattern, good := range map[string]bool{"": true, "https://apm.example.com/t/{trace_id}": true, "https://apm.example.com/t": false,
		"javascript:alert({trace_id})": false, "/t/{trace_id}": false} {
		if _, err := newPages(pattern); (err == nil) != good {
			t.Errorf("%q gives %v", pattern, err)
		}
	}
	if got := traceLink("https://apm.example.com/t/{trace_id}", "a/../b?c"); got != "https://apm.example.com/t/a%2F..%2Fb%3Fc" {
		t.Errorf("the link is %s", got)
	}
}

// TestASlowPageTakesNoTimeFromLetters: at a stop what is under way ends at once.
func TestASlowPageTakesNoTimeFromLetters(t *testing.T) {
	f := patient{&atomic.Int32{}, make(chan struct{})}
	c, _ := newTest(t, func(d *Deps, _ *Config) { d.Fleet = f })
	ended := make(chan struct{})
	if err := c.desk.begin("a test", func(ctx context.Context) { <-ctx.Done(); close(ended) }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, l) }()
	go func() {
		if resp, err := http.Get("http://" + l.Addr().String()); err == nil {
			resp.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	for f.reads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	select {
	case <-ended:
	case <-time.After(drainFor / 2):
		t.Error("what was under way waits for the page")
	}
	close(f.may)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
