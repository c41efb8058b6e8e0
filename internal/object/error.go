// Package object holds the words that every part of objectferry shares about
// one object: its attributes, the byte ranges it is read in, the typed error of
// a foreign system, and the closed set of ends with the map from a class of
// error to what becomes of the message. It is a leaf: it imports nothing of ours
// and no SDK.
package object

import (
	"errors"
	"fmt"
	"time"
)

// Side says which system an error came from.
type Side string

// The foreign systems.
const (
	Source      Side = "source"      // Tencent COS
	Destination Side = "destination" // the overseas S3 bucket
	Logs        Side = "logs"        // the S3 bucket that holds access logs
	Queue       Side = "queue"       // SQS
)

// Class is what an error means, independent of the vendor that sent it. One
// table (see EndOf and DetailOf) maps a class to what becomes of the message.
type Class string

const (
	// Absent: an authentic answer says NoSuchKey.
	Absent Class = "absent"
	// Denied: an authentic 403 that may be about this object alone. Whether it
	// is, a reference read decides (guard.Refused).
	Denied Class = "denied"
	// Refused: the whole dependency refuses us (NoSuchBucket, a bad signature, a
	// revoked policy or KMS grant, PathStyleDomainForbidden).
	Refused Class = "refused"
	// Archived: an archive storage class that is not restored.
	Archived Class = "archived"
	// Unfit: the object cannot exist at the destination.
	Unfit Class = "unfit"
	// Throttled: 429, SlowDown, RequestLimitExceeded, 503 with such a code.
	Throttled Class = "throttled"
	// Unavailable: no answer, a cut connection, 5xx, a deadline, or an answer
	// that is not authentically the vendor's.
	Unavailable Class = "unavailable"
	// Changed: the source object is no longer the version that was pinned.
	Changed Class = "changed"
	// Corrupt: bytes that do not fit their length, range or checksum.
	Corrupt Class = "corrupt"
	// Mangled: a write was committed, and S3 itself says that what it stored is not
	// what was sent. Neither repeating nor looking heals it; a human must.
	Mangled Class = "mangled"
	// Exists: a create-only write met an object that is already there (412).
	Exists Class = "exists"
	// Ambiguous: a write may or may not have been committed; look.
	Ambiguous Class = "ambiguous"
	// Unknown: a 4xx that nobody foresaw; retried, then failed.
	Unknown Class = "unknown"
	// Canceled: our own doing (a drain, a lost lease, a closed gate). It never
	// counts against a dependency or a message.
	Canceled Class = "canceled"
)

// Error is what an adapter of a foreign system returns, always: SDK types end at
// the adapter.
type Error struct {
	Side  Side
	Op    string // the vendor's name of the operation, such as "GetObject"
	Key   string // decoded; bytes from strangers, never put it in a label
	Class Class
	Code  string // the vendor's code, such as "SlowDown"; or "http 502"
	Hint  string // what an operator can do; may be empty
	// RetryAfter is what the server asked us to wait, 0 when it did not say.
	RetryAfter time.Duration
	Err        error // the cause; must hold no secret
}

// Error reads "source GetObject "key": denied (AccessDenied): cause; hint".
func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s", e.Side, e.Op)
	if e.Key != "" {
		s += fmt.Sprintf(" %q", e.Key)
	}
	s += ": " + string(e.Class)
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of the first *Error in err's chain, "" for nil and
// Unknown for an error that has none.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}

// CodeOf returns the vendor's code of the first *Error in err's chain, or "".
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
