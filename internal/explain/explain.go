// Package explain says of one key what would become of a request for it now, and
// why: the route and its filters, what the destination and the source answer, the
// end, and what to do about it.
//
// It has no rules of its own. A request is handed to the service's own copier, on
// the service's own stores and guards, over connections that let reads pass and
// nothing else: the copy ends where its first write would begin. So nothing is
// changed, nothing is received from a queue or sent to one, and of the source's
// object no more than one byte is asked for.
//
// An Explainer may be used from many goroutines.
package explain

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/copier"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// timeout bounds all that is asked for one key, callTimeout one call.
const (
	timeout     = time.Minute
	callTimeout = 10 * time.Second
)

// Wire connects one route; app.Lane does. Every request to a store must go
// through looks, and nothing but the copier itself may try to write.
type Wire func(ctx context.Context, cfg *config.Config, r *route.Route, looks func(http.RoundTripper) http.RoundTripper) (copier.Lane, error)

// Explainer explains keys by one configuration.
type Explainer struct {
	cfg    config.Config
	file   string // that cfg was read from, for the commands
	routes *route.Table
	wire   Wire
}

// New compiles the routes of cfg, which was read from file.
func New(cfg *config.Config, file string, wire Wire) (*Explainer, error) {
	routes, err := route.New(cfg.Routes)
	if err != nil {
		return nil, err
	}
	x := &Explainer{cfg: *cfg, file: file, routes: routes, wire: wire}
	// One call is made of each kind. A guard that lets one in at once knows
	// throttling at the first answer and need not feel its way down.
	x.cfg.Copy.Concurrency = 1
	x.cfg.Guard.Timeout = min(x.cfg.Guard.Timeout, config.Duration(callTimeout))
	return x, nil
}

// Explanation is what is known of a key.
type Explanation struct {
	Bucket      string  `json:"bucket"`
	Key         string  `json:"key"` // percent-encoded, as in messages
	Route       *Route  `json:"route"`
	Destination *Answer `json:"destination"`
	Source      *Answer `json:"source"`
	Request     Outcome `json:"request"`
	Steps       []Step  `json:"steps"`

	key string
}

// RawKey is the key, which may hold any bytes.
func (e *Explanation) RawKey() string { return e.key }

// Route is the route of the bucket.
type Route struct {
	Mode   string `json:"mode"`
	Source string `json:"source"` // the address of the bucket
	Read   string `json:"read"`
	Queue  string `json:"queue"`
	route.Decision
}

// Explain asks about one key. An error says that the question could not be put; a
// store that does not answer is part of the explanation.
func (x *Explainer) Explain(ctx context.Context, bucket, key string) (*Explanation, error) {
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: bucket, Key: key, Seen: time.Now(), Cause: "explained"})
	if err != nil {
		return nil, fmt.Errorf("explain key %q: %w", key, err)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &Explanation{Bucket: bucket, Key: syncrequest.EscapeKey(key), key: key}
	r, ok := x.routes.Lookup(bucket)
	if !ok {
		none, err := route.New(nil)
		if err != nil {
			return nil, err
		}
		e.Request, err = x.request(ctx, none, nil, body)
		e.Steps = x.steps(e, nil)
		return e, err
	}
	e.Route = &Route{Mode: r.Mode, Source: r.Source.COS, Read: r.Source.Read, Queue: queue.Name(r.QueueURL(x.cfg.Queues.Sync)), Decision: r.Decide(key)}

	end := newEnding(ctx)
	defer end.cancel(nil)
	lane, err := x.wire(ctx, &x.cfg, r, end.readOnly)
	if err != nil {
		return nil, fmt.Errorf("explain key %q: %w", key, err)
	}
	src, dst := &source{Source: lane.Source}, &destination{Destination: lane.Destination}
	lane.Source, lane.Destination = src, dst
	alone, err := route.New([]config.Route{r.Route})
	if err != nil {
		return nil, err
	}
	if e.Request, err = x.request(end.ctx, alone, []copier.Lane{lane}, body); err != nil {
		return nil, err
	}
	if end.reached.Load() {
		e.Request = Outcome{Then: Settled, End: object.EndCopied}
	}
	// The copier looks no further than it must; whoever asks why wants to see both.
	e.Destination, e.Source = dst.answer(ctx, key), &Answer{State: NotAsked}
	if e.Route.Carries { // or a stranger's key would be read for the asking
		e.Source = src.answer(ctx, key)
	}
	e.Steps = x.steps(e, r)
	return e, caller.Err()
}

// Then is what the service would do with the request's message.
type Then string

// What may become of a message.
const (
	Settled Then = "settled"     // it ends
	Again   Then = "tried again" // until its receives run out: then it is a dead letter of that end
	Waits   Then = "waits"       // a gate is closed: nothing is received until it opens
)

// Outcome is what would become of a request.
type Outcome struct {
	End    object.End    `json:"end,omitempty"` // none while it waits
	Detail object.Detail `json:"detail,omitempty"`
	Then   Then          `json:"then"`
	Note   string        `json:"note,omitempty"`
}

// request hands a request to the service's own copier.
func (x *Explainer) request(ctx context.Context, routes *route.Table, lanes []copier.Lane, body string) (Outcome, error) {
	c := copier.DefaultConfig()
	c.Memory, c.MaxSize = int64(x.cfg.Copy.Memory), int64(x.cfg.Copy.MaxSize)
	c.PartSize = 1 // so it asks for one byte, and any larger object begins as an upload in parts
	handler, err := copier.New(copier.Deps{Routes: routes, Lanes: lanes, Tel: telemetry.Nop()}, c)
	if err != nil {
		return Outcome{}, err
	}
	out := handler.Handle(ctx, &queue.Delivery{Body: body, Receives: 1, Sent: time.Now()})
	told := Outcome{End: object.End(out.End), Detail: object.Detail(out.Detail), Then: Settled, Note: out.Note}
	switch {
	case out.Verb == queue.Retry, told.Detail == object.DetailUnrouted: // handed back first, as a rollout may be under way
		told.End, told.Then = object.EndFailed, Again
	case out.Verb == queue.HandBack:
		told.Then = Waits
	}
	return told, nil
}
