package guard

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// probeTimeout is how long a probe may take at most: a hanging probe is a failed
// probe.
const probeTimeout = 5 * time.Second

// What a probe found; the words of the metric.
const (
	alive   = "alive"
	down    = "down"
	refused = "refused"
)

// verdict is what a probe or a reference says of the dependency.
type verdict struct {
	result string // alive, down or refused
	reason string // why a closed gate stays closed, "" when it may open
	err    error  // what the probe returned
}

func verdictOf(err error) verdict {
	class, reason := object.ClassOf(err), reasonOf(err)
	switch {
	case err == nil, authentic(class) && class != object.Throttled && class != object.Refused:
		return verdict{alive, "", err}
	case class == object.Throttled: // it answers, but it is not ready for more
		return verdict{alive, string(object.Throttled), err}
	case class == object.Refused:
		return verdict{refused, reason, err}
	case class == object.Unavailable:
		return verdict{down, reason, err}
	default: // no answer that a probe should have
		return verdict{down, string(object.Unavailable), err}
	}
}

// reasonOf is the class and the code of err.
func reasonOf(err error) string {
	reason := string(object.ClassOf(err))
	if code := object.CodeOf(err); code != "" {
		// The code is the vendor's word, but the answer may be a stranger's.
		reason += ": " + code[:min(len(code), 64)]
	}
	return reason
}

// authentic reports whether only a dependency that is there gives such an answer.
func authentic(c object.Class) bool {
	switch c {
	case object.Absent, object.Denied, object.Refused, object.Archived, object.Unfit,
		object.Throttled, object.Changed, object.Exists:
		return true
	}
	return false
}

// Run probes while the gate is closed, at growing, jittered intervals. It
// returns nil when ctx ends. Without it a gate that has closed stays closed.
func (g *Guard) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, changed := g.nextProbe()
		if wait == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if sleep(ctx, wait) == nil {
			g.probeClosed(ctx)
		}
	}
	return nil
}

// nextProbe returns how long to wait for the next probe, 0 while the gate is
// open, and a channel that is closed when it no longer is.
func (g *Guard) nextProbe() (time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.breaker.open() {
		return 0, g.changed
	}
	wait := g.interval()
	return min(wait+rand.N(wait/2+1), g.cfg.ProbeMax), nil
}

// interval is the least time to the next probe. The jitter only adds, and room is
// left for it, so that a fleet does not gather at ProbeMax. It needs g.mu.
func (g *Guard) interval() time.Duration {
	wait := g.cfg.ProbeMin
	for i := 1; i < g.failures && wait < g.cfg.ProbeMax; i++ {
		wait *= 2
	}
	return max(g.cfg.ProbeMin, min(wait, g.cfg.ProbeMax/3*2))
}

// probeClosed asks once while the gate is closed, and opens it slowly when the
// dependency is there again.
func (g *Guard) probeClosed(ctx context.Context) {
	g.mu.Lock()
	asks := g.asks
	g.probing = true
	g.tel.GuardState(g.cfg.Name, StateProbing, states)
	g.mu.Unlock()

	v, err := g.probes.ask(ctx, func(ctx context.Context) verdict { return g.send(ctx, asks) })

	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.tel.GuardState(g.cfg.Name, StateClosed, states)
	switch {
	case err != nil: // we are stopping
	case v.reason != "":
		g.breaker.verdict(v.err)
		g.reason = v.reason
		g.tellReason()
		g.failures++
	case g.breaker.verdict(nil):
		g.open()
	}
}

// suspect asks the dependency itself after a call found it unavailable, and
// closes the gate when it is not there. It returns once a probe that began after
// the failure is answered, or ctx's error when ctx ends first.
func (g *Guard) suspect(ctx context.Context) error {
	_, err := g.probes.ask(ctx, func(ctx context.Context) verdict {
		if g.closed() { // meanwhile; the verdict is known
			return verdict{}
		}
		v := g.send(ctx, g.probe)
		if v.result != alive && ctx.Err() == nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.shut(v.reason, g.probe)
		}
		return v
	})
	return err
}

// send asks once, within the probe's own deadline.
func (g *Guard) send(ctx context.Context, asks Probe) verdict {
	probe, cancel := context.WithTimeout(ctx, min(g.cfg.Timeout, probeTimeout))
	defer cancel()
	v := verdictOf(asks(probe))
	if ctx.Err() == nil {
		g.tel.Probe(g.cfg.Name, v.result)
		g.mu.Lock()
		g.lastProbe = time.Now()
		g.mu.Unlock()
	}
	return v
}

func (g *Guard) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.breaker.open()
}
