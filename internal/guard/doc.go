// Package guard holds back from a dependency that is down, refuses us or is
// overloaded. Each guard wraps every read and write of one dependency:
//
//	trace(retry(limit(breaker(metrics(call)))))
//
// Retry stands outside the limit, so that no slot is held while backing off;
// the limit stands outside the breaker, so that waiting for a slot is not a
// failure of the dependency; metrics stand innermost, so that every answer is
// counted (the throttled ones above all) and timed without our own waiting.
//
// When calls fail the guard asks the dependency itself (a probe); only a failed
// probe opens the breaker and closes the gate, so one sick key never stops the
// others. A refusal closes it when a reference is refused too, throttling when
// nothing at all gets through, and useless answers (corrupt, unknown) when several
// keys in a row have no other. While the gate is closed nothing is sent but
// probes, and queues that are wired to the gate receive nothing. After a good
// probe the limit starts at one and doubles per clean window, so that a fleet
// does not storm a source that has just come back.
//
// Invariants: at most Limit calls run at once; at most one probe runs at a time;
// a call whose context ended says nothing about the dependency; a call that was
// held back returns ErrClosed and its message goes back unharmed.
//
// All methods are safe for concurrent use. One mutex guards the state of a
// guard; it is never held during a call, a probe or a wait. A guard has no
// goroutines of its own: a closed gate is probed by whoever calls Run, an open one
// by those whose calls failed.
package guard
