package parse

import (
	"time"

	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

// Why a row that would be a miss by itself is skipped.
const (
	whyNoRoute  accesslog.Why = "no route"
	whyFiltered accesslog.Why = "filtered"
	whyStale    accesslog.Why = "stale"
	whyRepeated accesslog.Why = "repeated"
	whyObserved accesslog.Why = "observed" // the route only counts
)

// Judge says what a row means with what is known besides it: the route of its
// bucket, nil where there is none, the ferry's own role, and the time. A Miss is to
// be carried, whatever was asked for before.
func Judge(row *accesslog.Row, r *route.Route, own accesslog.Role, now time.Time) (accesslog.Verdict, accesslog.Why) {
	switch {
	case row.Verdict != accesslog.Miss && row.Verdict != accesslog.Maybe:
		return row.Verdict, row.Why
	case r == nil:
		return accesslog.Skip, whyNoRoute
	case row.Verdict == accesslog.Maybe && !r.ForbiddenIsMiss:
		return accesslog.Maybe, row.Why
	case own.Made(row):
		return accesslog.Skip, accesslog.Own
	case !r.Carries(string(row.Key())):
		return accesslog.Skip, whyFiltered
	case now.Sub(row.Time()) > time.Duration(r.MaxAge):
		return accesslog.Skip, whyStale
	}
	return accesslog.Miss, row.Why
}

// Answered says who answered a visitor's read: S3, or nobody there. It asks what
// the visitor saw, not what the ferry makes of it. The ferry's own requests, copies
// within S3, other errors, and a 403 that the route does not take for a miss are
// neither.
func Answered(row *accesslog.Row, r *route.Route, own accesslog.Role) (s3, miss bool) {
	s3 = row.Verdict == accesslog.Skip && row.Why == accesslog.Hit
	miss = row.Verdict == accesslog.Miss || row.Verdict == accesslog.Maybe && r.ForbiddenIsMiss
	if !s3 && !miss || string(row.Operation) == "REST.COPY.OBJECT_GET" || own.Made(row) || row.IsOwn() {
		return false, false
	}
	return s3, miss
}
