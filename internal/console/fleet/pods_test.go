package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// pod is a fake admin server.
func pod(t *testing.T, statusz, metrics string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/statusz":
			fmt.Fprint(w, statusz)
		case "/metrics":
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, metrics)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func read(t *testing.T, c Config) *Reading {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r.Read(t.Context())
}

// of is the default configuration with places.
func of(prometheus string, pods ...string) Config {
	c := DefaultConfig()
	c.Prometheus, c.Pods = prometheus, pods
	return c
}

const (
	early = "2026-11-30T10:00:00Z"
	late  = "2026-11-30T12:00:00Z"
)

func hour(t *testing.T, text string) (h telemetry.Hour) {
	t.Helper()
	if err := h.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return h
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPodsAreSummed(t *testing.T) {
	one := pod(t, `{"role":"all","ready":true,"guards":[{"name":"source a","state":"open","since":"`+early+`"},{"name":"source b","state":"closed","since":"`+late+`","reason":"unavailable: http 503"}],
		"share":[{"bucket":"m","hour":"2026-11-30T10Z","s3":3,"miss":1}],
		"failures":[{"time":"`+early+`","queue":"sync","end":"failed","detail":"corrupt","id":"1","receives":8,"trace_id":"t1"}]}`,
		"# TYPE objectferry_ends_total counter\nobjectferry_ends_total{queue=\"sync\",end=\"copied\",detail=\"\"} 2\n"+
			"# TYPE objectferry_last_log_row_timestamp_seconds gauge\nobjectferry_last_log_row_timestamp_seconds{bucket=\"m\"} 1000\n")
	two := pod(t, `{"role":"all","guards":[{"name":"source b","state":"closed","since":"`+early+`","reason":"refused: AccessDenied"},{"name":"source a","state":"slow start","since":"`+late+`"}],
		"share":[{"bucket":"m","hour":"2026-11-30T10Z","s3":4,"miss":2},{"bucket":"m","hour":"2026-11-30T09Z","s3":1,"miss":0}],
		"failures":[{"time":"`+late+`","queue":"sync","end":"","detail":"throttled","id":"2","receives":1}]}`,
		"# TYPE objectferry_ends_total counter\nobjectferry_ends_total{queue=\"sync\",end=\"copied\",detail=\"\"} 5\nobjectferry_ends_total{queue=\"logs\",end=\"parsed\",detail=\"\"} 1\n"+
			"# TYPE objectferry_last_log_row_timestamp_seconds gauge\nobjectferry_last_log_row_timestamp_seconds{bucket=\"m\"} 3000\n")
	r := read(t, of("", one, two))
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"ends", r.Ends.Items, []End{{Queue: "logs", End: "parsed", Total: 1}, {Queue: "sync", End: "copied", Total: 7}}},
		{"guards, the worst first", r.Guards.Items, []Guard{
			{Name: "source b", State: "closed", Reason: "refused: AccessDenied", Since: at(t, early), Closed: 2, Pods: 2},
			{Name: "source a", State: "slow start", Since: at(t, late), Pods: 2}}},
		{"share", r.Share.Items, []telemetry.Answers{{Bucket: "m", Hour: hour(t, "2026-11-30T09Z"), S3: 1}, {Bucket: "m", Hour: hour(t, "2026-11-30T10Z"), S3: 7, Miss: 3}}},
		{"rows", r.Rows.Items, []Row{{Bucket: "m", Newest: time.Unix(3000, 0).UTC()}}},
		{"from", []string{r.Ends.From, r.Guards.From}, []string{"all 2 pods, since each started", "all 2 pods"}},
		{"failures, the newest first", []string{r.Failures.Items[0].ID, r.Failures.Items[1].ID}, []string{"2", "1"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
	if r.Ends.Err != nil || r.Guards.Err != nil {
		t.Errorf("errors: %v, %v", r.Ends.Err, r.Guards.Err)
	}
}

// TestASilentPodIsNeverAZero: the sums say of how many pods they are, and every
// part says which one is missing and why.
func TestASilentPodIsNeverAZero(t *testing.T) {
	fine := pod(t, `{"ready":true}`, "# TYPE objectferry_ends_total counter\nobjectferry_ends_total{queue=\"sync\",end=\"copied\"} 2\n")
	wrong := pod(t, `<html>no page of a pod</html>`, "")
	r := read(t, of("", fine, wrong, "http://127.0.0.1:1"))
	if r.Ends.From != "1 of 3 pods, since it started" || len(r.Ends.Items) != 1 {
		t.Errorf("ends are %+v", r.Ends)
	}
	for what, err := range map[string]error{"ends": r.Ends.Err, "ages": r.Ages.Err, "guards": r.Guards.Err, "share": r.Share.Err, "rows": r.Rows.Err, "failures": r.Failures.Err, "pods": r.Pods.Err} {
		if err == nil || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("of %s is missing: %v", what, err)
		}
	}
	if nobody := read(t, of("", "http://127.0.0.1:1")); nobody.Ends.From != "" || nobody.Ends.Err == nil {
		t.Errorf("of nobody: %+v", nobody.Ends)
	}
	if none := read(t, of("")); none.Ends.Err == nil || none.Pods.Err == nil || none.Failures.Err == nil {
		t.Error("without any place something looks like a zero")
	}
}

// TestAnswersAreBounded in bytes and in time, and no redirect is followed.
func TestAnswersAreBounded(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(redirecting.Close)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	for name, c := range map[string]struct{ url, want string }{
		"too large": {pod(t, `{"version":"`+strings.Repeat("x", 2000)+`"}`, ""), "larger than 1000 bytes"},
		"redirect":  {redirecting.URL, "redirect"},
		"hanging":   {hanging.URL, "exceeded"},
	} {
		config := of("", c.url)
		config.MaxBytes, config.Timeout = 1000, 300*time.Millisecond
		start := time.Now()
		err := read(t, config).Pods.Err
		if err == nil || !strings.Contains(err.Error(), c.want) || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(start))
		}
	}
}

func TestAgesOfReceivedMessages(t *testing.T) {
	bucket := func(queue, le string, n float64) sample {
		return sample{labels: map[string]string{"queue": queue, "le": le}, value: n}
	}
	got := ages([]sample{
		bucket("logs", "1", 2), bucket("logs", "5", 3), bucket("logs", "60", 4), bucket("logs", "+Inf", 4),
		bucket("logs", "1", 1), bucket("logs", "5", 1), bucket("logs", "60", 1), bucket("logs", "+Inf", 1), // another pod
		bucket("sync", "1", 0), bucket("sync", "60", 0), bucket("sync", "+Inf", 2),
		bucket("idle", "1", 0), bucket("idle", "+Inf", 0),
	})
	want := []Age{{Queue: "logs", Received: 5, Oldest: time.Minute}, {Queue: "sync", Received: 2, Oldest: time.Minute, Beyond: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ages (-want +got):\n%s", diff)
	}
}

func TestPlacesAreURLs(t *testing.T) {
	for _, wrong := range []string{"localhost:8080", "ftp://a/", "http://", "://", "/statusz"} {
		if err := of("", wrong).Validate(); err == nil {
			t.Errorf("%q is taken for a pod", wrong)
		}
		if err := of(wrong).Validate(); err == nil {
			t.Errorf("%q is taken for a Prometheus", wrong)
		}
	}
	r, err := New(of("http://reader:secret@prometheus.example.com:9090"))
	if err != nil || strings.Contains(r.From(), "secret") {
		t.Errorf("from %s, %v", r.From(), err)
	}
	if err := r.Read(canceled(t)).Ends.Err; err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestPasswordsAreNotShown: a page shows where its numbers are from.
func TestPasswordsAreNotShown(t *testing.T) {
	fine := strings.Replace(pod(t, `{"failures":[{"id":"1"}]}`, ""), "http://", "http://user:secret@", 1)
	r := read(t, of("", fine, "http://user:secret@127.0.0.1:1"))
	if text := fmt.Sprintf("%+v", r); strings.Contains(text, "secret") || len(r.Failures.Items) != 1 {
		t.Errorf("shown is %s", text)
	}
	for _, raw := range []string{"http://a?token=secret", "http://a#x", "ftp://a", "a:80"} {
		if err := of(raw).Validate(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
