package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// fake answers the queries that it knows with series, and nothing else.
func fake(t *testing.T, answers map[string][]map[string]any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("query")
		result, known := answers[query]
		kind := "vector"
		if r.URL.Path == "/prefix/api/v1/query_range" {
			kind = "matrix"
		} else if r.URL.Path != "/prefix/api/v1/query" {
			http.NotFound(w, r)
			return
		}
		if !known {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"no such query"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
	}))
	t.Cleanup(s.Close)
	return s.URL + "/prefix/"
}

// one is a series of one value.
func one(value string, labels ...string) map[string]any {
	return map[string]any{"metric": metric(labels), "value": []any{1764500000.123, value}}
}

func metric(labels []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	return m
}

func TestPrometheusIsRead(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	over := func(values ...any) []any {
		var list []any
		for i, v := range values {
			list = append(list, []any{now.Add(time.Duration(i-len(values)+1) * time.Minute).Unix(), v})
		}
		return list
	}
	r := read(t, of(fake(t, map[string][]map[string]any{
		endsQuery:     {one("7", "queue", "sync", "end", "copied"), one("3", "queue", "sync", "end", "failed", "detail", "corrupt")},
		lastHourQuery: {one("2.0001", "queue", "sync", "end", "failed", "detail", "corrupt")},
		agesQuery:     {one("4", "queue", "sync", "le", "5.0"), one("4", "queue", "sync", "le", "+Inf")},
		rowsQuery:     {one("1000", "bucket", "m")},
		statesQuery: {one("3", "guard", "source a", "state", "open"), one("0", "guard", "source a", "state", "closed"),
			one("1", "guard", "source b", "state", "open"), one("2", "guard", "source b", "state", "closed"), one("1", "guard", "source c", "state", "closed")},
		closedQuery: {one("2", "guard", "source b", "reason", "unavailable"), one("1", "guard", "source c", "reason", "refused")},
		sinceQuery: {{"metric": metric([]string{"guard", "source b"}), "values": over("1", "0", "1", "1")},
			{"metric": metric([]string{"guard", "source c"}), "values": over("1", "1", "1")}},
		shareQuery: {one("9", "bucket", "m", "hour", "2026-11-30T10Z", "answer", "s3"), one("1", "bucket", "m", "hour", "2026-11-30T10Z", "answer", "miss"),
			one("0", "bucket", "m", "hour", "2026-11-30T11Z", "answer", "s3"), one("5", "bucket", "m", "hour", "never", "answer", "s3")},
	})))
	for _, c := range []struct {
		what      string
		got, want any
		err       error
	}{
		{"ends", r.Ends.Items, []End{{Queue: "sync", End: "copied", Total: 7}, {Queue: "sync", End: "failed", Detail: "corrupt", Total: 3, LastHour: 2}}, r.Ends.Err},
		{"ages", r.Ages.Items, []Age{{Queue: "sync", Received: 4, Oldest: 5 * time.Second}}, r.Ages.Err},
		{"rows", r.Rows.Items, []Row{{Bucket: "m", Newest: time.Unix(1000, 0).UTC()}}, r.Rows.Err},
		{"guards", r.Guards.Items, []Guard{
			{Name: "source b", State: "closed", Reason: "unavailable", Since: now.Add(-time.Minute).UTC(), Closed: 2, Pods: 3},
			{Name: "source c", State: "closed", Reason: "refused", Since: now.Add(-2 * time.Minute).UTC(), AtLeast: true, Closed: 1, Pods: 1},
			{Name: "source a", State: "open", Pods: 3}}, r.Guards.Err},
		{"share", r.Share.Items, []telemetry.Answers{{Bucket: "m", Hour: hour(t, "2026-11-30T10Z"), S3: 9, Miss: 1}}, r.Share.Err},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" || c.err != nil {
			t.Errorf("%s, error %v (-want +got):\n%s", c.what, c.err, diff)
		}
	}
	if r.Failures.Err == nil || r.Ends.From != "Prometheus, since each pod started" || !r.Hourly {
		t.Errorf("failures %v, ends from %q, hourly %v", r.Failures.Err, r.Ends.From, r.Hourly)
	}
}

// TestPrometheusTroubleIsTold of the part that it concerns.
func TestPrometheusTroubleIsTold(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in</html>") }))
	t.Cleanup(page.Close)
	odd := fake(t, map[string][]map[string]any{endsQuery: {{"metric": map[string]string{}, "value": []any{"soon", 3}}}})
	for name, c := range map[string]struct{ url, want string }{
		"refused query":        {fake(t, nil), "Prometheus refuses the query: no such query"},
		"not its API":          {page.URL, "not one of its API"},
		"nobody":               {"http://127.0.0.1:1", "http://127.0.0.1:1/api/v1/query: "},
		"a value that is none": {odd, "not one of its API"},
	} {
		err := read(t, of(c.url)).Ends.Err
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sum") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPodsTellWhatPrometheusDoesNotKnow when both are configured.
func TestPodsTellWhatPrometheusDoesNotKnow(t *testing.T) {
	url := pod(t, `{"ready":true,"failures":[{"id":"1","trace_id":"t"}]}`, "# TYPE objectferry_ends_total counter\nobjectferry_ends_total{queue=\"sync\",end=\"copied\"} 1\n")
	r := read(t, of(fake(t, map[string][]map[string]any{endsQuery: {one("9", "queue", "sync", "end", "copied")}, lastHourQuery: {}}), url))
	if len(r.Failures.Items) != 1 || r.Failures.Items[0].TraceID != "t" || r.Failures.Items[0].Pod != url || r.Failures.From != "1 pod" {
		t.Errorf("failures are %+v", r.Failures)
	}
	if len(r.Ends.Items) != 1 || r.Ends.Items[0].Total != 9 {
		t.Errorf("ends are %+v, want Prometheus's", r.Ends)
	}
}
