// Package accesslog reads S3 server access logs: which rows tell of an object
// that somebody asked for and the bucket did not have, and under which key.
//
// The rows look simpler than they are. Three fields are quoted, but S3 escapes
// nothing inside the quotes, and all three hold the client's text: a client can
// imitate the rest of a row there. The requester may hold spaces and is not
// quoted. So a row is read from the left, as far as S3 wrote it: the fields up to
// the request-URI hold no quote, and the first place behind the request-URI where
// status, error code and four numbers stand is S3's, because an HTTP request line
// cannot hold what imitates it. Where the referer ends and the user agent begins
// cannot be decided; nothing but the display of these two depends on it.
//
// A row is judged alone and without configuration, see Verdict. What a caller
// knows besides (routes, the age limit, its own role) comes after that.
//
// Reading does not allocate per row, and memory is bounded whatever the log holds.
// A Scanner and its Row are for one goroutine; a Role is safe for concurrent use.
package accesslog

// Verdict is what a row means, judged alone.
type Verdict string

// The verdicts; a closed set.
const (
	// Miss: an object was read and is not there: 404 NoSuchKey.
	Miss Verdict = "miss"
	// Maybe: 403 AccessDenied for a read. S3 answers so for a missing key, too,
	// when the caller may not list the bucket; only the caller's owner knows.
	Maybe Verdict = "maybe"
	// Skip: a sound row that is not about a missing object.
	Skip Verdict = "skip"
	// Unparsed: not a row, or its key cannot be decoded.
	Unparsed Verdict = "unparsed"
	// Ignored: a blank line. A Scanner passes over these.
	Ignored Verdict = "ignored"
)

// Why says what a verdict rests on; a closed set, and so fit for a label.
type Why string

// Why a row is a Miss or a Maybe: S3's error code.
const (
	NoSuchKey    Why = "NoSuchKey"
	AccessDenied Why = "AccessDenied"
)

// Why a row is skipped.
const (
	NotARead   Why = "not a read"  // a write, a list, a sub-resource, or an operation nobody knows
	System     Why = "system"      // S3's own doing, such as a lifecycle expiry
	NoKey      Why = "no key"      // a read that names no object
	Hit        Why = "hit"         // answered: 2xx or 3xx
	OtherError Why = "other error" // any error but the two that can mean a missing key
	Own        Why = "own"         // objectferry's own request, see Row.IsOwn
)

// Why a row is unparsed.
const (
	NotARow  Why = "not a row"
	JSONForm Why = "json"      // the form that CloudWatch delivers the same logs in
	BadTime  Why = "bad time"  // no time, so no age
	NoStatus Why = "no status" // cut off, or no status block behind the request-URI
	BadKey   Why = "bad key"   // broken escapes: the raw key is there, a guess is not made
	TooLong  Why = "too long"  // over MaxLine
)

// MaxLine is the longest line that is read, in bytes without its line end. A
// longer one counts as one row, Unparsed.
const MaxLine = 1 << 20
