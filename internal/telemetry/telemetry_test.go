package telemetry

import (
	"bytes"
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
)

var update = flag.Bool("update", false, "write the golden file anew")

// quiet takes away what the machine's own environment says of OpenTelemetry.
func quiet(t *testing.T) {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
}

// TestMetricNames: dashboards and alerts rest on these names and labels.
func TestMetricNames(t *testing.T) {
	quiet(t)
	tel, err := New(t.Context(), Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(t.Context())
	tel.Rows("b", "miss", "NoSuchKey", 1)
	tel.Miss("b", "NoSuchKey")
	tel.End("sync", "copied", "")
	tel.SQSCall("sync", "ReceiveMessage", "ok")
	tel.GuardCall("source x", "GetObject", "ok", time.Second)
	tel.Probe("source x", "alive")
	tel.Copied("b", 1)
	tel.CopyTime("b", time.Second)
	tel.Heal("b", time.Second)
	tel.Unverified("b")
	tel.LeaseLost("sync")
	tel.ReceiveAge("sync", time.Second)
	tel.Waiting("sync", "visible", 1)
	tel.Held("sync", 1)
	tel.LastReceive("sync", time.Now())
	tel.LastRow("b", time.Now())
	tel.GuardState("source x", "open", []string{"open"})
	tel.GuardClosed("source x", "refused", true)
	tel.GuardLimit("source x", 1)
	tel.MemoryReserved(1)
	tel.LogRequests(Answers{Bucket: "b", Hour: HourOf(time.Now()), S3: 1})

	page := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	var names []string
	value := regexp.MustCompile(`="[^"]*"`)
	for line := range strings.Lines(page.Body.String()) {
		if name, ok := strings.CutPrefix(line, "objectferry_"); ok {
			name = value.ReplaceAllString(name[:strings.LastIndexByte(name, ' ')], "")
			names = append(names, "objectferry_"+name)
		}
	}
	slices.Sort(names)
	got := strings.Join(slices.Compact(names), "\n") + "\n"
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("metrics have changed; if that is meant, run with -update and mend the dashboards (-want +got):\n%s", diff)
	}
}

func TestNothingIsExportedUnlessAskedFor(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1"}, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false},
		{map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false},
		{map[string]string{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
	} {
		for name, v := range c.env {
			t.Setenv(name, v)
		}
		tel, err := New(t.Context(), Config{Service: "test"})
		if err != nil {
			t.Fatal(err)
		}
		_, span := tel.Tracer.Start(t.Context(), "x")
		if got := span.IsRecording(); got != c.want || tel.Tracing() != c.want {
			t.Errorf("with %v spans are recorded: %v, Tracing says %v; want %v", c.env, got, tel.Tracing(), c.want)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel() // there is nobody to send to
		_ = tel.Shutdown(gone)
		for name := range c.env {
			os.Unsetenv(name)
		}
	}
}

func TestContextTravelsInMessageAttributes(t *testing.T) {
	if got := Inject(t.Context()); got != nil {
		t.Errorf("a context without a span gives %v", got)
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	sc := Extract(map[string]string{"traceparent": parent})
	if !sc.IsValid() {
		t.Fatal("traceparent is not read")
	}
	got := Inject(trace.ContextWithSpanContext(t.Context(), sc))
	if diff := cmp.Diff(map[string]string{"traceparent": parent}, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if Extract(map[string]string{"traceparent": "nonsense"}).IsValid() {
		t.Error("nonsense is a span context")
	}
}

func TestLogLinesHaveTraceIDs(t *testing.T) {
	quiet(t)
	var out bytes.Buffer
	tel, err := New(t.Context(), Config{Service: "test", Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	sc := Extract(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	tel.Log.Info().Ctx(trace.ContextWithSpanContext(t.Context(), sc)).Msg("x")
	if !strings.Contains(out.String(), `"trace_id":"0af7651916cd43dd8448eb211c80319c"`) {
		t.Errorf("the line is %s", out.String())
	}
	if _, err := New(t.Context(), Config{Level: "loud"}); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("an unknown level gives %v", err)
	}
}

// Logs come out of order: the alert about missing logs rests on the newest row.
func TestLastRowNeverGoesBack(t *testing.T) {
	quiet(t)
	tel, err := New(t.Context(), Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(t.Context())
	tel.LastRow("b", time.Unix(2000, 0))
	tel.LastRow("b", time.Unix(1000, 0))
	page := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if want := `objectferry_last_log_row_timestamp_seconds{bucket="b"} 2000`; !strings.Contains(page.Body.String(), want) {
		t.Errorf("metrics have no line %s", want)
	}
}
