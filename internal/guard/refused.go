package guard

import (
	"context"
	"errors"

	"github.com/objectferry/objectferry/internal/object"
)

// Refused says whether a refusal is about one object or about the whole
// dependency. Call it for a call that ended Denied, with that error as cause. The
// reference is a call that was let through before; it is put once for all who
// were refused before it began.
//
//   - nil: the reference was let through after the refusal, so this object is
//     refused alone.
//   - An error that wraps ErrClosed: the reference is refused too (or is nil), so
//     the gate is closed and the reference is what is asked until it passes; or
//     the gate is closed for another reason.
//   - Any other error: not known, and worth another try.
//
// A gate that is closed already because of a refusal takes the reference over.
func (g *Guard) Refused(ctx context.Context, cause error, reference func(context.Context) error) error {
	op := opOf(cause)
	asks, v := g.probe, verdictOf(g.refusal(op, cause))
	if reference != nil {
		asks = func(ctx context.Context) error {
			err := reference(ctx)
			if object.ClassOf(err) == object.Denied {
				return g.refusal(op, err)
			}
			return err
		}
		var err error
		v, err = g.reference(op).ask(ctx, func(ctx context.Context) verdict { return g.send(ctx, asks) })
		if err == nil && object.ClassOf(v.err) == object.Unavailable {
			err = g.suspect(ctx)
		}
		if err != nil {
			return g.canceled(op, err)
		}
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case v.result == refused:
		if g.breaker.open() && reference != nil {
			g.asks = asks
		}
		g.shut(v.reason, asks)
		return g.closedError(op, cause)
	case g.breaker.open():
		return g.closedError(op, cause)
	case v.result == alive && v.reason == "":
		return nil
	default:
		return v.err
	}
}

// reference returns the flight of one kind of reference; there are as many kinds
// as operations that can be refused.
func (g *Guard) reference(op string) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.references[op]
	if f == nil {
		f = newFlight(0)
		g.references[op] = f
	}
	return f
}

// refusal says that the whole dependency refuses us, with the code of cause.
func (g *Guard) refusal(op string, cause error) error {
	return &object.Error{Side: g.cfg.Side, Op: op, Class: object.Refused, Code: object.CodeOf(cause), Err: cause}
}

// opOf returns the vendor's name of the operation that ended with err.
func opOf(err error) string {
	var e *object.Error
	if errors.As(err, &e) {
		return e.Op
	}
	return ""
}
