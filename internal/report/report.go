// Package report says of logs that lie there already what the service would have
// done with them: which share of the visitors' reads S3 answered, how many distinct
// keys would be copied, and how many requests that would have saved.
//
// Rows are judged as the service judges them (parse.Judge). Memory follows Config,
// never the logs: of each bucket so many distinct keys are held, and when there are
// more, a random part of them that all others are estimated from, with the error.
//
// A Report is for one goroutine.
package report

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/parse"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

const (
	// Other stands for buckets without a route.
	Other = "other"
	// maxBuckets bounds the buckets that are told apart where there are no routes,
	// maxDays the days of each.
	maxBuckets = 64
	maxDays    = 1000
)

// Config is how rows are taken.
type Config struct {
	// Routes are those of the configuration; nil takes each bucket for one whose
	// every key is carried.
	Routes          *route.Table
	ForbiddenIsMiss bool // where Routes is nil
	Own             accesslog.Role
	Since           time.Time // rows before it are passed over

	// Delay is how long after its first miss a key's object is taken to be there.
	Delay  time.Duration
	Keys   int    // distinct keys that are held, by bucket
	Sample int    // keys whose text is held, by bucket, for Measure
	Seed   uint64 // of the hash that chooses which are held
}

// DefaultConfig has everything but routes.
func DefaultConfig() Config {
	return Config{Delay: 4 * time.Hour, Keys: 1 << 18, Seed: 1}
}

// Validate returns all problems joined.
func (c Config) Validate() error {
	var errs []error
	if c.Delay < 0 || c.Delay > 30*24*time.Hour {
		errs = append(errs, fmt.Errorf("delay %s: must be between 0 and 720h", c.Delay))
	}
	if c.Keys < 1000 || c.Keys > 1<<24 {
		errs = append(errs, fmt.Errorf("keys %d: must be between 1,000 and 16,777,216", c.Keys))
	}
	if c.Sample < 0 || c.Sample > 10_000 || c.Sample > c.Keys/4 {
		errs = append(errs, fmt.Errorf("sample %d: must be between 0 and 10,000, and at most a quarter of keys", c.Sample))
	}
	return errors.Join(errs...)
}

// Report takes rows.
type Report struct {
	cfg     Config
	buckets map[string]*bucket
	order   []*bucket
	rows    int64

	last struct { // rows of one bucket come in a row
		name   string
		bucket *bucket
	}
}

// New makes an empty report.
func New(cfg Config) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Report{cfg: cfg, buckets: map[string]*bucket{}}
	if cfg.Routes != nil {
		for _, x := range cfg.Routes.Routes() { // also those that no row has
			r.open(x.Bucket, x)
		}
	}
	return r, nil
}

func (r *Report) open(name string, x *route.Route) *bucket {
	b := &bucket{name: name, route: x, days: map[int64]*day{}, keys: newKeys(r.cfg)}
	r.buckets[name] = b
	r.order = append(r.order, b)
	return b
}

// bucket is what is known of one bucket. It has no route when it is Other.
type bucket struct {
	name     string
	route    *route.Route
	counts   []Count
	from, to time.Time
	rows     int64
	s3, miss int64
	days     map[int64]*day // by days since 1970
	keys     *keys
}

// day is one day of a bucket, by the time of the rows.
type day struct{ s3, miss, missed int64 }

// Count is how many rows a verdict has.
type Count struct {
	Verdict accesslog.Verdict `json:"verdict"`
	Why     accesslog.Why     `json:"why"`
	Rows    int64             `json:"rows"`
}

// Add takes a row of a log that was delivered at the given time, by which its age
// is judged. Where that is not known, and so zero, no row is too old.
func (r *Report) Add(row *accesslog.Row, delivered time.Time) {
	at := row.Time()
	if !at.IsZero() && at.Before(r.cfg.Since) {
		return
	}
	r.rows++
	b := r.bucket(row)
	b.rows++
	if delivered.IsZero() {
		delivered = at
	}
	verdict, why := parse.Judge(row, b.route, r.cfg.Own, delivered)
	b.count(verdict, why)
	if at.IsZero() || b.route == nil {
		return
	}
	b.span(at)
	s3, miss := parse.Answered(row, b.route, r.cfg.Own)
	missed := verdict == accesslog.Miss
	if !s3 && !miss && !missed {
		return
	}
	d := b.day(at)
	if s3 {
		b.s3++
		d.s3++
	}
	if miss {
		b.miss++
		d.miss++
	}
	if missed {
		d.missed++
		b.keys.add(row.Key(), at)
	}
}

// Rows is how many rows were taken.
func (r *Report) Rows() int64 { return r.rows }

// bucket finds the bucket of a row; what is so broken that it names none is Other's.
func (r *Report) bucket(row *accesslog.Row) *bucket {
	if r.last.bucket != nil && string(row.Bucket) == r.last.name {
		return r.last.bucket
	}
	name := string(row.Bucket)
	b := r.buckets[name]
	switch {
	case b != nil:
	case r.cfg.Routes == nil && name != "" && len(r.order) < maxBuckets:
		b = r.open(name, r.everything(name))
	case r.buckets[""] != nil: // no bucket's name is empty
		b = r.buckets[""]
	default:
		b = r.open("", nil)
		b.name = Other
	}
	r.last.name, r.last.bucket = name, b
	return b
}

// everything is a route of a bucket that carries all.
func (r *Report) everything(bucket string) *route.Route {
	c := config.DefaultRoute()
	c.Bucket, c.Source.Read, c.ForbiddenIsMiss = bucket, config.ReadAnonymous, r.cfg.ForbiddenIsMiss
	c.MaxAge = math.MaxInt64
	table, err := route.New([]config.Route{c})
	if err != nil {
		panic(err) // one route without globs
	}
	return table.Routes()[0]
}

func (b *bucket) count(verdict accesslog.Verdict, why accesslog.Why) {
	for i := range b.counts {
		if c := &b.counts[i]; c.Verdict == verdict && c.Why == why {
			c.Rows++
			if i > 0 && c.Rows > b.counts[i-1].Rows { // the frequent ones are found first
				b.counts[i], b.counts[i-1] = b.counts[i-1], b.counts[i]
			}
			return
		}
	}
	b.counts = append(b.counts, Count{verdict, why, 1})
}

func (b *bucket) span(at time.Time) {
	if b.from.IsZero() || at.Before(b.from) {
		b.from = at
	}
	if at.After(b.to) {
		b.to = at
	}
}

const secondsADay = 24 * 60 * 60

// otherDays stands for the days beyond maxDays.
const otherDays = math.MinInt64

func (b *bucket) day(at time.Time) *day {
	n := at.Unix() / secondsADay
	d := b.days[n]
	if d == nil && len(b.days) >= maxDays {
		n = otherDays
		d = b.days[n]
	}
	if d == nil {
		d = &day{}
		b.days[n] = d
	}
	return d
}
