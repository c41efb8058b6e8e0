package object

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Interrupted says what ended ctx, and reports false while it lives. A cause that
// is an *Error keeps its class (a guard that gave up on a slow body says so in
// its cause); a deadline is Unavailable; anything else is our own doing.
func Interrupted(ctx context.Context) (Class, bool) {
	if ctx.Err() == nil {
		return "", false
	}
	cause := context.Cause(ctx)
	var e *Error
	switch {
	case errors.As(cause, &e):
		return e.Class, true
	case errors.Is(cause, context.DeadlineExceeded):
		return Unavailable, true
	}
	return Canceled, true
}

// RetryAfter reads a Retry-After header, which is a number of seconds or an HTTP
// date, 0 when there is none or it is over.
func RetryAfter(value string, now time.Time) time.Duration {
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
