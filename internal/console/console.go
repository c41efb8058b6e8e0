// Package console is the page that on-call looks at: whether the service is
// healthy, from where that is known, and dead letters with the two things that
// can be done about them. Everything is rendered here; the page loads nothing
// that is not from this server, and works without its script.
//
// What must hold: a number that could not be read is said to be unknown; nothing
// is moved that was not counted and confirmed before; a page of another origin
// can neither read nor do anything; text from outside is shown as text. A Console
// may be used by many requests at once; letters are worked on by one at a time.
package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

// numbers is where the numbers of the fleet come from.
type numbers interface {
	Read(context.Context) *fleet.Reading
	From() string
}

// Queue is one queue with its dead letters.
type Queue struct {
	Name string // logs or sync
	URL  string
}

// Deps is what a Console works with.
type Deps struct {
	Queues []Queue
	Fleet  numbers
	// Depth asks SQS for the depth of a queue.
	Depth func(ctx context.Context, url string) (queue.Depth, error)
	// Boxes finds the dead-letter queue of each of Queues, in their order.
	Boxes func(context.Context) ([]*deadletter.Box, error)
	Log   zerolog.Logger
}

// Config is how a Console serves.
type Config struct {
	Who      string   // in whose name letters are moved
	Hosts    []string // host names it is asked by, beside those of this machine's loopback
	TraceURL string   // of a trace in the APM tool, with {trace_id} in it; "" makes no links
	SaveDir  string   // where dropped letters are saved
	Fresh    time.Duration
}

// DefaultConfig has everything but Who.
func DefaultConfig() Config { return Config{SaveDir: ".", Fresh: 4 * time.Second} }

// Console serves the pages.
type Console struct {
	deps  Deps
	cfg   Config
	pages *pages
	state *state
	desk  *desk
	token string // proves that a form is ours
}

// New opens nothing.
func New(d Deps, c Config) (*Console, error) {
	if c.Who == "" {
		return nil, errors.New("console: moves of letters are logged, so a name is needed")
	}
	p, err := newPages(c.TraceURL)
	if err != nil {
		return nil, err
	}
	s := newState(d, c.Fresh)
	return &Console{deps: d, cfg: c, pages: p, state: s, desk: newDesk(d, c, s), token: rand.Text()}, nil
}

// Handler is all pages, behind what refuses requests.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.overview)
	mux.HandleFunc("GET /plot/share.svg", c.plot)
	mux.HandleFunc("GET /plans/{id}", c.showPlan)
	mux.HandleFunc("POST /look", c.look)
	mux.HandleFunc("POST /plans", c.newPlan)
	mux.HandleFunc("POST /plans/{id}", c.confirmPlan)
	mux.Handle("GET /static/", static())
	return c.refuse(mux)
}

// drainFor bounds what a stop waits for: letters that are held are handed back.
const drainFor = 15 * time.Second

// Serve serves until ctx ends, and then waits until no letter is held.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: c.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	var failure error
	select {
	case err := <-served:
		failure = fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	c.desk.quit() // a page that is read slowly takes no time from letters that are to be handed back
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if s.Shutdown(stop) != nil {
		_ = s.Close() // a page that is still being read is nothing to wait for
	}
	return errors.Join(failure, c.desk.stop(stop))
}

func (c *Console) overview(w http.ResponseWriter, r *http.Request) {
	c.pages.render(w, http.StatusOK, "overview", c.newOverview(c.state.now(r.Context())))
}
