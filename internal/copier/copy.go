package copier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Handle carries the object that a delivery asks for; it is a queue.Handler.
func (c *Copier) Handle(ctx context.Context, d *queue.Delivery) queue.Outcome {
	req, err := syncrequest.Decode(d.Body)
	switch {
	case errors.Is(err, syncrequest.ErrNewer):
		return unrouted(d, err)
	case err != nil:
		return buried(err)
	}
	l, ok := c.lanes[req.Bucket]
	if !ok {
		return unrouted(d, fmt.Errorf("no route for bucket %q", req.Bucket))
	}

	ctx, span := c.tel.Tracer.Start(ctx, telemetry.SpanCopy, trace.WithAttributes(
		semconv.AWSS3Bucket(req.Bucket),
		semconv.AWSS3Key(strings.ToValidUTF8(req.Key, "\uFFFD"))))
	defer span.End()
	out := c.answer(ctx, l, req)
	span.SetAttributes(attribute.String(telemetry.AttrEnd, out.End), attribute.String(telemetry.AttrDetail, out.Detail))
	return out
}

// answer settles what needs no copy and shares what another delivery copies.
func (c *Copier) answer(ctx context.Context, l *lane, req syncrequest.Request) queue.Outcome {
	switch {
	case !l.Route.Carries(req.Key):
		return settled(result{End: object.EndFiltered})
	case l.Route.Observe():
		return settled(result{End: object.EndFiltered, Detail: object.DetailObserved})
	case len(req.Key) > object.MaxKey:
		return settled(result{End: object.EndUnfit})
	}
	return c.once(ctx, req, func() queue.Outcome {
		began := time.Now()
		r, err := c.carry(ctx, l, req.Key)
		if err == nil && r.End == object.EndDenied {
			// The permission may have come back between the refusal and the
			// reference that passed; then this key passes, too.
			r, err = c.carry(ctx, l, req.Key)
		}
		out := outcome(ctx, r, err)
		if out.Verb != queue.Settle {
			return out
		}
		// Some ends came as an error, so r may have none yet. The end speaks of the
		// time when we began to ask, not of the time when the last answer came.
		r.End, r.Detail = object.End(out.End), object.Detail(out.Detail)
		c.ends.Put(req.Bucket, req.Key, r, began)
		if r.End == object.EndCopied {
			c.measure(ctx, req, r, began)
		}
		return out
	})
}

// carry is the way of one object: look at the destination, read the source, write
// the destination. An error of class Denied has been judged when it returns.
func (c *Copier) carry(ctx context.Context, l *lane, key string) (result, error) {
	r, err := c.look(ctx, l, key, "")
	if err != nil || r.End != "" {
		return r, err
	}
	r, err = c.transfer(ctx, l, key)
	if object.ClassOf(err) == object.Changed {
		// It was replaced while we read. The new version may well hold still.
		r, err = c.transfer(ctx, l, key)
	}
	if object.ClassOf(err) == object.Denied {
		return c.refused(ctx, l, key, err)
	}
	return r, err
}

// transfer copies the version of the object that the source has now. All reads
// are pinned to the first one's answer.
func (c *Copier) transfer(ctx context.Context, l *lane, key string) (result, error) {
	first, err := c.open(ctx, l, key)
	if err != nil {
		return result{}, err
	}
	defer first.close()
	l.lastRead.Store(&key)

	switch p := newProvenance(first.Attributes); {
	case first.Size > c.cfg.MaxSize:
		return result{End: object.EndUnfit, size: first.Size}, nil
	case first.whole():
		return c.putWhole(ctx, l, key, first, p)
	default:
		return c.putParts(ctx, l, key, first, p)
	}
}

// measure tells of an object that was copied.
func (c *Copier) measure(ctx context.Context, req syncrequest.Request, r result, began time.Time) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int64(telemetry.AttrSize, r.size))
	c.tel.Copied(req.Bucket, r.size)
	c.tel.CopyTime(req.Bucket, time.Since(began))
	c.tel.Heal(req.Bucket, time.Since(req.Seen))
	if r.unverified {
		c.tel.Unverified(req.Bucket)
	}
}
