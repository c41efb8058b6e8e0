package queue

import (
	"errors"
	"fmt"
	"time"
)

// Config says how one queue is consumed.
type Config struct {
	Name       string        // label in metrics, spans and lines, such as "logs"
	URL        string        // of the queue
	Slots      int           // deliveries worked on at once
	Receives   int           // own limit: a Retry at this receive becomes a dead letter
	BackoffMin time.Duration // after the first receive; it doubles with each
	BackoffMax time.Duration // at most 12 hours
	Wait       time.Duration // long poll, whole seconds, at most 20
	Drain      time.Duration // for the last acknowledgements once the work has been ended
}

// DefaultConfig is complete but for Name and URL.
func DefaultConfig() Config {
	return Config{Slots: 64, Receives: 8, BackoffMin: 5 * time.Second, BackoffMax: 15 * time.Minute, Wait: 20 * time.Second, Drain: 10 * time.Second}
}

// Validate returns all problems joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf("queue %q: "+format, append([]any{c.Name}, args...)...))
		}
	}
	bad(c.Name == "", "it needs a name")
	bad(c.URL == "", "it needs a URL")
	bad(c.Slots < 1, "slots %d, need at least 1", c.Slots)
	bad(c.Receives < 1, "receives %d, need at least 1", c.Receives)
	bad(c.BackoffMin <= 0, "back-off from %s, need more than 0", c.BackoffMin)
	bad(c.BackoffMax < c.BackoffMin, "back-off up to %s, need at least %s", c.BackoffMax, c.BackoffMin)
	bad(c.BackoffMax > maxVisibility, "back-off up to %s, SQS allows %s", c.BackoffMax, maxVisibility)
	bad(c.Wait < 0 || c.Wait > 20*time.Second || c.Wait%time.Second != 0, "long poll of %s, need whole seconds up to 20s", c.Wait)
	bad(c.Drain <= 0, "drain of %s, need more than 0", c.Drain)
	return errors.Join(errs...)
}
