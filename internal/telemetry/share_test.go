package telemetry

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// page is what Prometheus sees of the share, by the start of the line.
func page(tel *Telemetry) []string {
	w := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "objectferry_log_requests_total{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestHoursLeaveTheWindow: an hour is shown for 72 hours and an early clock's one,
// then its series is gone; what comes later still is not counted.
func TestHoursLeaveTheWindow(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		tel, err := New(t.Context(), Config{Service: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer tel.Shutdown(t.Context())
		first := HourOf(time.Now())
		for h := first - 100; h < first+100; h++ {
			tel.LogRequests(Answers{Bucket: "b", Hour: h, S3: 3, Miss: 1})
		}
		got := tel.Share()
		if len(got) != 74 || got[0].Hour != first-72 || got[73].Hour != first+1 {
			t.Errorf("%d hours are counted: %v", len(got), got)
		}
		series := fmt.Sprintf(`{answer="s3",bucket="b",hour=%q} 3`, first)
		for range 72 {
			if all := page(tel); len(all) != 2*74 || !strings.Contains(strings.Join(all, "\n"), series) {
				t.Fatalf("%s: %d series, and %s is not among them", HourOf(time.Now()), len(all), series)
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(time.Hour)
		tel.LogRequests(Answers{Bucket: "b", Hour: first, S3: 3})
		if all := page(tel); len(all) != 2*74 || strings.Contains(strings.Join(all, "\n"), first.String()) {
			t.Errorf("%d series; %s has left the window", len(all), first)
		}
		if got := tel.Share(); len(got) != 1 { // the hour that was ahead
			t.Errorf("the share is still %v", got)
		}
	})
}

// TestAnHourBeginsAtZero: increase() in Prometheus needs the 0 before the first
// request, of both answers; /statusz does without.
func TestAnHourBeginsAtZero(t *testing.T) {
	quiet(t)
	tel, err := New(t.Context(), Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(t.Context())
	if all := page(tel); len(all) != 0 {
		t.Errorf("series of no bucket: %v", all)
	}
	tel.LogRequests(Answers{Bucket: "b", Hour: HourOf(time.Now())})
	for _, line := range page(tel) {
		if !strings.HasSuffix(line, " 0") {
			t.Error(line)
		}
	}
	if n := len(page(tel)); n != 2*74 || len(tel.Share()) != 0 {
		t.Errorf("%d series, share %v", n, tel.Share())
	}
}

// TestNoSeriesIsFolded: the SDK folds what is over a limit of its own into one
// series without labels, which no dashboard would show.
func TestNoSeriesIsFolded(t *testing.T) {
	quiet(t)
	tel, err := New(t.Context(), Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(t.Context())
	for i := range 20 {
		tel.LogRequests(Answers{Bucket: fmt.Sprint(i), Hour: HourOf(time.Now())})
	}
	all := page(tel)
	if len(all) != 20*2*74 || strings.Contains(strings.Join(all, "\n"), "overflow") {
		t.Errorf("%d series of 20 buckets, want %d", len(all), 20*2*74)
	}
}

func TestHourIsRFC3339(t *testing.T) {
	want := Answers{Bucket: "b", Hour: HourOf(time.Date(2026, 11, 30, 14, 59, 59, 0, time.UTC)), S3: 1}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"bucket":"b","hour":"2026-11-30T14Z","s3":1,"miss":0}` {
		t.Errorf("%s, %v", text, err)
	}
	var got Answers
	if err := json.Unmarshal(text, &got); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"hour":"noon"}`), &got); err == nil {
		t.Error("noon is an hour")
	}
}
