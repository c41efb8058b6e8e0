// Package fleet reads the numbers of all processes of the service: from
// Prometheus, or summed over the admin pages of the pods it is given. Each kind
// of number comes with where it is from and with what is missing of it, so that
// what could not be read never looks like a zero. Calls are bounded in time and
// in the bytes of an answer. A Reader may be used by many goroutines.
package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// Part is one kind of number.
type Part[T any] struct {
	From  string // where Items are from and what they count; "" when there are none
	Items []T
	Err   error // what is missing; Items may hold the rest
}

// Reading is what the fleet said.
type Reading struct {
	At       time.Time
	Ends     Part[End]
	Ages     Part[Age]
	Guards   Part[Guard]
	Share    Part[telemetry.Answers]
	Rows     Part[Row]
	Pods     Part[Pod]
	Failures Part[Failure]
	Hourly   bool // Ends know their last hour
}

// End is how many deliveries ended so.
type End struct {
	Queue, End, Detail string
	Total              float64 // since the pods started
	LastHour           float64 // when the reading is Hourly
}

// Age is how old messages were when they were received.
type Age struct {
	Queue    string
	Received float64       // messages that the ages are of
	Oldest   time.Duration // at most so old; Beyond when past all buckets
	Beyond   bool
}

// Guard is the state of one dependency's guard over all processes.
type Guard struct {
	Name    string
	State   string // that of the pod that is worst off
	Reason  string
	Since   time.Time // zero when unknown
	AtLeast bool      // it may have been so before Since
	Closed  int       // on so many
	Pods    int       // of so many
}

// Row is the newest log row of a bucket.
type Row struct {
	Bucket string
	Newest time.Time
}

// Pod is one process.
type Pod struct {
	URL, Version, Role string
	Started            time.Time
	Ready              bool
	Queues             []PodQueue
	Err                error // it did not answer
}

// PodQueue is what a process does with one queue.
type PodQueue struct {
	Name     string
	Held     int
	Failures int // receives that failed in a row
}

// Failure is a delivery that was not settled well, and who told of it.
type Failure struct {
	telemetry.Failure
	Pod string
}

// Config says where the numbers are; either may be missing.
type Config struct {
	Prometheus string   // base URL
	Pods       []string // base URLs of admin pages
	Timeout    time.Duration
	MaxBytes   int64 // of one answer
}

// DefaultConfig has everything but the places.
func DefaultConfig() Config { return Config{Timeout: 4 * time.Second, MaxBytes: 8 << 20} }

// Validate names every wrong field.
func (c Config) Validate() error {
	var problems []error
	for _, raw := range append([]string{c.Prometheus}, c.Pods...) {
		if raw == "" {
			continue
		}
		if u, err := url.Parse(raw); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
			problems = append(problems, errors.New("a URL of Prometheus or of a pod must be http://host:port or https://host:port"))
		}
	}
	return errors.Join(problems...)
}

// Reader reads the fleet.
type Reader struct {
	prometheus *prometheus
	pods       *pods
}

// New opens no connection. The numbers come from Prometheus where it is
// configured; what only a pod knows comes from the pods in any case.
func New(c Config) (*Reader, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it answers with a redirect")
	}}
	get := getter{client: client, max: c.MaxBytes}
	r := &Reader{}
	if c.Prometheus != "" {
		r.prometheus = newPrometheus(get, c.Prometheus)
	}
	if len(c.Pods) > 0 {
		r.pods = &pods{get: get, urls: c.Pods}
	}
	return r, nil
}

// errNothing is of every part when no place was named.
var errNothing = errors.New("not configured: name the pods with --pod, or Prometheus with --prometheus")

// Read asks all places at once.
func (r *Reader) Read(ctx context.Context) *Reading {
	now := time.Now().UTC()
	var own *Reading
	var asked sync.WaitGroup
	if r.pods != nil {
		asked.Go(func() { own = r.pods.read(ctx) })
	}
	out := &Reading{}
	if r.prometheus != nil {
		out = r.prometheus.read(ctx, now)
	}
	asked.Wait()
	switch {
	case own == nil && r.prometheus == nil:
		out.Ends.Err, out.Ages.Err, out.Guards.Err, out.Share.Err, out.Rows.Err = errNothing, errNothing, errNothing, errNothing, errNothing
		out.Failures.Err, out.Pods.Err = errNothing, errNothing
	case own == nil:
		out.Failures.Err = errors.New("only the pods know them: name some with --pod")
	case r.prometheus == nil:
		out = own
	default:
		out.Pods, out.Failures = own.Pods, own.Failures
	}
	out.At = now
	return out
}

// From says in a few words where the numbers of the fleet are from.
func (r *Reader) From() string {
	switch {
	case r.prometheus != nil:
		return "Prometheus at " + r.prometheus.base.Redacted()
	case r.pods != nil:
		return r.pods.name(len(r.pods.urls))
	}
	return "nowhere: neither Prometheus nor pods are configured"
}
