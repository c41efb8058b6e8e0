package guard

import (
	"errors"

	"github.com/objectferry/objectferry/internal/object"
)

// sickKeys is how many keys in a row must be answered with nothing of use before
// that is the dependency's doing.
const sickKeys = 8

// streaks are the keys in a row whose answers were Corrupt, Unknown or Mangled. A
// sick key fails alone, however often; but where no key is served well (a proxy
// that ignores ranges, a setting that S3 refuses every write for) the backlog must
// not fail message by message.
//
// They are counted by operation, a closed set, for each write that fails follows a
// HEAD that went well. Closing the gate does not end a streak: once it is open
// again, one more such answer closes it.
type streaks map[string]map[string]struct{}

// count notes what a call returned, and reports whether a streak is too long.
func (s streaks) count(op string, err error) bool {
	switch class := object.ClassOf(err); class {
	case object.Corrupt, object.Unknown, object.Mangled:
		if s[op] == nil {
			s[op] = map[string]struct{}{}
		}
		if len(s[op]) < sickKeys {
			s[op][keyOf(err)] = struct{}{}
		}
		return len(s[op]) >= sickKeys
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
	if g.streaks.count(op, err) {
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
