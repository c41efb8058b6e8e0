// Package route says which bucket's misses go where, and which keys a route
// carries.
//
// A Table is immutable and safe for concurrent use.
package route

import (
	"fmt"
	"strings"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/glob"
)

// probeName is the name of a key that need not exist.
const probeName = ".objectferry-probe"

// Table holds the routes by the bucket that visitors read.
type Table struct {
	routes   []*Route
	byBucket map[string]*Route
}

// Route is one route of the configuration with its globs compiled.
type Route struct {
	config.Route
	include, exclude glob.Set
}

// New compiles the routes of a configuration. It refuses a glob that package
// glob refuses and a bucket that has two routes.
func New(routes []config.Route) (*Table, error) {
	t := &Table{byBucket: make(map[string]*Route, len(routes))}
	for i, c := range routes {
		if t.byBucket[c.Bucket] != nil {
			return nil, fmt.Errorf("route %d: bucket %q has a route already", i, c.Bucket)
		}
		r := &Route{Route: c}
		var err error
		if r.include, err = glob.Compile(c.Include...); err != nil {
			return nil, fmt.Errorf("route %q: include: %w", c.Bucket, err)
		}
		if r.exclude, err = glob.Compile(c.Exclude...); err != nil {
			return nil, fmt.Errorf("route %q: exclude: %w", c.Bucket, err)
		}
		t.routes = append(t.routes, r)
		t.byBucket[c.Bucket] = r
	}
	return t, nil
}

// Lookup returns the route of a bucket that visitors read.
func (t *Table) Lookup(bucket string) (*Route, bool) {
	r, ok := t.byBucket[bucket]
	return r, ok
}

// Routes returns all routes in the order of the configuration.
func (t *Table) Routes() []*Route { return t.routes }

// Carries reports whether the route carries a decoded key: an exclude glob wins
// over an include glob, and a route without include carries everything, but only
// from an anonymous source.
//
// A signed source carries no key with "." or ".." as a segment: whatever server
// or proxy on the way resolves paths, a stranger's "model/../private" must not
// fetch "private" with our signature.
func (r *Route) Carries(key string) bool { return r.Decide(key).Carries }

// Decision is what the filters of a route say of a key, and which of them decided.
type Decision struct {
	Carries bool   `json:"carries"`
	By      Rule   `json:"by"`
	Glob    string `json:"glob,omitempty"` // as it stands in the configuration; "" where none decided
}

// Rule is what decides whether a key is carried.
type Rule string

// The rules.
const (
	ByInclude  Rule = "include"
	ByExclude  Rule = "exclude"
	ByNoMatch  Rule = "no include matches"
	ByNoFilter Rule = "no include is set"
	ByDots     Rule = `"." or ".." as a segment, from a signed source`
)

// Decide is Carries with its reason.
func (r *Route) Decide(key string) Decision {
	signed := r.Source.Read != config.ReadAnonymous
	if signed && dotted(key) {
		return Decision{By: ByDots}
	}
	if glob, ok := r.exclude.Find(key); ok {
		return Decision{By: ByExclude, Glob: glob}
	}
	if r.include.Empty() {
		return Decision{Carries: !signed, By: ByNoFilter}
	}
	if glob, ok := r.include.Find(key); ok {
		return Decision{Carries: true, By: ByInclude, Glob: glob}
	}
	return Decision{By: ByNoMatch}
}

// dotted reports whether a segment of key is "." or "..".
func dotted(key string) bool {
	if !strings.Contains(key, ".") {
		return false
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// ProbeKey is a key that the source lets us ask for, whether it exists or not:
// one below the literal beginning of the first include glob, because a policy may
// allow no more than that.
func (r *Route) ProbeKey() string {
	text, whole := r.include.Literal()
	if whole {
		return text
	}
	return text + probeName
}

// QueueURL is the queue of the route's requests: the source's own, or the shared
// one.
func (r *Route) QueueURL(defaultSync string) string {
	if r.Source.Queue != "" {
		return r.Source.Queue
	}
	return defaultSync
}

// Observe reports whether the route only counts what it would copy.
func (r *Route) Observe() bool { return r.Mode == config.ModeObserve }
