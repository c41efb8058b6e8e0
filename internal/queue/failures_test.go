package queue

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// TestFailuresAreRemembered: each failed attempt and each dead letter, with the
// trace of that delivery; nothing that ended well or was handed back.
func TestFailuresAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.tel.Tracer = sdktrace.NewTracerProvider().Tracer("test")
		r.cfg.Receives = 2
		bad := r.put(mainURL, "bad", 0, nil)
		good := r.put(mainURL, "good", 0, nil)
		back := true
		r.start(func(_ context.Context, d *Delivery) Outcome {
			switch {
			case d.Body == "bad":
				return Outcome{Verb: Retry, Detail: "unavailable", Note: "of a key"}
			case back:
				back = false
				return Outcome{Verb: HandBack}
			}
			return copied
		})
		r.until(24*time.Hour, "both are settled", r.deleted(bad, good))
		r.mustStop()
		got := r.tel.Failures()
		want := []telemetry.Failure{
			{Queue: "main", End: "failed", Detail: "unavailable", ID: bad.id, Receives: 2},
			{Queue: "main", Detail: "unavailable", ID: bad.id, Receives: 1},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(telemetry.Failure{}, "Time", "TraceID")); diff != "" {
			t.Fatalf("failures (-want +got):\n%s", diff)
		}
		if !got[0].Time.After(got[1].Time) || len(got[0].TraceID) != 32 || got[0].TraceID == got[1].TraceID || strings.Trim(got[1].TraceID, "0") == "" {
			t.Errorf("times and traces: %+v", got)
		}
		if r.log.lines(`"message":"dead letter"`) != 1 || r.log.lines(`"trace_id":"`+got[0].TraceID) != 1 {
			t.Errorf("the line about the letter does not have its trace:\n%s", r.log)
		}
	})
}
