package guard

import (
	"errors"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// sickKeys is how many keys in a row must be answered with nothing of use before
// that may be the dependency's doing.
const sickKeys = 8

// streak is the keys in a row whose answers to one operation were Corrupt, Unknown
// or Mangled. A sick key fails alone, however often, and so do many of them between
// others: a stranger may ask for them. But where no key at all has been served for
// a probe interval (by a proxy that ignores ranges, say, or with a setting that S3
// refuses every write for) the backlog must not fail message by message.
//
// Streaks are kept by operation, a closed set, for a HEAD that goes well precedes
// each write that does not. Closing the gate ends none: once it is open again, one
// more such answer closes it.
type streak struct {
	since time.Time // the first of these answers
	keys  map[string]struct{}
}

type streaks map[string]*streak

// count notes what a call returned, and reports whether a streak has lasted for at
// least so long.
func (s streaks) count(op string, err error, now time.Time, least time.Duration) bool {
	switch class := object.ClassOf(err); class {
	case object.Corrupt, object.Unknown, object.Mangled:
		k := s[op]
		if k == nil {
			k = &streak{now, map[string]struct{}{}}
			s[op] = k
		}
		if len(k.keys) < sickKeys {
			k.keys[keyOf(err)] = struct{}{}
		}
		return len(k.keys) >= sickKeys && now.Sub(k.since) >= least
	case object.Throttled, object.Refused: // say nothing of a key
	default:
		if class == "" || authentic(class) {
			delete(s, op)
		}
	}
	return false
}

// tally counts what a call returned and closes the gate on a streak.
func (g *Guard) tally(op string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streaks.count(op, err, time.Now(), g.cfg.ProbeMin) {
		g.shut(reasonOf(err), g.probe)
	}
}

// keyOf returns the key that err is about.
func keyOf(err error) string {
	var e *object.Error
	if errors.As(err, &e) {
		return e.Key
	}
	return ""
}
