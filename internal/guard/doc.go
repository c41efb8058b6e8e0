// Package guard holds back from a dependency that is down, refuses us or is
// overloaded. Each guard wraps every read and write of one dependency:
//
//	trace(metrics(retry(limit(breaker(call)))))
//
// Retry stands outside the limit, so that no slot is held while backing off;
// the limit stands outside the breaker, so that waiting for a slot is not a
// failure of the dependency. When calls fail the guard asks the dependency
// itself (a probe); only a failed probe opens the breaker and closes the gate,
// so one sick key never stops the others.
package guard
