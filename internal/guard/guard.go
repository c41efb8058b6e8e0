package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// ErrClosed is wrapped by every error of a call that was held back. It is no
// failure of the message: hand it back. The error's object.Class is Canceled.
var ErrClosed = errors.New("gate is closed")

// The states of a gate.
const (
	StateOpen      = "open"
	StateSlowStart = "slow start" // open, and feeling its way up from one call at once
	StateClosed    = "closed"
	StateProbing   = "probing" // closed, and a probe is under way
)

var states = []string{StateOpen, StateSlowStart, StateClosed, StateProbing}

// Config says how one dependency is guarded. DefaultConfig has the defaults.
type Config struct {
	// Name is the label in metrics, logs and Status, from the configuration only,
	// such as "source media-1250000000.cos.ap-shanghai.myqcloud.com".
	Name string
	// Side stands in the errors that the guard itself makes.
	Side object.Side
	// Limit is how many calls run at once at most.
	Limit int
	// PerCall is how many messages Admit lets in for each call allowed at once:
	// a message also does work that is not a call of this guard.
	PerCall float64
	// Timeout is how long one call may take before its bytes are counted; its
	// deadline is Timeout + bytes/MinRate.
	Timeout time.Duration
	// MinRate is the least acceptable rate of a body, in bytes a second.
	MinRate int64
	// ProbeMin and ProbeMax bound the jittered, growing interval between the
	// probes of a closed gate. Back-off within Do scales with ProbeMin.
	ProbeMin, ProbeMax time.Duration
	// Attempts is how often Do tries a call that ends unavailable or corrupt.
	Attempts int
}

// DefaultConfig has everything but the Name and the Side.
func DefaultConfig() Config {
	return Config{
		Limit: 64, PerCall: 2, Timeout: 30 * time.Second, MinRate: 64 << 10,
		ProbeMin: 5 * time.Second, ProbeMax: 5 * time.Minute, Attempts: 3,
	}
}

// Validate returns all problems joined.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("guard %q: "+format, append([]any{c.Name}, args...)...))
		}
	}
	check(c.Name != "", "name is missing")
	check(c.Limit >= 1, "limit is %d, must be at least 1", c.Limit)
	check(c.PerCall >= 1, "messages per call is %g, must be at least 1", c.PerCall)
	check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	check(c.MinRate > 0, "minimum rate is %d bytes/s, must be positive", c.MinRate)
	check(c.ProbeMin > 0, "shortest probe interval is %v, must be positive", c.ProbeMin)
	check(c.ProbeMax >= c.ProbeMin, "longest probe interval is %v, must be at least the shortest, %v", c.ProbeMax, c.ProbeMin)
	check(c.Attempts >= 1, "attempts is %d, must be at least 1", c.Attempts)
	return errors.Join(errs...)
}

// Probe asks the dependency whether it is there. Any authentic answer is nil,
// such as that a key does not exist, but for an *object.Error of class Refused
// when the dependency refuses us altogether. It must end when its context does.
type Probe func(context.Context) error

// Guard guards one dependency.
type Guard struct {
	cfg     Config
	tel     *telemetry.Telemetry
	breaker *breaker
	probe   Probe
	probes  *flight

	mu         sync.Mutex // guards what follows
	limiter    *limiter
	references map[string]*flight // by operation that was refused, a closed set
	streaks    streaks
	asks       Probe         // what is asked while closed: the probe, or the reference that was refused
	reason     string        // why the gate is closed, or last was; codes only
	told       string        // the class of reason that metrics show now, "" while open
	shutting   chan struct{} // closed while the gate is
	failures   int           // closings and failed probes since the gate was last open for good
	probing    bool
	shown      shown
	since      time.Time // of the shown state
	lastProbe  time.Time
	changed    chan struct{} // closed when what Admit returns changes
	watchers   []func()      // called then
}

// shown is what the outside was last told.
type shown struct {
	state string
	limit int
	admit int
}

// New returns a guard whose gate is open. It calls nothing.
func New(cfg Config, probe Probe, tel *telemetry.Telemetry) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if probe == nil {
		return nil, fmt.Errorf("guard %q: probe is missing", cfg.Name)
	}
	g := &Guard{
		cfg: cfg, tel: tel, probe: probe, asks: probe,
		breaker:    newBreaker(cfg.Name, cfg.ProbeMin/2),
		probes:     newFlight(cfg.ProbeMin / 5),
		references: map[string]*flight{},
		streaks:    streaks{},
		limiter:    newLimiter(cfg.Limit, cfg.ProbeMin),
		since:      time.Now(),
		shutting:   make(chan struct{}),
		changed:    make(chan struct{}),
	}
	g.shown = shown{StateOpen, cfg.Limit, g.admits()}
	tel.GuardState(cfg.Name, StateOpen, states)
	tel.GuardLimit(cfg.Name, cfg.Limit)
	return g, nil
}

// Admit returns how many messages may be worked on at once, 0 while the gate is
// closed, and a channel that is closed when that changes.
func (g *Guard) Admit() (n int, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admits(), g.changed
}

func (g *Guard) watch(changed func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = append(g.watchers, changed)
}

// Status is a guard as /statusz shows it.
type Status struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Reason    string    `json:"reason,omitempty"` // why it is, or was before the slow start, closed; codes only
	Limit     int       `json:"limit"`            // calls allowed at once
	InUse     int       `json:"in_use"`           // calls running
	LastProbe time.Time `json:"last_probe,omitzero"`
}

// Status returns what the guard does now.
func (g *Guard) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Status{
		Name: g.cfg.Name, State: g.state(), Since: g.since, Reason: g.reason,
		Limit: g.limiter.slots(), InUse: g.limiter.busy, LastProbe: g.lastProbe,
	}
	switch {
	case s.State == StateClosed && g.probing:
		s.State = StateProbing
	case s.State == StateOpen && g.limiter.paced:
		s.Reason = string(object.Throttled)
	case s.State == StateOpen:
		s.Reason = ""
	}
	return s
}

// state needs g.mu, as all methods below.
func (g *Guard) state() string {
	switch {
	case g.breaker.open():
		return StateClosed
	case g.limiter.slow:
		return StateSlowStart
	default:
		return StateOpen
	}
}

func (g *Guard) admits() int {
	switch g.state() {
	case StateClosed:
		return 0
	case StateSlowStart:
		return g.limiter.slots()
	default:
		return int(math.Ceil(g.limiter.limit * g.cfg.PerCall))
	}
}

// publish tells the outside what has changed. It logs under the lock, so that
// the lines stand in the order of the changes; they are few.
func (g *Guard) publish() {
	is := shown{g.state(), g.limiter.slots(), g.admits()}
	was := g.shown
	g.shown = is
	if is.state != was.state {
		g.since = time.Now()
		g.tel.GuardState(g.cfg.Name, is.state, states)
		g.tel.Log.Warn().Str("guard", g.cfg.Name).Str("state", is.state).Str("was", was.state).Str("reason", g.reason).Msg("gate changed")
	}
	// Open for good is a gate that has outlasted the interval it had come to: one
	// that closes sooner was opened in vain, though some calls went well (a HEAD
	// before each refused write).
	if is.state == StateOpen && g.limiter.settled() && time.Since(g.since) >= g.interval() {
		g.failures = 0
	}
	g.tellReason()
	if is.limit != was.limit {
		g.tel.GuardLimit(g.cfg.Name, is.limit)
	}
	if is.admit != was.admit {
		close(g.changed)
		g.changed = make(chan struct{})
		for _, w := range g.watchers {
			w()
		}
	}
}

// tellReason shows in metrics why the gate is closed: the class alone, since the
// code is a word of the dependency's and no label.
func (g *Guard) tellReason() {
	class := ""
	if g.breaker.open() {
		class, _, _ = strings.Cut(g.reason, ":")
	}
	if class == g.told {
		return
	}
	if g.told != "" {
		g.tel.GuardClosed(g.cfg.Name, g.told, false)
	}
	if class != "" {
		g.tel.GuardClosed(g.cfg.Name, class, true)
	}
	g.told = class
}

// shut closes the gate, lets those who wait for a slot go, and makes asks what
// is asked until it passes. Calls that run are not disturbed.
func (g *Guard) shut(reason string, asks Probe) {
	if g.breaker.open() {
		return
	}
	g.breaker.verdict(errors.New(reason))
	g.reason, g.asks = reason, asks
	g.failures++
	g.limiter.restart()
	close(g.shutting)
	g.publish()
}

// open opens the gate slowly.
func (g *Guard) open() {
	g.asks = g.probe
	g.limiter.answered(time.Now())
	g.shutting = make(chan struct{})
	g.publish()
}

// closedError is what a call that was held back returns; cause may be nil.
func (g *Guard) closedError(op string, cause error) error {
	err := fmt.Errorf("%w: %s", ErrClosed, g.reason)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &object.Error{Side: g.cfg.Side, Op: op, Class: object.Canceled, Err: err}
}
