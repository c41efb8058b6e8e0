package object

// End is how a delivery was settled: a closed set. The same words stand in
// metrics, logs, spans, dead letters, the command line and the docs.
type End string

// The ends of a log notification.
const (
	EndParsed End = "parsed" // every miss in the log was accepted by a sync queue
	EndGone   End = "gone"   // the log object was already consumed and deleted
)

// The ends of a sync request.
const (
	EndCopied   End = "copied"   // we wrote it
	EndPresent  End = "present"  // it was there
	EndAbsent   End = "absent"   // the source says NoSuchKey
	EndFiltered End = "filtered" // the route does not carry it, or it was deleted overseas on purpose
	EndDenied   End = "denied"   // this object is refused, others are not
	EndArchived End = "archived" // archive class, not restored
	EndUnfit    End = "unfit"    // it cannot exist at the destination
)

// The ends of both; these are dead letters.
const (
	EndPoison End = "poison" // the message cannot be read at all
	EndFailed End = "failed" // receives ran out; Detail names the last cause
)

// Detail says why a delivery ended as it did; short, no secrets, a closed set.
type Detail string

// The details of EndFailed.
const (
	DetailThrottled   Detail = "throttled"
	DetailUnavailable Detail = "unavailable"
	DetailChanged     Detail = "changed"
	DetailCorrupt     Detail = "corrupt"
	DetailUnrouted    Detail = "unrouted"
	DetailInterrupted Detail = "interrupted"
	DetailUnknown     Detail = "unknown"
	DetailDenied      Detail = "denied" // a log object that stays refused while others are let through
)

// Details of other ends.
const (
	DetailEmpty     Detail = "empty"     // EndParsed: not a single row
	DetailDeleted   Detail = "deleted"   // EndFiltered: a delete marker stands at the destination
	DetailObserved  Detail = "observed"  // EndFiltered: the route only counts what it would copy
	DetailUndecoded Detail = "undecoded" // EndPoison: the body is not one of ours
	DetailForeign   Detail = "foreign"   // EndPoison: a bucket or prefix that the configuration does not name
	DetailMissing   Detail = "missing"   // EndPoison: the log object is not there although logs are kept
)

// DetailOf names the cause of a delivery that is not settled yet.
func DetailOf(c Class) Detail {
	switch c {
	case Throttled:
		return DetailThrottled
	case Unavailable, Ambiguous, Refused:
		return DetailUnavailable
	case Changed:
		return DetailChanged
	case Corrupt, Mangled:
		return DetailCorrupt
	case Denied:
		return DetailDenied
	default:
		return DetailUnknown
	}
}

// EndOf maps the class of an object-level answer to the end it settles, and
// reports false for a class that settles nothing.
func EndOf(c Class) (End, bool) {
	switch c {
	case Absent:
		return EndAbsent, true
	case Denied: // only after guard.Refused let a reference through
		return EndDenied, true
	case Archived:
		return EndArchived, true
	case Unfit:
		return EndUnfit, true
	case Exists:
		return EndPresent, true
	}
	return "", false
}
