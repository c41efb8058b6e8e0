package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// failuresKept is how many of the latest failures are remembered.
const failuresKept = 50

// Failure is a delivery that was not settled well: a dead letter, or, without an
// end, one that is tried again. It has no key.
type Failure struct {
	Time     time.Time `json:"time"`
	Queue    string    `json:"queue"`
	End      string    `json:"end"`
	Detail   string    `json:"detail"`
	ID       string    `json:"id"` // of the message
	Receives int       `json:"receives"`
	TraceID  string    `json:"trace_id,omitempty"`
}

// failures are the latest ones, the oldest first.
type failures struct {
	mu     sync.Mutex
	latest []Failure
}

// Failed remembers a failure; its time and its trace are added.
func (t *Telemetry) Failed(ctx context.Context, f Failure) {
	f.Time = time.Now().UTC()
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		f.TraceID = sc.TraceID().String()
	}
	t.failures.mu.Lock()
	defer t.failures.mu.Unlock()
	if len(t.failures.latest) == failuresKept {
		t.failures.latest = slices.Delete(t.failures.latest, 0, 1)
	}
	t.failures.latest = append(t.failures.latest, f)
}

// Failures are the latest failures, the newest first.
func (t *Telemetry) Failures() []Failure {
	t.failures.mu.Lock()
	defer t.failures.mu.Unlock()
	list := slices.Clone(t.failures.latest)
	slices.Reverse(list)
	return list
}
