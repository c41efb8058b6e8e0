package guard

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker wraps gobreaker once, and is the only thing that knows it. Calls pass
// through it but are never counted, for a failed call may be the fault of its
// key; what is counted are verdicts on the dependency itself. A breaker that is
// open goes half-open by itself after a rest; calls are held back from a
// half-open breaker as from an open one, so that the trial is always a verdict.
type breaker struct {
	cb *gobreaker.CircuitBreaker[struct{}]
}

// counted marks the errors that gobreaker counts as failures.
type counted struct{ error }

// errPassed ends every call that gobreaker let through, whatever it returned.
var errPassed = errors.New("passed")

// newBreaker returns a closed breaker; rest must be shorter than the time
// between a failed verdict and the next one.
func newBreaker(name string, rest time.Duration) *breaker {
	return &breaker{cb: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		Timeout:     rest,
		MaxRequests: 1,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
		IsExcluded: func(err error) bool {
			var c counted
			return err != nil && !errors.As(err, &c)
		},
	})}
}

// open reports whether calls are held back.
func (b *breaker) open() bool { return b.cb.State() != gobreaker.StateClosed }

// pass runs call and returns what it returned, or false without running it when
// the breaker is open.
func (b *breaker) pass(call func() error) (err error, passed bool) {
	_, refused := b.cb.Execute(func() (struct{}, error) {
		err = call()
		return struct{}{}, errPassed
	})
	return err, errors.Is(refused, errPassed)
}

// verdict counts one verdict on the dependency: nil closes a breaker that has
// rested, an error opens it. It reports whether the breaker is closed now.
func (b *breaker) verdict(err error) bool {
	if err != nil {
		err = counted{err}
	}
	// What Execute returns is the verdict itself, or that the breaker rests.
	_, _ = b.cb.Execute(func() (struct{}, error) { return struct{}{}, err })
	return !b.open()
}
