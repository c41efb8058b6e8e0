// Package parse turns access-log objects into sync requests: a notification in,
// one request a missed key out. A notification settles only after every miss of
// its logs was accepted by a sync queue. Memory does not depend on the size of a
// log or of a line. A Parser is safe for concurrent use.
package parse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/recent"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/accesslog"
	"github.com/objectferry/objectferry/pkg/s3event"
)

// LogStore is where access logs lie; internal/s3store implements it. All errors
// are *object.Error with Side object.Logs.
type LogStore interface {
	// Read opens one ranged read, cut to what is there; pin is the ETag that must
	// match, "" on the first read. An empty object answers with length 0.
	Read(ctx context.Context, bucket, key string, r object.Range, pin string) (*object.Read, error)
	// Delete removes a log object; one that is gone is no error.
	Delete(ctx context.Context, bucket, key string) error
	// Reference asks for a key that does not exist: nil when S3 says so.
	Reference(ctx context.Context, bucket string) error
}

// Sender accepts sync requests; *queue.Sender implements it.
type Sender interface {
	Send(ctx context.Context, entries []queue.Entry) []error
}

// Guard holds back from one log bucket; *guard.Guard implements it.
type Guard interface {
	Do(ctx context.Context, op string, bytes int64, call func(context.Context) error) error
	Refused(ctx context.Context, cause error, reference func(context.Context) error) error
}

// missingReceives is how often a notification is received before a log object
// that is not there, although logs are kept, makes a dead letter: S3 is
// consistent, so waiting longer brings nothing.
const missingReceives = 3

// Config is what a Parser needs besides what it talks to.
type Config struct {
	Places     []config.Log
	OwnRole    string        // ARN; rows of this role are the ferry's own; "" knows none
	Recent     time.Duration // a key asked for within it is not asked again
	RecentKeys int           // bound of that memory
	SyncQueue  string        // URL of the queue for routes without one of their own
}

// Deps are what a Parser talks to.
type Deps struct {
	Logs    LogStore
	Guards  map[string]Guard  // by log bucket
	Senders map[string]Sender // by sync queue URL
	Routes  *route.Table
	Tel     *telemetry.Telemetry
}

// Parser handles the deliveries of the logs queue.
type Parser struct {
	Deps
	cfg    Config
	own    accesslog.Role
	recent *recent.Table[struct{}]
}

// New wires a Parser; it opens nothing.
func New(deps Deps, cfg Config) (*Parser, error) {
	var problems []error
	for _, place := range cfg.Places {
		if deps.Guards[place.Bucket] == nil {
			problems = append(problems, fmt.Errorf("log bucket %q has no guard", place.Bucket))
		}
	}
	for _, r := range deps.Routes.Routes() {
		if url := r.QueueURL(cfg.SyncQueue); !r.Observe() && deps.Senders[url] == nil {
			problems = append(problems, fmt.Errorf("sync queue %s has no sender", url))
		}
	}
	var own accesslog.Role
	if cfg.OwnRole != "" {
		var err error
		if own, err = accesslog.ParseRole(cfg.OwnRole); err != nil {
			problems = append(problems, fmt.Errorf("own role: %w", err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	for _, r := range deps.Routes.Routes() { // shown from the start, see telemetry.LogRequests
		deps.Tel.LogRequests(telemetry.Answers{Bucket: r.Bucket, Hour: telemetry.HourOf(time.Now())})
	}
	return &Parser{Deps: deps, cfg: cfg, own: own, recent: recent.New[struct{}](cfg.RecentKeys, cfg.Recent)}, nil
}

// Handle is the queue.Handler of the logs queue.
func (p *Parser) Handle(ctx context.Context, d *queue.Delivery) queue.Outcome {
	records, err := s3event.Parse(d.Body)
	if err != nil {
		return queue.Outcome{Verb: queue.Bury, End: string(object.EndPoison), Detail: string(object.DetailUndecoded), Note: err.Error()}
	}
	places := make([]config.Log, len(records))
	for i, r := range records {
		var ok bool
		if places[i], ok = p.place(r); !ok {
			return queue.Outcome{Verb: queue.Bury, End: string(object.EndPoison), Detail: string(object.DetailForeign),
				Note: fmt.Sprintf("logs of the configuration do not name bucket %q with a prefix of %q", r.Bucket, r.Key)}
		}
	}
	// All records are read even if one fails: what can be requested now is.
	end, rows := object.EndParsed, int64(0)
	var worst *queue.Outcome
	// Who answered counts once a log will not be read again: when it was deleted, or
	// with the whole message.
	var kept []*sheet
	for i, r := range records {
		s, gone, err := p.object(ctx, places[i], r)
		rows += s.rows
		switch {
		case err != nil:
			o := p.unsettled(ctx, d, err)
			if worst == nil || o.Verb == queue.HandBack || worst.Verb == queue.Bury {
				worst = &o
			}
		case gone:
			end = object.EndGone
		case places[i].WhenDone == "delete":
			s.answers.count(p.Tel)
		default:
			kept = append(kept, s)
		}
	}
	if worst != nil {
		return *worst
	}
	for _, s := range kept {
		s.answers.count(p.Tel)
	}
	out := queue.Outcome{Verb: queue.Settle, End: string(end)}
	if end == object.EndParsed && rows == 0 && len(records) > 0 {
		out.Detail = string(object.DetailEmpty)
	}
	return out
}

// place is the configured log that a record belongs to.
func (p *Parser) place(r s3event.Record) (config.Log, bool) {
	for _, l := range p.cfg.Places {
		if l.Bucket == r.Bucket && strings.HasPrefix(r.Key, l.Prefix) {
			return l, true
		}
	}
	return config.Log{}, false
}

// unsettled says what becomes of a notification whose log could not be finished.
func (p *Parser) unsettled(ctx context.Context, d *queue.Delivery, err error) queue.Outcome {
	class := object.ClassOf(err)
	switch {
	case errors.Is(err, guard.ErrClosed), class == object.Canceled, ctx.Err() != nil:
		return queue.Outcome{Verb: queue.HandBack, Note: err.Error()}
	case class == object.Absent && d.Receives >= missingReceives:
		return queue.Outcome{Verb: queue.Bury, End: string(object.EndPoison), Detail: string(object.DetailMissing), Note: err.Error()}
	}
	return queue.Outcome{Verb: queue.Retry, Detail: string(object.DetailOf(class)), Note: err.Error()}
}

// object reads one log object, requests its misses and, where the configuration
// says so, deletes it. gone reports that it was already consumed.
func (p *Parser) object(ctx context.Context, place config.Log, r s3event.Record) (s *sheet, gone bool, err error) {
	ctx, span := p.Tel.Tracer.Start(ctx, telemetry.SpanParse, trace.WithSpanKind(trace.SpanKindInternal))
	defer func() { telemetry.EndSpan(span, err) }()
	start := time.Now()
	g := p.Guards[place.Bucket]

	s = p.newSheet(place.Bucket, r.Key)
	err = s.read(ctx, &ranges{store: p.Logs, guard: g, bucket: place.Bucket, key: r.Key})
	span.SetAttributes(attribute.Int64(telemetry.AttrRows, s.rows), attribute.Int64(telemetry.AttrMisses, s.misses))
	switch {
	case object.ClassOf(err) == object.Absent && place.WhenDone == "delete":
		return s, true, nil
	case err != nil:
		return s, false, judged(ctx, g, err, func(ctx context.Context) error { return p.Logs.Reference(ctx, place.Bucket) })
	}
	if place.WhenDone == "delete" {
		if err := p.delete(ctx, g, place, r.Key); err != nil {
			return s, false, fmt.Errorf("delete log object: %w", err)
		}
	}
	p.Tel.Log.Info().Ctx(ctx).Str("log", fmt.Sprintf("%+q", "s3://"+place.Bucket+"/"+r.Key)).Int64("rows", s.rows).Int64("misses", s.misses).
		Int64("requested", s.requested).Int64("unparsed", s.unparsed).Dur("took", time.Since(start)).Msg("log object parsed")
	return s, false, nil
}

// delete removes a log object that was read. A role that may delete none of them
// closes the gate, like one that may not read: the logs wait.
func (p *Parser) delete(ctx context.Context, g Guard, place config.Log, key string) error {
	err := g.Do(ctx, "DeleteObject", 0, func(ctx context.Context) error { return p.Logs.Delete(ctx, place.Bucket, key) })
	return judged(ctx, g, err, func(ctx context.Context) error {
		return p.Logs.Delete(ctx, place.Bucket, place.Prefix+"objectferry-reference-"+rand.Text()) // there is none
	})
}

// judged is err, or what the guard makes of it when it is a refusal and the
// reference is refused, too: then the whole log bucket refuses us.
func judged(ctx context.Context, g Guard, err error, reference func(context.Context) error) error {
	if object.ClassOf(err) == object.Denied {
		if whole := g.Refused(ctx, err, reference); whole != nil {
			return whole
		}
	}
	return err
}
