package app

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/copier"
	"github.com/objectferry/objectferry/internal/cos"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/parse"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// wiring builds the parts of one process from its configuration. Every
// dependency gets one guard, however many use it.
type wiring struct {
	app    *App
	cfg    *config.Config
	tel    *telemetry.Telemetry
	routes *route.Table
	sqs    *sqs.Client
	aws    aws.Config
	names  map[string]int // of guards and consumers, how often each was asked for
	// A command that only looks gives its own decorator of the stores' transports,
	// and its guards ask by reading alone.
	looks func(http.RoundTripper) http.RoundTripper
}

func (w *wiring) wire(ctx context.Context, role Role) error {
	var err error
	if w.routes, err = route.New(w.cfg.Routes); err != nil {
		return err
	}
	if w.sqs, err = SQS(ctx, w.cfg); err != nil {
		return err
	}
	if w.aws, err = awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(w.cfg.Region)); err != nil {
		return fmt.Errorf("load AWS configuration: %w", err)
	}
	if role != RoleCopy {
		if err := w.parse(); err != nil {
			return err
		}
	}
	if role != RoleParse {
		return w.copy()
	}
	return nil
}

// unique makes a name that is taken one of its own: two queues of one name in two
// accounts must not share a label.
func (w *wiring) unique(name string) string {
	w.names[name]++
	if n := w.names[name]; n > 1 {
		return fmt.Sprintf("%s (%d)", name, n)
	}
	return name
}

// guard makes one guard of the process and has it run.
func (w *wiring) guard(name string, side object.Side, limit int, probe guard.Probe) (*guard.Guard, error) {
	c := guard.DefaultConfig()
	c.Name, c.Side, c.Limit = w.unique(name), side, limit
	c.ProbeMin, c.ProbeMax = time.Duration(w.cfg.Guard.ProbeMin), time.Duration(w.cfg.Guard.ProbeMax)
	c.Timeout, c.MinRate = time.Duration(w.cfg.Guard.Timeout), int64(w.cfg.Guard.MinRate)
	g, err := guard.New(c, alive(probe), w.tel)
	if err != nil {
		return nil, err
	}
	w.app.guards = append(w.app.guards, g)
	return g, nil
}

// consumer makes a consumer whose gate is open while all of guards are.
func (w *wiring) consumer(name, url string, slots int, guards []*guard.Guard, h queue.Handler) error {
	c := queue.DefaultConfig()
	c.Name, c.URL, c.Slots = w.unique(name), url, slots
	c.Receives = w.cfg.Retry.Receives
	c.BackoffMin, c.BackoffMax, c.Wait = time.Duration(w.cfg.Retry.Min), time.Duration(w.cfg.Retry.Max), time.Duration(w.cfg.Retry.Wait)
	gates := make([]guard.Gate, len(guards))
	for i, g := range guards {
		gates[i] = g
	}
	if len(gates) == 0 {
		gates = []guard.Gate{guard.Slots(slots)}
	}
	consumer, err := queue.NewConsumer(w.sqs, guard.Join(gates...), h, c, w.tel)
	if err != nil {
		return err
	}
	w.app.consumers = append(w.app.consumers, consumer)
	return nil
}

// logs wires the buckets that logs lie in, with a guard each.
func (w *wiring) logs() (*s3store.LogStore, map[string]*guard.Guard, error) {
	prefixes := map[string]string{} // any of a bucket's will do: the role may read them all
	for _, l := range w.cfg.Logs {
		prefixes[l.Bucket] = l.Prefix
	}
	store := s3store.NewLogs(w.s3(w.cfg.Region, w.cfg.Parse.Concurrency), prefixes)
	guards := map[string]*guard.Guard{}
	for bucket := range prefixes {
		var err error
		guards[bucket], err = w.guard("logs "+bucket, object.Logs, w.cfg.Parse.Concurrency, func(ctx context.Context) error { return store.Reference(ctx, bucket) })
		if err != nil {
			return nil, nil, err
		}
	}
	return store, guards, nil
}

// parse wires the logs queue: its gate is the log buckets' and the sync queues'.
func (w *wiring) parse() error {
	logs, logGuards, err := w.logs()
	if err != nil {
		return err
	}
	deps := parse.Deps{Logs: logs, Guards: map[string]parse.Guard{}, Senders: map[string]parse.Sender{}, Routes: w.routes, Tel: w.tel}
	var guards []*guard.Guard
	for bucket, g := range logGuards {
		deps.Guards[bucket] = g
		guards = append(guards, g)
	}
	for _, r := range w.routes.Routes() {
		url := r.QueueURL(w.cfg.Queues.Sync)
		if r.Observe() || deps.Senders[url] != nil {
			continue
		}
		g, err := w.guard("queue "+queue.Name(url), object.Queue, w.cfg.Parse.Concurrency, func(ctx context.Context) error { return queue.Probe(ctx, w.sqs, url) })
		if err != nil {
			return err
		}
		s := queue.NewSender(w.sqs, g, queue.SenderConfig{Name: queue.Name(url), URL: url, InFlight: w.cfg.Parse.Concurrency}, w.tel)
		deps.Senders[url] = s
		w.app.senders = append(w.app.senders, s)
		guards = append(guards, g)
	}
	p, err := parse.New(deps, parse.Config{Places: w.cfg.Logs, OwnRole: w.cfg.Own, SyncQueue: w.cfg.Queues.Sync,
		Recent: time.Duration(w.cfg.Parse.Recent), RecentKeys: w.cfg.Parse.RecentKeys})
	if err != nil {
		return err
	}
	return w.consumer("logs", w.cfg.Queues.Logs, w.cfg.Parse.Concurrency, guards, p.Handle)
}

// copy wires each sync queue: its gate is that of the sources and destinations
// of its routes.
func (w *wiring) copy() error {
	sources := map[[3]string]*source{}
	var lanes []copier.Lane
	gates := map[string][]*guard.Guard{} // by sync queue
	var all []*guard.Guard
	for _, r := range w.routes.Routes() {
		if r.Observe() {
			continue
		}
		// One bucket read in two ways is two sources: what is read with a signature
		// must never serve a route that reads as a stranger does.
		id := [3]string{r.Source.COS, r.Source.Read, r.Source.CredentialsFile}
		src := sources[id]
		if src == nil {
			var err error
			if src, err = w.source(r); err != nil {
				return err
			}
			sources[id] = src
		}
		dst, dstGuard, err := w.destination(r)
		if err != nil {
			return err
		}
		lanes = append(lanes, copier.Lane{Route: r, Source: src.Source, SourceGuard: src.guard, Destination: dst, DestinationGuard: dstGuard})
		url := r.QueueURL(w.cfg.Queues.Sync)
		gates[url] = append(gates[url], src.guard, dstGuard)
		all = append(all, src.guard, dstGuard)
	}
	c := copier.DefaultConfig()
	c.Memory, c.PartSize, c.MaxSize = int64(w.cfg.Copy.Memory), int64(w.cfg.Copy.PartSize), int64(w.cfg.Copy.MaxSize)
	handler, err := copier.New(copier.Deps{Lanes: lanes, Routes: w.routes, Tel: w.tel}, c)
	if err != nil {
		return err
	}
	urls, err := w.consumed()
	if err != nil {
		return err
	}
	for _, url := range urls {
		guards := gates[url]
		if guards == nil {
			// No route sends to it now, but one may have, and a redrive may: what it
			// holds can be for any of them.
			guards = all
		}
		if err := w.consumer(queue.Name(url), url, slots(w.cfg.Copy.Concurrency), guards, handler.Handle); err != nil {
			return err
		}
	}
	return nil
}

// consumed are the URLs of the sync queues that this process consumes. It can
// still copy for every route: a message whose route moved to another queue waits
// in the old one.
func (w *wiring) consumed() ([]string, error) {
	all := w.cfg.SyncQueues()
	wanted := w.app.options.Queues
	var names, urls []string
	for _, url := range all {
		name := queue.Name(url)
		names = append(names, name)
		if len(wanted) == 0 || slices.Contains(wanted, name) {
			urls = append(urls, url)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("queue %q: the configuration's sync queues are %q", name, names)
		}
	}
	return urls, nil
}

// slots is how many requests are worked on at once: looking at the destination
// and writing to it happen outside the source reads that concurrency bounds.
func slots(concurrency int) int { return concurrency + concurrency/2 + 1 }

type source struct {
	*cos.Source
	guard *guard.Guard
}

func (w *wiring) source(r *route.Route) (*source, error) {
	s, err := cos.New(cos.Config{URL: r.Source.COS, Signed: r.Source.Read == config.ReadSigned, CredentialsFile: r.Source.CredentialsFile, CustomDomain: r.Source.CustomDomain,
		Report: func(err error) {
			w.tel.Log.Error().Err(err).Str("source", host(r.Source.COS)).Msg("new credentials cannot be used; the old ones stay in use")
		},
	}, w.traced(cos.NewTransport(w.cfg.Copy.Concurrency)))
	if err != nil {
		return nil, fmt.Errorf("route %q: %w", r.Bucket, err)
	}
	name := "source " + host(r.Source.COS)
	if r.Source.Read == config.ReadSigned {
		name += " signed"
	}
	g, err := w.guard(name, object.Source, w.cfg.Copy.Concurrency, func(ctx context.Context) error { return s.Reference(ctx, r.ProbeKey()) })
	if err != nil {
		return nil, fmt.Errorf("route %q: %w", r.Bucket, err)
	}
	return &source{s, g}, nil
}

func (w *wiring) destination(r *route.Route) (*s3store.Store, *guard.Guard, error) {
	d := r.Destination
	atOnce := 2 * slots(w.cfg.Copy.Concurrency) // a look and a write for each
	store := s3store.New(w.s3(d.Region, atOnce), s3store.Config{Bucket: r.Bucket, ExpectedOwner: d.ExpectedOwner, SSE: d.SSE, KMSKey: d.KMSKeyID(), StorageClass: d.StorageClass, Probe: r.ProbeKey()})
	g, err := w.guard("destination "+r.Bucket, object.Destination, atOnce, func(ctx context.Context) error {
		if err := alive(store.ReadReference)(ctx); err != nil || w.looks != nil {
			return err
		}
		// A refusal of writes alone (a disabled key, say) is not seen by reading; a
		// gate that it closed would open at every probe and close at every message.
		return store.WriteReference(ctx, r.ProbeKey())
	})
	if err != nil {
		return nil, nil, fmt.Errorf("route %q: %w", r.Bucket, err)
	}
	return store, g, nil
}

// alive makes a probe of a reference: any answer that is authentically the
// dependency's shows that it is there, also that this one key is refused.
func alive(reference guard.Probe) guard.Probe {
	return func(ctx context.Context) error {
		err := reference(ctx)
		switch object.ClassOf(err) {
		case object.Unavailable, object.Throttled, object.Refused, object.Corrupt, object.Ambiguous, object.Canceled:
			return err
		}
		return nil
	}
}

// s3 makes a client; connections are kept for atOnce requests.
func (w *wiring) s3(region string, atOnce int) *s3.Client {
	return s3store.Connect(w.aws, s3store.ClientConfig{Region: region, PathStyle: w.cfg.S3.PathStyle, Concurrency: atOnce, Wrap: w.traced})
}

// traced gives every request a client span when spans go anywhere.
func (w *wiring) traced(t http.RoundTripper) http.RoundTripper {
	if w.looks != nil {
		t = w.looks(t)
	}
	if !w.tel.Tracing() {
		return t
	}
	return otelhttp.NewTransport(t, otelhttp.WithTracerProvider(w.tel.TracerProvider()))
}

func host(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "unreadable"
	}
	return u.Host
}
