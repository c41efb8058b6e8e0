package explain

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/objectferry/objectferry/internal/copier"
	"github.com/objectferry/objectferry/internal/object"
)

// The states of an answer beside the classes of errors, such as "absent", "denied"
// or "unavailable".
const (
	Present  = "present"
	Missing  = "missing" // nothing stands at the destination
	Deleted  = "deleted" // a delete marker stands there
	NotAsked = "not asked"
)

// Answer is what a store says of the key now.
type Answer struct {
	State        string     `json:"state"`
	Size         *int64     `json:"size,omitempty"` // bytes
	ETag         string     `json:"etag,omitempty"`
	CRC64        string     `json:"crc64,omitempty"` // CRC-64/ECMA in decimal
	StorageClass string     `json:"storage_class,omitempty"`
	LastModified *time.Time `json:"last_modified,omitempty"`
	CopyID       string     `json:"copy_id,omitempty"`     // the ferry's, when the ferry wrote it
	SourceETag   string     `json:"source_etag,omitempty"` // of the version that the ferry copied
	Code         string     `json:"code,omitempty"`        // the vendor's, of a refusal
	Note         string     `json:"note,omitempty"`
}

// Answered reports whether the store gave an answer that says something of the key
// or of us.
func (a *Answer) Answered() bool {
	switch object.Class(a.State) {
	case object.Unavailable, object.Throttled, object.Canceled:
		return false
	}
	return true
}

func found(a object.Attributes) *Answer {
	answer := &Answer{State: Present, Size: &a.Size, ETag: a.ETag, StorageClass: a.StorageClass}
	if a.StorageClass == "" {
		answer.StorageClass = "STANDARD" // neither store sends that one
	}
	if a.HasCRC64 {
		answer.CRC64 = strconv.FormatUint(a.CRC64, 10)
	}
	if !a.LastModified.IsZero() {
		answer.LastModified = &a.LastModified
	}
	return answer
}

// refusal is an answer that is an error.
func refusal(err error) *Answer {
	a := &Answer{State: string(object.ClassOf(err)), Code: object.CodeOf(err)}
	var e *object.Error
	if !errors.As(err, &e) {
		a.Note = err.Error()
		return a
	}
	if e.Err != nil {
		a.Note = e.Err.Error()
	}
	if e.Hint != "" {
		a.Note += "; " + e.Hint
	}
	return a
}

// source remembers what the copier was last answered.
type source struct {
	copier.Source
	asked bool
	read  object.Attributes
	err   error
}

func (s *source) Get(ctx context.Context, key string, r object.Range, pin string) (*object.Read, error) {
	read, err := s.Source.Get(ctx, key, r, pin)
	if s.asked && object.ClassOf(err) == object.Canceled {
		return nil, err // by the end of the copy, which says nothing of the source
	}
	s.asked, s.err = true, err
	if err == nil {
		s.read = read.Attributes
	}
	return read, err
}

// answer is what the copier was told, or, where it had no need to ask, what one
// byte tells now.
func (s *source) answer(ctx context.Context, key string) *Answer {
	if !s.asked {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if read, err := s.Get(ctx, key, object.Range{Length: 1}, ""); err == nil {
			read.Body.Close()
		}
	}
	if s.err != nil {
		return refusal(s.err)
	}
	return found(s.read)
}

// destination remembers what the copier was last answered.
type destination struct {
	copier.Destination
	asked bool
	found object.Found
	err   error
}

func (d *destination) Head(ctx context.Context, key string) (object.Found, error) {
	found, err := d.Destination.Head(ctx, key)
	d.asked, d.found, d.err = true, found, err
	return found, err
}

// answer is what the copier was told, or what a HEAD tells now.
func (d *destination) answer(ctx context.Context, key string) *Answer {
	if !d.asked {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, _ = d.Head(ctx, key) // remembered
	}
	switch {
	case d.err != nil:
		return refusal(d.err)
	case d.found.Exists:
		a := found(d.found.Attributes)
		a.CopyID, a.SourceETag = d.found.CopyID, d.found.SourceETag
		return a
	case d.found.Deleted:
		return &Answer{State: Deleted}
	}
	return &Answer{State: Missing}
}

var errReached = errors.New("a write would begin here, and explain writes nothing")

// ending ends a copy where its first write would begin.
type ending struct {
	ctx     context.Context // of the copy
	cancel  context.CancelCauseFunc
	reached atomic.Bool
}

func newEnding(ctx context.Context) *ending {
	e := &ending{}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	return e
}

// readOnly lets reads pass. Anything else ends the copy instead of being sent.
func (e *ending) readOnly(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet || req.Method == http.MethodHead {
			return next.RoundTrip(req)
		}
		if req.Body != nil {
			req.Body.Close()
		}
		e.reached.Store(true)
		e.cancel(errReached)
		return nil, errReached
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
