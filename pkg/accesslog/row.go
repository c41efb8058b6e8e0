package accesslog

import (
	"bytes"
	"time"
)

// Row is one row of a log. It is made to be used again for the next row. The
// slices point into the line or into the Row: they are valid until the next call
// of Parse or of the Scanner's Next, and must not be changed. A field that S3
// left empty ("-") is nil. Where the verdict is Unparsed, only BadKey leaves
// fields that are set.
type Row struct {
	Verdict Verdict
	Why     Why

	Owner      []byte // canonical id of the bucket's owner
	Bucket     []byte
	RemoteIP   []byte
	Requester  []byte // nil for an anonymous request; may hold spaces
	RequestID  []byte
	Operation  []byte // such as REST.GET.OBJECT
	KeyRaw     []byte // as it stands in the log; see Key
	RequestURI []byte // the request line; client's text
	Status     int    // 0 when S3 wrote none
	ErrorCode  []byte

	kind    kind
	time    []byte // the 26 bytes between the brackets, checked
	numbers []byte // bytes sent, object size, total time, turn-around time
	tail    []byte // referer and all that follows

	decoded bool   // key is this row's
	key     []byte // nil when KeyRaw cannot be decoded

	// What outlives a row, to spare work and allocations.
	origin   []byte    // the last sound beginning: owner, bucket and date
	ownerLen int       // of the owner in origin
	midnight time.Time // of the date in origin; zero where its zone is not +0000
	scratch  [2][]byte // what keys are decoded into
}

// Parse reads and judges one line, with or without its line end. It does not
// retain the line beyond the next call.
func (r *Row) Parse(line []byte) {
	line = trim(line)
	if len(line) == 0 {
		r.clear(Ignored, "")
		return
	}
	if why := r.split(line); why != "" {
		r.clear(Unparsed, why)
		return
	}
	r.decoded = false
	r.Verdict, r.Why = r.judge()
}

// clear leaves r without fields: what was found before a row turned out to be
// none is not to be trusted. A sound row has all fields set anew and is not
// cleared, which would cost a tenth of the time.
func (r *Row) clear(v Verdict, why Why) {
	*r = Row{Verdict: v, Why: why, origin: r.origin, ownerLen: r.ownerLen, midnight: r.midnight, scratch: r.scratch}
}

// trim takes away the line end and a byte-order mark.
func trim(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	if len(line) > 0 && line[0] == 0xEF {
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return line
}

// judge looks at as little as it can, in an order that settles most rows early.
// The key is decoded only where something hangs on it.
func (r *Row) judge() (Verdict, Why) {
	switch {
	case r.kind == system:
		return Skip, System
	case r.kind != read:
		return Skip, NotARead
	case r.KeyRaw == nil:
		return Skip, NoKey
	case r.Status >= 200 && r.Status < 400:
		return Skip, Hit
	}
	verdict, why := Skip, OtherError
	switch {
	case r.Status == 404 && string(r.ErrorCode) == string(NoSuchKey):
		verdict, why = Miss, NoSuchKey
	case r.Status == 403 && string(r.ErrorCode) == string(AccessDenied):
		verdict, why = Maybe, AccessDenied
	default:
		return verdict, why
	}
	if r.IsOwn() {
		return Skip, Own
	}
	if r.Key() == nil {
		return Unparsed, BadKey
	}
	return verdict, why
}

// kind is what an operation means to somebody who looks for missing objects.
type kind int

const (
	unknown kind = iota
	other
	read
	system
)

// kindOf returns unknown for what does not have the shape of an operation: parts
// of letters, digits, '_' and '-', joined by dots.
func kindOf(op []byte) kind {
	switch string(op) {
	case "REST.GET.OBJECT", "REST.HEAD.OBJECT", "WEBSITE.GET.OBJECT", "WEBSITE.HEAD.OBJECT",
		"REST.COPY.OBJECT_GET": // the reading half of a server-side copy
		return read
	}
	if len(op) == 0 || !isLetter(op[0]) || bytes.IndexByte(op, '.') < 0 {
		return unknown
	}
	for _, c := range op {
		if !isLetter(c) && !isDigit(c) && c != '.' && c != '_' && c != '-' {
			return unknown
		}
	}
	if bytes.HasPrefix(op, []byte("S3.")) {
		return system
	}
	return other
}

var ownToken = []byte("app/objectferry")

// IsOwn reports whether objectferry made this request: its token stands in the
// user agent, and the request was signed. An anonymous stranger who sends the
// token hides nothing.
//
// The token is looked for in all that follows the numbers, as nobody can tell
// where the user agent begins.
func (r *Row) IsOwn() bool {
	if r.Requester == nil {
		return false
	}
	for rest := r.tail; ; {
		i := bytes.Index(rest, ownToken)
		if i < 0 {
			return false
		}
		end := i + len(ownToken)
		if i > 0 && isBoundary(rest[i-1]) && (end == len(rest) || isBoundary(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func isBoundary(c byte) bool { return c == ' ' || c == '"' }

// Time is when the request was received; the zero time if the row is Unparsed
// with no fields.
func (r *Row) Time() time.Time {
	if len(r.time) == timeLen && !r.midnight.IsZero() {
		inDay, _ := parseClock(r.time[dateLen:])
		return r.midnight.Add(inDay)
	}
	t, _ := parseTime(r.time)
	return t
}
