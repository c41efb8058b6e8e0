// Package copier turns a sync request into an object at the destination.
//
// What always holds: an object becomes visible only when its bytes are one
// single version of the source, complete and verified; a write never replaces
// anything; a request is settled only when its object is there or its end is
// known; and the bytes held at once stay within Config.Memory, whatever the
// objects' sizes. copy.go tells the life of one request from top to bottom.
//
// A Copier is safe for concurrent use. It starts no goroutine that outlives the
// call of Handle that it belongs to.
package copier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/objectferry/objectferry/internal/recent"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// Guard holds calls back from a dependency that cannot take them.
// internal/guard implements it.
type Guard interface {
	// Do runs one read or write, from request to end of body. It may run call more
	// than once, one after the other. bytes is how many the call may move; its
	// deadline follows from it.
	Do(ctx context.Context, op string, bytes int64, call func(context.Context) error) error
	// Refused judges a call that ended Denied with cause. It returns nil when
	// reference is let through after it, so that only this object is refused; an
	// error that wraps guard.ErrClosed when the whole dependency refuses us, whose
	// gate then asks reference until it passes; and another when it is not known.
	Refused(ctx context.Context, cause error, reference func(context.Context) error) error
}

// Lane is what the requests of one route travel on.
type Lane struct {
	Route            *route.Route
	Source           Source
	SourceGuard      Guard
	Destination      Destination
	DestinationGuard Guard
}

// Deps are what a Copier works with.
type Deps struct {
	Routes *route.Table
	Lanes  []Lane // one for each route of mode copy
	Tel    *telemetry.Telemetry
}

// Config bounds a Copier. Sizes are bytes.
type Config struct {
	Memory   int64 // object bytes held at once, by all copies together
	PartSize int64 // of one read; an object up to this size is written by one PUT
	MaxSize  int64 // a larger object ends "unfit"
}

// DefaultConfig is what a configuration that says nothing means.
func DefaultConfig() Config {
	return Config{Memory: 1 << 30, PartSize: 16 << 20, MaxSize: 20 << 30}
}

// Ends are remembered so that repeated log rows cost nothing. A row that is
// younger than the end asks again, so the only harm of a long memory is its size.
const (
	rememberFor  = 10 * time.Minute
	rememberEnds = 100_000
)

// maxPut is the most that S3 takes as one PUT or one part.
const maxPut = 5 << 30

// Validate returns all problems joined.
func (c Config) Validate() error {
	var errs []error
	if c.PartSize < 1 || c.PartSize > maxPut {
		errs = append(errs, fmt.Errorf("part size %d: must be between 1 byte and 5 GiB", c.PartSize))
	}
	if c.MaxSize < 1 {
		errs = append(errs, fmt.Errorf("max size %d: must be above 0", c.MaxSize))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.Memory < 2*c.PartSize {
		errs = append(errs, fmt.Errorf("memory %d: less than two parts of %d", c.Memory, c.PartSize))
	}
	if p := partLength(c.MaxSize, c.PartSize); p > min(c.Memory, maxPut) {
		errs = append(errs, fmt.Errorf("max size %d: its parts would have %d bytes, more than memory or than S3 takes", c.MaxSize, p))
	}
	return errors.Join(errs...)
}

// Copier copies objects. Handle is its queue.Handler.
type Copier struct {
	cfg     Config
	lanes   map[string]*lane // by the bucket that visitors read
	tel     *telemetry.Telemetry
	memory  *memory
	ends    *recent.Table[result]
	flights flights
}

// lane is a Lane and what was learned on it.
type lane struct {
	Lane
	lastRead  atomic.Pointer[string] // the key that the source last let us read
	lastWrite atomic.Pointer[string] // the key that the destination last let us write
	typical   atomic.Int64           // length of first parts, a moving average
}

// New wires a Copier; it opens no connection.
func New(deps Deps, cfg Config) (*Copier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure copier: %w", err)
	}
	c := &Copier{
		cfg:     cfg,
		lanes:   make(map[string]*lane),
		tel:     deps.Tel,
		memory:  newMemory(cfg.Memory, cfg.PartSize, deps.Tel.MemoryReserved),
		ends:    recent.New[result](rememberEnds, rememberFor),
		flights: newFlights(),
	}
	for _, l := range deps.Lanes {
		c.lanes[l.Route.Bucket] = &lane{Lane: l}
	}
	for _, r := range deps.Routes.Routes() {
		switch {
		case c.lanes[r.Bucket] != nil:
		case r.Observe(): // nothing is ever carried on it
			c.lanes[r.Bucket] = &lane{Lane: Lane{Route: r}}
		default:
			return nil, fmt.Errorf("configure copier: route %q has no lane", r.Bucket)
		}
	}
	return c, nil
}
