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
	// Refused says whether the whole dependency refuses us, which it asks by
	// running reference, or only the object that cause speaks of.
	Refused(ctx context.Context, cause error, reference func(context.Context) error) (whole bool, err error)
}

// Lane is what the requests of one route travel on.
type Lane struct {
	Source           Source
	SourceGuard      Guard
	Destination      Destination
	DestinationGuard Guard
}

// Deps are what a Copier works with.
type Deps struct {
	Routes    *route.Table
	Lanes     map[string]Lane // by the route's bucket; one for each route of mode copy
	Telemetry *telemetry.Telemetry
}

// Config bounds a Copier. Sizes are bytes.
type Config struct {
	Memory   int64 // object bytes held at once, by all copies together
	PartSize int64 // of one read; an object up to this size is written by one PUT
	MaxSize  int64 // a larger object ends "unfit"

	Remember     time.Duration // how long an end settles requests that are older than it
	RememberKeys int           // how many ends are remembered
}

// DefaultConfig is what a configuration that says nothing means.
func DefaultConfig() Config {
	return Config{
		Memory: 1 << 30, PartSize: 16 << 20, MaxSize: 20 << 30,
		Remember: 5 * time.Minute, RememberKeys: 100_000,
	}
}

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
	routes  *route.Table
	lanes   map[string]*lane
	tel     *telemetry.Telemetry
	memory  *memory
	ends    *recent.Table[result]
	flights flights
}

// lane is a Lane and what was learned on it.
type lane struct {
	Lane
	route     *route.Route
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
		routes:  deps.Routes,
		lanes:   make(map[string]*lane, len(deps.Lanes)),
		tel:     deps.Telemetry,
		memory:  newMemory(cfg.Memory, cfg.PartSize, deps.Telemetry.MemoryReserved),
		ends:    recent.New[result](cfg.RememberKeys, cfg.Remember),
		flights: newFlights(),
	}
	for _, r := range deps.Routes.Routes() {
		l, ok := deps.Lanes[r.Bucket]
		if !ok && !r.Observe() {
			return nil, fmt.Errorf("configure copier: route %q has no lane", r.Bucket)
		}
		c.lanes[r.Bucket] = &lane{Lane: l, route: r}
	}
	return c, nil
}
