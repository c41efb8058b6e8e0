package accesslog

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reading is what a row comes to.
type reading struct {
	Verdict Verdict
	Why     Why
	Fields  [11]string // "" for a dash; see fieldsOf
	Time    time.Time
	Key     string
}

// readingOf collects what Parse found.
func readingOf(r *Row) reading {
	got := reading{Verdict: r.Verdict, Why: r.Why, Time: r.Time(), Key: string(r.Key())}
	for i, f := range [][]byte{
		r.Owner, r.Bucket, r.RemoteIP, r.Requester, r.RequestID, r.Operation, r.KeyRaw, r.RequestURI,
		r.ErrorCode, r.numbers, r.tail,
	} {
		got.Fields[i] = string(f)
	}
	return got
}

const (
	refOperation = `([A-Za-z][A-Za-z0-9_-]*\.[A-Za-z0-9_.-]*)`
	refBlock     = `(\d{3}|-) ([A-Za-z][A-Za-z0-9._]{0,63}|-) ((?:\d{1,18}|-) (?:\d{1,18}|-) (?:\d{1,18}|-) (?:\d{1,18}|-)) (["-].*)$`
)

var (
	refStart  = regexp.MustCompile(`(?s)^([^ ]+) ([^ ]+) \[(.*)`)
	refTime   = regexp.MustCompile(`^(\d\d/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:\d\d:\d\d:\d\d [+-](?:[01]\d|2[0-3])[0-5]\d)\] `)
	refIP     = regexp.MustCompile(`(?s)^([^ ]+) (.*)$`)
	refHead   = regexp.MustCompile(`(?s)^(.+) ([^ ]+) ` + refOperation + ` ([^ ]+) $`)
	refQuoted = regexp.MustCompile(`(?s)^(.*?)" ` + refBlock)
	refBare   = regexp.MustCompile(`(?s)^(.+?) ([^ ]+) ` + refOperation + ` ([^ ]+) - ` + refBlock)
	refRead   = regexp.MustCompile(`^((REST|WEBSITE)\.(GET|HEAD)\.OBJECT|REST\.COPY\.OBJECT_GET)$`)
	refTwice  = regexp.MustCompile(`%(25|2[Bb])`)
	refOwn    = regexp.MustCompile(`[ "]app/objectferry([ "]|$)`)
)

// reference reads a row as the documentation of this package has it, with
// regular expressions and without a thought of speed.
func reference(line string) reading {
	line = strings.TrimRight(line, "\r\n")
	line = strings.TrimPrefix(line, "\uFEFF")
	if line == "" {
		return reading{Verdict: Ignored}
	}
	if line[0] == '{' {
		return reading{Verdict: Unparsed, Why: JSONForm}
	}
	start := refStart.FindStringSubmatch(line)
	if start == nil {
		return reading{Verdict: Unparsed, Why: NotARow}
	}
	stamp := refTime.FindStringSubmatch(start[3])
	if stamp == nil {
		return reading{Verdict: Unparsed, Why: BadTime}
	}
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp[1])
	if err != nil {
		return reading{Verdict: Unparsed, Why: BadTime}
	}
	ip := refIP.FindStringSubmatch(start[3][len(stamp[0]):])
	if ip == nil {
		return reading{Verdict: Unparsed, Why: NotARow}
	}

	var head, block []string
	uri := "-"
	before, after, quoted := strings.Cut(ip[2], `"`)
	if head = refHead.FindStringSubmatch(before); quoted && head != nil {
		m := refQuoted.FindStringSubmatch(after)
		if m == nil {
			return reading{Verdict: Unparsed, Why: NoStatus}
		}
		uri, block = m[1], m[2:]
	} else {
		m := refBare.FindStringSubmatch(ip[2])
		if m == nil {
			return reading{Verdict: Unparsed, Why: NotARow}
		}
		head, block = m, m[5:]
	}
	got := reading{Time: when.UTC(), Fields: [11]string{
		start[1], start[2], ip[1], head[1], head[2], head[3], head[4], uri, block[1], block[2], block[3],
	}}
	for i, f := range got.Fields {
		if f == "-" && i > 1 && i < 9 {
			got.Fields[i] = ""
		}
	}
	got.Key = referenceKey(got.Fields[1], got.Fields[5], got.Fields[6], got.Fields[7])
	got.Verdict, got.Why = referenceVerdict(got, block[0])
	return got
}

func referenceVerdict(r reading, status string) (Verdict, Why) {
	requester, op, keyRaw, code, tail := r.Fields[3], r.Fields[5], r.Fields[6], r.Fields[8], r.Fields[10]
	isRead := refRead.MatchString(op)
	isMiss := status == "404" && code == "NoSuchKey"
	isMaybe := status == "403" && code == "AccessDenied"
	switch {
	case strings.HasPrefix(op, "S3."):
		return Skip, System
	case !isRead:
		return Skip, NotARead
	case keyRaw == "":
		return Skip, NoKey
	case status[0] == '2' || status[0] == '3':
		return Skip, Hit
	case !isMiss && !isMaybe:
		return Skip, OtherError
	case requester != "" && refOwn.MatchString(tail):
		return Skip, Own
	case r.Key == "":
		return Unparsed, BadKey
	case isMiss:
		return Miss, NoSuchKey
	}
	return Maybe, AccessDenied
}

// referenceKey returns "" for a key that is not there or cannot be decoded.
func referenceKey(bucket, op, raw, uri string) string {
	once, err := url.QueryUnescape(raw)
	if err != nil {
		return ""
	}
	if op == "BATCH.DELETE.OBJECT" || strings.HasPrefix(op, "S3.") {
		return once
	}
	twice, err := url.QueryUnescape(once)
	if err != nil {
		twice = ""
	}
	isOnce, isTwice := referenceNames(uri, bucket, once), twice != "" && referenceNames(uri, bucket, twice)
	if isOnce && !isTwice {
		return once
	}
	if isTwice && !isOnce {
		return twice
	}
	if rest := refTwice.ReplaceAllString(raw, ""); strings.ContainsAny(rest, "%+") {
		return once
	}
	return twice
}

// referenceNames tries each meaning that the pluses of a path can have together
// with the key.
func referenceNames(uri, bucket, key string) bool {
	_, path, _ := strings.Cut(uri, " ")
	if i := strings.LastIndex(path, " HTTP/"); i >= 0 {
		path = path[:i]
	}
	path, _, _ = strings.Cut(path, "?")
	if i := strings.Index(path, "://"); i >= 0 && path[0] != '/' {
		path = path[i+3:]
		if j := strings.IndexByte(path, '/'); j >= 0 {
			path = path[j:]
		}
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for _, prefix := range []string{"/", "/" + bucket + "/"} {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		pattern := "(?s)^"
		for i, part := range strings.Split(rest, "+") {
			plain, err := url.PathUnescape(part)
			if err != nil {
				return false
			}
			if i > 0 {
				pattern += "[+ ]"
			}
			pattern += regexp.QuoteMeta(latin1(plain))
		}
		if regexp.MustCompile(pattern + "$").MatchString(latin1(key)) {
			return true
		}
	}
	return false
}

// latin1 makes a rune of each byte, as regular expressions cannot tell apart
// bytes that are not UTF-8.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// agree checks one line against the reference: with a Row that has seen other
// rows and with a fresh one.
func agree(t *testing.T, used *Row, line string) {
	t.Helper()
	want := reference(line)
	used.Parse([]byte(line))
	if diff := cmp.Diff(want, readingOf(used)); diff != "" {
		t.Fatalf("%q:\n%s", line, diff)
	}
	var fresh Row
	fresh.Parse([]byte(line))
	if diff := cmp.Diff(fresh.Fields(), used.Fields()); diff != "" {
		t.Fatalf("%q: a used row differs:\n%s", line, diff)
	}
}

// slots are the parts of a row in their order, sound ones and others.
var slots = [][]string{
	{"o overseas-media ", "o overseas-media ", "o overseas-media ", "79a59df900b9 b ", "o  b ", "\uFEFFo overseas-media "},
	{"[04/Sep/2026:08:00:37 +0000] ", "[04/Sep/2026:23:59:59 +0000] ", "[05/Sep/2026:23:59:59 -0130] ", "[31/Feb/2026:08:00:37 +0000] ", "[04/Sep/2026:24:00:37 +0000] ", "[x] "},
	{"203.0.113.9 ", "203.0.113.9 ", "203.0.113.9 ", "- "},
	{"- ", "- ", "79a59df900b9 ", "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E2 ", "- - - "},
	{"3E57427F3EXAMPLE ", "3E57427F3EXAMPLE ", "e5042925-b524-4b3b-a869-f3881e78ff3a ", "- "},
	{"REST.GET.OBJECT ", "REST.GET.OBJECT ", "REST.HEAD.OBJECT ", "REST.COPY.OBJECT_GET ", "S3.EXPIRE.OBJECT ", "REST.PUT.OBJECT ", "BATCH.DELETE.OBJECT ", "NOPE "},
	{"a ", "a%2Bb ", "a%252Bb%2520c ", "a%20b ", "a+b ", "%25E4%25BD%25A0 ", "bad%zz ", "100%25 ", "100%2525 ", "%2525zz ", "- ", "/ ", "%25FF "},
	{`"GET /`, `"GET /`, `"GET /overseas-media/`, `"GET http://h/`, `"GET `, `"`, "- "},
	{"a", "a+b", "a%2Bb", "a%20b", "100%25", "100%2525", "a%252Bb%2520c", "-", "", `a?x="404"&y="`, "\xff"},
	{` HTTP/1.1" `, ` HTTP/1.1" `, `?x HTTP/1.1" `, `" `, ""},
	{"404 NoSuchKey ", "404 NoSuchKey ", "403 AccessDenied ", "200 - ", "- - ", "503 SlowDown ", "304 - ", "40 x ", "404 "},
	{"287 - 9 - ", "- - - - ", "1 12345678 123456789 123456789012345678 ", "1234567890123456789 - - - ", "1 2 3 x "},
	{`"-" "curl/8.4.0" -`, `"-" "aws-sdk-go-v2/1.48.0 app/objectferry m/E" - x= SigV4`, `"app/objectferry" "-" -`, "- - -", `"-" "x app/objectferryX"`, "x", ""},
	{"", "", "\r", "\r\n", ` "future field"`},
}

// odd are what may stand between two parts.
var odd = []string{
	" ", `"`, "-", " - ", `" "`, `"-"`, "\r", "\t", "\x00", "\xff", "{", "%", "+", "/", "app/objectferry", ` "app/objectferry"`,
	" 404 NoSuchKey 287 - 9 - ", `" 404 NoSuchKey 1 1 1 1 "`, `" 200 - 1 1 1 1 "z" `, ` - 404 NoSuchKey - - - - - - -`, ` - 204 - - 1 - - - - -`,
	"REST.GET.OBJECT ", "a ", "12345678 ", "- ID REST.GET.OBJECT a - 404 NoSuchKey - - - - - ",
}

// compose makes a line: two choices a slot, one of the part, mostly a sound one,
// and one of what is odd about it, mostly nothing.
func compose(choices []byte) string {
	var b strings.Builder
	for i, slot := range slots {
		part, oddity := 0, 255
		if 2*i+1 < len(choices) {
			part, oddity = max(0, int(choices[2*i])-150), int(choices[2*i+1])
		}
		b.WriteString(slot[part%len(slot)])
		if oddity < len(odd) {
			b.WriteString(odd[oddity])
		}
	}
	return b.String()
}
