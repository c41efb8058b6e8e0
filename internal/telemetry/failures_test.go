package telemetry

import (
	"context"
	"strconv"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestTheLatestFailuresAreKept(t *testing.T) {
	tel := Nop()
	sc := Extract(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	for i := range 60 {
		ctx := context.Background()
		if i == 59 {
			ctx = trace.ContextWithSpanContext(ctx, sc)
		}
		tel.Failed(ctx, Failure{Queue: "sync", End: "failed", Detail: "corrupt", ID: strconv.Itoa(i), Receives: 8})
	}
	got := tel.Failures()
	if len(got) != 50 || got[0].ID != "59" || got[49].ID != "10" || got[0].Time.IsZero() {
		t.Errorf("%d are kept, from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
	if got[0].TraceID != "0af7651916cd43dd8448eb211c80319c" || got[1].TraceID != "" {
		t.Errorf("traces %q and %q", got[0].TraceID, got[1].TraceID)
	}
}
