package telemetry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Instruments are all the numbers objectferry has. Prometheus sees each under
// objectferry_ with the unit's suffix; docs/RUNBOOK.md says what to do with them.
type Instruments struct {
	rows, misses, ends, calls, guardCalls, probes, bytes, leases, unverified            counter
	age, copyTime, heal, callTime                                                       histogram
	waiting, inFlight, lastReceive, lastRow, guardOpen, guardClosed, guardLimit, memory gauge

	share share // objectferry.log.requests

	rowMu  sync.Mutex // also while the gauge is set, so that it never goes back
	newest map[string]time.Time

	// sets caches attribute sets, which are costly to build. Label values are all
	// from closed sets or the configuration, so it stays small.
	sets sync.Map
}

type (
	counter   struct{ metric.Int64Counter }
	histogram struct{ metric.Float64Histogram }
	gauge     struct{ metric.Float64Gauge }
)

// Buckets, in seconds: from one call, to a day's delay of an access log.
var (
	quick = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	slow  = []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600}
)

func newInstruments(m metric.Meter) (*Instruments, error) {
	i := Instruments{share: share{buckets: map[string]*[hoursKept]Answers{}}, newest: map[string]time.Time{}}
	var firstErr error
	c := func(dst *counter, name, unit, help string) {
		var err error
		if dst.Int64Counter, err = m.Int64Counter("objectferry."+name, metric.WithUnit(unit), metric.WithDescription(help)); err != nil && firstErr == nil {
			firstErr = err
		}
	}
	h := func(dst *histogram, name, help string, buckets []float64) {
		var err error
		if dst.Float64Histogram, err = m.Float64Histogram("objectferry."+name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(buckets...)); err != nil && firstErr == nil {
			firstErr = err
		}
	}
	g := func(dst *gauge, name, unit, help string) {
		var err error
		if dst.Float64Gauge, err = m.Float64Gauge("objectferry."+name, metric.WithUnit(unit), metric.WithDescription(help)); err != nil && firstErr == nil {
			firstErr = err
		}
	}
	c(&i.rows, "rows", "", "Rows of access logs by verdict.")
	c(&i.misses, "misses", "", "Misses found in access logs by cause, before the recent table.")
	c(&i.ends, "ends", "", "Settled deliveries by end and detail.")
	c(&i.calls, "sqs.calls", "", "Calls to SQS by result.")
	c(&i.guardCalls, "guard.calls", "", "Reads and writes of a dependency by class of answer; ok when it was good.")
	c(&i.probes, "guard.probes", "", "Probes of a dependency by what they found.")
	c(&i.bytes, "copied", "By", "Bytes written to the destination.")
	c(&i.leases, "leases.lost", "", "Deliveries whose lease was lost while they were worked on.")
	c(&i.unverified, "unverified", "", "Objects copied that the source has no CRC for.")
	h(&i.age, "receive.age", "Age of a message when it was received.", slow)
	h(&i.copyTime, "copy.duration", "Time from taking up a sync request to its end.", quick)
	h(&i.heal, "heal.duration", "Time from the miss, by the log row, to the object being there.", slow)
	h(&i.callTime, "guard.call.duration", "Time of one read or write of a dependency.", quick)
	g(&i.waiting, "messages.waiting", "", "Messages of a queue by state, as SQS tells (approximate).")
	g(&i.inFlight, "messages.held", "", "Messages this process holds.")
	g(&i.lastReceive, "last_receive.timestamp", "s", "When ReceiveMessage last answered well.")
	g(&i.lastRow, "last_log_row.timestamp", "s", "Time of the newest log row seen of a bucket.")
	g(&i.guardOpen, "guard.state", "", "1 for the state that a dependency's guard is in.")
	g(&i.guardClosed, "guard.closed", "", "1 while a dependency's gate is closed, by why.")
	g(&i.guardLimit, "guard.limit", "", "Reads and writes of a dependency allowed at once.")
	g(&i.memory, "memory.reserved", "By", "Object bytes held.")
	if _, err := m.Int64ObservableCounter("objectferry.log.requests", metric.WithInt64Callback(i.share.observe),
		metric.WithDescription("Reads of a bucket by visitors, by the hour of the log row and by who answered: s3, or nobody there (miss).")); err != nil && firstErr == nil {
		firstErr = err
	}
	if firstErr != nil {
		return nil, fmt.Errorf("create instruments: %w", firstErr)
	}
	return &i, nil
}

// set returns the attributes of a measurement: names and values in turn.
func (i *Instruments) set(kv ...string) metric.MeasurementOption {
	var key [8]string
	copy(key[:], kv)
	if o, ok := i.sets.Load(key); ok {
		return o.(metric.MeasurementOption)
	}
	attrs := make([]attribute.KeyValue, 0, len(kv)/2)
	for n := 0; n < len(kv); n += 2 {
		attrs = append(attrs, attribute.String(kv[n], kv[n+1]))
	}
	o := metric.WithAttributeSet(attribute.NewSet(attrs...))
	i.sets.Store(key, o)
	return o
}

var bg = context.Background()

// Rows counts rows of a bucket's log. bucket must be a routed one or "other".
func (i *Instruments) Rows(bucket, verdict, why string, n int64) {
	i.rows.Add(bg, n, i.set(LabelBucket, bucket, LabelVerdict, verdict, LabelWhy, why))
}

// Miss counts a miss by its cause (NoSuchKey, AccessDenied).
func (i *Instruments) Miss(bucket, cause string) {
	i.misses.Add(bg, 1, i.set(LabelBucket, bucket, LabelCause, cause))
}

// End counts a settled delivery. queue is "logs" or "sync".
func (i *Instruments) End(queue, end, detail string) {
	i.ends.Add(bg, 1, i.set(LabelQueue, queue, LabelEnd, end, LabelDetail, detail))
}

// SQSCall counts a call; result is "ok", "partial" or a class of error.
func (i *Instruments) SQSCall(queue, call, result string) {
	i.calls.Add(bg, 1, i.set(LabelQueue, queue, LabelCall, call, LabelResult, result))
}

// GuardCall counts and times one read or write; class is "ok" or an object.Class.
func (i *Instruments) GuardCall(guard, op, class string, d time.Duration) {
	i.guardCalls.Add(bg, 1, i.set(LabelGuard, guard, LabelOp, op, LabelClass, class))
	i.callTime.Record(bg, d.Seconds(), i.set(LabelGuard, guard, LabelOp, op))
}

// Probe counts a probe; result is "alive", "down" or "refused".
func (i *Instruments) Probe(guard, result string) {
	i.probes.Add(bg, 1, i.set(LabelGuard, guard, LabelResult, result))
}

// Copied counts the bytes and the time of one written object.
func (i *Instruments) Copied(bucket string, bytes int64) {
	i.bytes.Add(bg, bytes, i.set(LabelBucket, bucket))
}

// CopyTime records the time from taking up a request to its end.
func (i *Instruments) CopyTime(bucket string, d time.Duration) {
	i.copyTime.Record(bg, d.Seconds(), i.set(LabelBucket, bucket))
}

// Heal records the time from the miss to the object being there.
func (i *Instruments) Heal(bucket string, d time.Duration) {
	i.heal.Record(bg, d.Seconds(), i.set(LabelBucket, bucket))
}

// Unverified counts an object that was copied without a CRC of the source.
func (i *Instruments) Unverified(bucket string) { i.unverified.Add(bg, 1, i.set(LabelBucket, bucket)) }

// LeaseLost counts a delivery that was taken from us.
func (i *Instruments) LeaseLost(queue string) { i.leases.Add(bg, 1, i.set(LabelQueue, queue)) }

// ReceiveAge records how old a message was when it came.
func (i *Instruments) ReceiveAge(queue string, d time.Duration) {
	i.age.Record(bg, d.Seconds(), i.set(LabelQueue, queue))
}

// Waiting sets a queue's depth; state is "visible", "in_flight" or "delayed".
func (i *Instruments) Waiting(queue, state string, n int64) {
	i.waiting.Record(bg, float64(n), i.set(LabelQueue, queue, LabelState, state))
}

// Held sets how many messages this process holds.
func (i *Instruments) Held(queue string, n int) {
	i.inFlight.Record(bg, float64(n), i.set(LabelQueue, queue))
}

// LastReceive sets when a receive last answered well, empty or not.
func (i *Instruments) LastReceive(queue string, t time.Time) {
	i.lastReceive.Record(bg, float64(t.UnixMilli())/1e3, i.set(LabelQueue, queue))
}

// LastRow tells of the newest row of a log of a routed bucket. Logs come out of
// order, and an older one takes nothing back.
func (i *Instruments) LastRow(bucket string, t time.Time) {
	i.rowMu.Lock()
	defer i.rowMu.Unlock()
	if !t.After(i.newest[bucket]) {
		return
	}
	i.newest[bucket] = t
	i.lastRow.Record(bg, float64(t.Unix()), i.set(LabelBucket, bucket))
}

// GuardState sets 1 for state and 0 for the others.
func (i *Instruments) GuardState(guard, state string, states []string) {
	for _, s := range states {
		v := 0.
		if s == state {
			v = 1
		}
		i.guardOpen.Record(bg, v, i.set(LabelGuard, guard, LabelState, s))
	}
}

// GuardClosed sets why a gate is closed, an object.Class, or that it no longer is.
func (i *Instruments) GuardClosed(guard, reason string, closed bool) {
	v := 0.
	if closed {
		v = 1
	}
	i.guardClosed.Record(bg, v, i.set(LabelGuard, guard, LabelReason, reason))
}

// GuardLimit sets how many calls are allowed at once.
func (i *Instruments) GuardLimit(guard string, n int) {
	i.guardLimit.Record(bg, float64(n), i.set(LabelGuard, guard))
}

// MemoryReserved sets how many object bytes are held.
func (i *Instruments) MemoryReserved(n int64) { i.memory.Record(bg, float64(n)) }
