package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// Do runs one read or write of the dependency, from its request to the end of
// its body, once there is a slot for it. op is the vendor's name of the
// operation, bytes how long a body it carries, which bounds the call's own
// deadline (see Expect for a call that does not know yet). call may run several
// times, never at once, and must end when its context does; its errors are
// *object.Error.
//
//   - Unavailable (or past its deadline) and Corrupt calls are tried again, with
//     back-off, up to Attempts times; throttled ones until ctx ends.
//   - Ambiguous is the caller's to settle by looking. It is returned once the
//     dependency was asked, so that the look is held back when that is down.
//   - Every other error is the caller's: it is returned at once.
//   - An error that wraps ErrClosed says that the gate is or was closed: the call
//     was not run, or ended in a way that the dependency is to blame for, and its
//     message goes back unharmed.
//   - When ctx ends, an error of class Canceled.
func (g *Guard) Do(ctx context.Context, op string, bytes int64, call func(context.Context) error) (err error) {
	ctx, span := g.tel.Tracer.Start(ctx, op, trace.WithAttributes(attribute.String(telemetry.AttrGuard, g.cfg.Name)))
	defer func() { endSpan(span, err) }()

	failed, throttled := 0, 0
	for {
		err := g.once(ctx, op, bytes, call)
		var wait time.Duration
		switch class := object.ClassOf(err); class {
		case object.Unavailable:
			failed++
			if err := g.suspect(ctx); err != nil {
				return g.canceled(op, err)
			}
			if g.closed() {
				return g.heldBack(op, err)
			}
			wait = g.backOff(failed)
		case object.Corrupt, object.Unknown:
			if g.closed() { // by what may be a streak of them
				return g.heldBack(op, err)
			}
			if class == object.Unknown {
				return err
			}
			failed++
			wait = g.backOff(failed)
		case object.Ambiguous:
			_ = g.suspect(ctx) // it ends early only when ctx does, which the caller sees
			return err
		case object.Throttled:
			throttled++
			wait = max(g.backOff(throttled), min(retryAfter(err), g.cfg.ProbeMax))
		case object.Refused:
			return g.Refused(ctx, err, nil)
		default:
			return err
		}
		if failed >= g.cfg.Attempts {
			return err
		}
		span.AddEvent("retry", trace.WithAttributes(attribute.String(telemetry.AttrClass, string(object.ClassOf(err)))))
		if held := g.rest(ctx, op, wait, err); held != nil {
			return held
		}
	}
}

// rest waits before a retry, holding nothing, for as long as ctx and gate allow.
func (g *Guard) rest(ctx context.Context, op string, d time.Duration, cause error) error {
	g.mu.Lock()
	shutting := g.shutting
	g.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-shutting:
		return g.heldBack(op, cause)
	case <-ctx.Done():
		return g.canceled(op, cause)
	}
}

// once runs call within a slot and its deadline.
func (g *Guard) once(ctx context.Context, op string, bytes int64, call func(context.Context) error) error {
	slot, err := g.acquire(ctx, op)
	if err != nil {
		return err
	}
	class := object.Canceled // should the call panic
	defer func() { g.release(slot, class) }()

	err, passed := g.breaker.pass(func() error {
		inner, end := g.bound(ctx, bytes)
		defer end()
		return g.blame(ctx, inner, op, call(inner))
	})
	if !passed {
		return g.heldBack(op, nil)
	}
	class = object.ClassOf(err)
	g.tel.GuardCall(g.cfg.Name, op, word(class), time.Since(slot.start))
	g.tally(op, err)
	return err
}

// bound gives a call its deadline, which Expect may set anew.
func (g *Guard) bound(ctx context.Context, bytes int64) (inner context.Context, end func()) {
	inner, cancel := context.WithCancelCause(ctx)
	allow := func(bytes int64) time.Duration {
		return g.cfg.Timeout + time.Duration(float64(bytes)/float64(g.cfg.MinRate)*float64(time.Second))
	}
	timer := time.AfterFunc(allow(bytes), func() { cancel(context.DeadlineExceeded) })
	inner = context.WithValue(inner, expectKey{}, func(bytes int64) {
		if timer.Stop() {
			timer.Reset(allow(bytes))
		}
	})
	return inner, func() { timer.Stop(); cancel(context.Canceled) }
}

type expectKey struct{}

// Expect is for a call that learns only from its answer how many bytes will
// follow: its deadline is counted anew from now. Without it, a call that may
// bring a large part would have to be given that part's time even to begin to
// answer. ctx is the one that Do gave the call.
func Expect(ctx context.Context, bytes int64) {
	if expect, ok := ctx.Value(expectKey{}).(func(int64)); ok {
		expect(bytes)
	}
}

// blame says whose doing it was that a call did not come to an answer: ours when
// ctx ended, the dependency's when the call's own deadline passed.
func (g *Guard) blame(ctx, inner context.Context, op string, err error) error {
	class := object.ClassOf(err)
	switch {
	case err == nil, authentic(class), class == object.Ambiguous, class == object.Mangled:
		return err
	case ctx.Err() != nil:
		return g.canceled(op, err)
	case inner.Err() != nil && class != object.Unavailable:
		return &object.Error{Side: g.cfg.Side, Op: op, Class: object.Unavailable, Code: "deadline", Err: err}
	default:
		return err
	}
}

// acquire waits for a slot.
func (g *Guard) acquire(ctx context.Context, op string) (slot, error) {
	if err := ctx.Err(); err != nil {
		return slot{}, g.canceled(op, err)
	}
	g.mu.Lock()
	if g.breaker.open() {
		defer g.mu.Unlock()
		return slot{}, g.closedError(op, nil)
	}
	w := g.limiter.wait()
	g.limiter.grant(time.Now(), g.due)
	g.mu.Unlock()

	select {
	case <-w.ready:
	case <-ctx.Done():
		g.mu.Lock()
		left := g.limiter.leave(w)
		g.mu.Unlock()
		if !left {
			g.release(w.slot, object.Canceled)
		}
		return slot{}, g.canceled(op, ctx.Err())
	}
	if !w.granted {
		return slot{}, g.heldBack(op, nil)
	}
	return w.slot, nil
}

// release gives a slot back and lets the limiter learn from the answer.
func (g *Guard) release(s slot, class object.Class) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.breaker.open() {
		switch {
		case class == object.Throttled:
			if g.limiter.throttled(s, now) {
				g.shut(string(object.Throttled), g.probe)
			}
		case g.limiter.slow && (class == object.Denied || class == object.Refused):
			// It is there, but this may be what closes the gate again.
			g.limiter.answered(now)
		case class == "", authentic(class):
			g.limiter.wentWell(s, now)
		}
	}
	g.limiter.done(s)
	g.limiter.grant(now, g.due)
	g.publish()
}

// due is called when a paced call may start.
func (g *Guard) due() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.timer = nil
	g.limiter.grant(time.Now(), g.due)
}

// heldBack is closedError for those who do not hold the mutex.
func (g *Guard) heldBack(op string, cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closedError(op, cause)
}

// canceled is what a call returns when its context ended; cause may be what the
// call itself returned.
func (g *Guard) canceled(op string, cause error) error {
	if object.ClassOf(cause) == object.Canceled {
		return cause
	}
	return &object.Error{Side: g.cfg.Side, Op: op, Class: object.Canceled, Err: cause}
}

// backOff is the jittered time before the n-th retry, n from 1.
func (g *Guard) backOff(n int) time.Duration {
	d := min(g.cfg.ProbeMin/20<<min(n-1, 10), g.cfg.ProbeMin)
	return d/2 + rand.N(d/2+1)
}

func retryAfter(err error) time.Duration {
	var e *object.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// word is a class as metrics and spans show it.
func word(c object.Class) string {
	if c == "" {
		return "ok"
	}
	return string(c)
}

func endSpan(span trace.Span, err error) {
	class := object.ClassOf(err)
	span.SetAttributes(attribute.String(telemetry.AttrClass, word(class)))
	if errors.Is(err, ErrClosed) {
		span.AddEvent("gate closed")
	}
	if err != nil && class != object.Absent {
		span.SetStatus(codes.Error, string(class))
	}
	span.End()
}
