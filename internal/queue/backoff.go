package queue

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles from low with every time (from 1), never above high, with
// jitter upwards (downwards at the top), so that the wait still grows from one
// time to the next and messages that failed together do not return together.
func backoff(times int, low, high time.Duration) time.Duration {
	d := low
	for i := 1; i < times && d < high; i++ {
		d *= 2
	}
	from, to := d, d*3/2
	if to > high {
		from, to = max(low, high*2/3), high
	}
	if to <= from {
		return from
	}
	return from + rand.N(to-from)
}

// maxVisibility is SQS's limit, counted from the receive.
const maxVisibility = 12 * time.Hour

// handBackMax is the longest back-off of a message that is handed back. It is not
// Config.BackoffMax: a gate that flaps may have one message received and handed
// back again and again, and the redrive policy's 30 receives must outlast days of
// that. It stays below maxVisibility.
const handBackMax = 6 * time.Hour

// seconds rounds up: a back-off is never 0.
func seconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second)
}

// pause waits and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
