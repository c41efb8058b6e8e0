package queue

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// dispatch starts what may start, gives back what may not, and invites a receive
// when there is room. It runs after every change and needs mu.
func (c *Consumer) dispatch() {
	if c.draining || c.limit == 0 {
		c.giveBackUnstarted()
	}
	for len(c.pending) > 0 && len(c.running) < c.limit && !c.solo {
		l := c.pending[0]
		c.pending[0] = nil
		c.pending = c.pending[1:]
		c.start(l)
	}
	if len(c.suspects) > 0 && !c.solo && c.limit > 0 && c.alone() {
		l := c.suspects[0]
		c.suspects = c.suspects[1:]
		c.solo = true
		c.start(l)
	}
	c.invite()
	poke(c.progress)
	c.tel.Held(c.cfg.Name, c.held())
}

// start needs mu.
func (c *Consumer) start(l *lease) {
	c.running[l] = struct{}{}
	c.workers.Go(func() { c.work(l) })
}

// giveBackUnstarted returns what waits: at once at a drain, with a back-off when
// the gate has closed. It needs mu.
func (c *Consumer) giveBackUnstarted() {
	waiting := slices.Concat(c.pending, c.suspects)
	c.pending, c.suspects = nil, nil
	backs := make([]ack, len(waiting))
	for i, l := range waiting {
		l.solo = false
		l.unload()
		backs[i] = ack{lease: l}
		if !c.draining {
			backs[i].seconds = seconds(c.backoff(l, HandBack))
		}
	}
	c.unsettled += len(backs)
	c.backs.add(true, backs...)
}

// backoff is how long l stays away. What is handed back stays away until the
// receives in flight are over: the gate has closed since they started, and one of
// them would bring l back, for nothing but its count. It needs mu.
func (c *Consumer) backoff(l *lease, v Verb) time.Duration {
	if v != HandBack {
		return backoff(l.delivery.Receives, c.cfg.BackoffMin, c.cfg.BackoffMax)
	}
	d := backoff(l.delivery.Receives, c.cfg.BackoffMin, max(c.cfg.BackoffMax, handBackMax))
	if c.polls > 0 {
		d = max(d, time.Until(c.pollsEnd)+pollMargin)
	}
	return d
}

// giveBack returns a lease that was worked on; it needs mu.
func (c *Consumer) giveBack(l *lease, after time.Duration) {
	c.unsettled++
	c.backs.add(l.solo || c.draining, ack{l, seconds(after)})
}

// work owns one delivery from its start to the hand-over to the acknowledgers.
func (c *Consumer) work(l *lease) {
	ctx, cancel := context.WithCancelCause(c.workCtx)
	defer cancel(nil)
	c.beat.begin(l, cancel)
	if l.solo {
		defer time.AfterFunc(suspectAlone, func() { c.acquit(l) }).Stop()
	}
	ctx, span := c.span(ctx, l)
	defer span.End()
	l.span = span.SpanContext()
	out := Outcome{Verb: HandBack}
	if ctx.Err() == nil {
		out = c.call(ctx, l)
	}
	out = c.judge(ctx, l, out)
	span.SetAttributes(attribute.String(telemetry.AttrEnd, out.End), attribute.String(telemetry.AttrDetail, out.Detail))
	if out.Verb == Retry || out.Verb == Bury {
		span.SetStatus(codes.Error, out.Detail)
	}
	if out.Verb == Bury && !c.bury(ctx, l, out) {
		out.Verb, out.End = Retry, ""
	}
	if out.Verb == Retry || out.Verb == Bury {
		c.tel.Failed(ctx, telemetry.Failure{Queue: c.cfg.Name, End: out.End, Detail: out.Detail, ID: l.delivery.ID, Receives: l.delivery.Receives})
	}
	c.finish(ctx, l, out)
}

// call runs the handler; a panic of it costs this delivery only.
func (c *Consumer) call(ctx context.Context, l *lease) (out Outcome) {
	defer func() {
		if r := recover(); r != nil {
			// A panic's value may quote the body, unless it is the runtime's own.
			what := fmt.Sprintf("%T", r)
			if err, ok := r.(runtime.Error); ok {
				what = err.Error()
			}
			c.tel.Log.Error().Ctx(ctx).Str("queue", c.cfg.Name).Str("id", l.delivery.ID).
				Str("panic", what).Bytes("stack", debug.Stack()).Msg("handler panicked")
			out = Outcome{Verb: Retry, Detail: string(object.DetailInterrupted)}
		}
	}()
	return c.handle(ctx, l.delivery)
}

// judge makes the handler's word what is done: once its context has ended it
// counts only if it settled, and the own limit of receives makes a dead letter.
func (c *Consumer) judge(ctx context.Context, l *lease, out Outcome) Outcome {
	if ctx.Err() != nil && out.Verb != Settle {
		return Outcome{Verb: HandBack}
	}
	if out.Verb == Retry && l.delivery.Receives >= c.cfg.Receives {
		out.Verb, out.End = Bury, string(object.EndFailed)
	}
	if out.Verb == Bury && out.End == "" {
		out.End = string(object.EndFailed)
	}
	return out
}

// finish frees the slot and has l deleted or given back. A lost lease is no
// longer ours to give back; a delete may still come in time.
func (c *Consumer) finish(ctx context.Context, l *lease, out Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ours := c.running[l]; !ours { // abandoned
		return
	}
	after := c.backoff(l, out.Verb)
	if c.workCtx.Err() != nil { // the drain's doing, not the message's
		after = backoff(1, c.cfg.BackoffMin, c.cfg.BackoffMax)
	}
	delete(c.running, l)
	l.unload()
	switch {
	case out.Verb == Settle || out.Verb == Bury:
		l.out = out
		c.unsettled++
		c.deletes.add(l.solo || c.draining, ack{lease: l})
	case context.Cause(ctx) == ErrLeaseLost:
		c.solo = c.solo && !l.solo
	default:
		c.giveBack(l, after)
	}
	c.dispatch()
}

// settled ends a lease; accepted is whether SQS took its delete or hand-back.
func (c *Consumer) settled(l *lease, accepted bool) {
	c.beat.remove(l)
	if accepted && l.out.Verb != Retry {
		c.tel.End(c.cfg.Name, l.out.End, l.out.Detail)
	}
	if accepted && l.out.Verb == Bury {
		line := c.tel.Log.Warn().Ctx(trace.ContextWithSpanContext(c.last, l.span)).Str("queue", c.cfg.Name).Str("id", l.delivery.ID).
			Str("end", l.out.End).Str("detail", l.out.Detail).Int("receives", l.delivery.Receives)
		if l.out.Note != "" {
			line = line.Str("note", l.out.Note)
		}
		line.Msg("dead letter")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsettled--
	c.solo = c.solo && !l.solo
	c.dispatch()
}

// leaseLost says once that a message is no longer ours.
func (c *Consumer) leaseLost(l *lease, why error) {
	c.tel.LeaseLost(c.cfg.Name)
	c.tel.Log.Warn().Str("queue", c.cfg.Name).Str("id", l.delivery.ID).Err(why).Msg("lease lost")
}

// span is the consumer span of one delivery. It links to the producer's and does
// not continue it: a batch has many parents.
func (c *Consumer) span(ctx context.Context, l *lease) (context.Context, trace.Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		semconv.MessagingSystemAWSSQS, semconv.MessagingDestinationName(Name(c.cfg.URL)),
		semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"),
		semconv.MessagingMessageID(l.delivery.ID), attribute.Int(telemetry.AttrReceives, l.delivery.Receives))}
	if origin := telemetry.Extract(l.delivery.Attributes); origin.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	return c.tel.Tracer.Start(ctx, "process "+c.cfg.Name, options...)
}
