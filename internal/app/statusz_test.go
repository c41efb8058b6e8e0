package app

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// TestStatuszShowsShareAndFailures: the console draws both from it, without
// Prometheus.
func TestStatuszShowsShareAndFailures(t *testing.T) {
	a := fakeApp(t, &fakeSQS{}, 1, idle)
	answers := telemetry.Answers{Bucket: "overseas-media", Hour: telemetry.HourOf(time.Now()), S3: 9, Miss: 1}
	a.tel.LogRequests(answers)
	a.tel.Failed(t.Context(), telemetry.Failure{Queue: "sync", End: "failed", Detail: "corrupt", ID: "m1", Receives: 8})
	_, page := get(a, "/statusz")
	var got Statusz
	if err := json.Unmarshal([]byte(page), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]telemetry.Answers{answers}, got.Share); diff != "" {
		t.Errorf("share (-want +got):\n%s", diff)
	}
	if len(got.Failures) != 1 || got.Failures[0].ID != "m1" || got.Failures[0].Detail != "corrupt" {
		t.Errorf("failures %+v", got.Failures)
	}
}
