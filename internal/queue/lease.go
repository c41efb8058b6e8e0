package queue

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/trace"
)

// lease is one message while we hold it.
type lease struct {
	delivery   *Delivery
	receipt    *string
	attributes map[string]types.MessageAttributeValue // as they came, for the dead letter
	received   time.Time
	solo       bool              // it is worked on alone, see suspect.go
	out        Outcome           // set once it is being deleted
	span       trace.SpanContext // of the work on it, for the line that tells its end

	// The rest belongs to the heartbeat and its mutex.
	deadline  time.Time // when SQS gives the message to others
	due       time.Time // when to look at it again
	index     int       // in the heap, -1 when it is not there
	cancel    context.CancelCauseFunc
	extending chan struct{} // closed when the extension in flight is answered
	deleting  bool          // the answer to its delete tells more than a failed extension
	tooLong   bool          // its 12 hours are nearly over; it is not extended any more
	dropped   bool          // settled, or being given back: not extended any more
	lost      bool
}

// newLease reads a message; it reports false for one without a receipt, which
// nobody could settle.
func newLease(m types.Message, now time.Time, visibility time.Duration) (*lease, bool) {
	if deref(m.ReceiptHandle) == "" {
		return nil, false
	}
	d := &Delivery{ID: deref(m.MessageId), Body: deref(m.Body), Receives: 1}
	const receives, sent = string(types.MessageSystemAttributeNameApproximateReceiveCount), string(types.MessageSystemAttributeNameSentTimestamp)
	if n, err := strconv.Atoi(m.Attributes[receives]); err == nil && n > 0 {
		d.Receives = n
	}
	if ms, err := strconv.ParseInt(m.Attributes[sent], 10, 64); err == nil {
		d.Sent = time.UnixMilli(ms)
	}
	for name, v := range m.MessageAttributes {
		if deref(v.DataType) == stringType {
			if d.Attributes == nil {
				d.Attributes = make(map[string]string, len(m.MessageAttributes))
			}
			d.Attributes[name] = deref(v.StringValue)
		}
	}
	return &lease{delivery: d, receipt: m.ReceiptHandle, attributes: m.MessageAttributes,
		received: now, deadline: now.Add(visibility), due: now.Add(visibility / 2), index: -1}, true
}

// unload lets go of what only a handler and a dead letter need: leases may pile up
// while SQS takes no acknowledgement, and a body may be 1 MiB. No handler may run.
func (l *lease) unload() {
	l.delivery.Body, l.delivery.Attributes, l.attributes = "", nil, nil
}

// sortedNames gives attributes a fixed order.
func sortedNames(attributes map[string]types.MessageAttributeValue) []string {
	return slices.Sorted(maps.Keys(attributes))
}

// leaseHeap has the lease that is due first at its top.
type leaseHeap []*lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h leaseHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *leaseHeap) Push(x any)        { l := x.(*lease); l.index = len(*h); *h = append(*h, l) }
func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h, l.index = old[:len(old)-1], -1
	return l
}
