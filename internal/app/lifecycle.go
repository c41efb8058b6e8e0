package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stack is what was started, so that it can be stopped last-in-first-out.
type stack struct{ steps []step }

type step struct {
	name string
	stop func(context.Context) error
}

// push notes how to stop what was just started.
func (s *stack) push(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, step{name, stop})
}

// unwind stops everything, the last started first; each failing step is named.
func (s *stack) unwind(ctx context.Context) error {
	var errs []error
	for i := len(s.steps) - 1; i >= 0; i-- {
		if err := s.steps[i].stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.steps[i].name, err))
		}
	}
	s.steps = nil
	return errors.Join(errs...)
}

// loop runs f in a goroutine that the stack owns: stopping cancels f's context
// and waits for it.
func (s *stack) loop(name string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	s.push(name, func(wait context.Context) error {
		cancel()
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-wait.Done():
			return wait.Err()
		}
	})
}

// untilOpen tries open at every interval until it succeeds, its error is one that
// trying again cannot mend (permanent), or ctx ends: an AWS that cannot be reached
// at start is no reason to die.
func untilOpen(ctx context.Context, every time.Duration, open func(context.Context) error, permanent func(error) bool, failed func(error)) error {
	for {
		err := open(ctx)
		if err == nil || permanent(err) {
			return err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}
