package accesslog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The parts of a row that tests put together.
const (
	origin = "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be overseas-media [04/Sep/2026:08:03:42 +0000] 203.0.113.9"
	rest   = `"-" "curl/8.4.0" - OZuY1r41w9= - ECDHE-RSA-AES128-GCM-SHA256 - overseas-media.s3.amazonaws.com TLSv1.2 - - -`
	signed = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/i-0123456789abcdef0"
)

func missOf(key, uri string) string {
	return origin + ` - LA84XWKKUSHBQJPC REST.GET.OBJECT ` + key + ` "` + uri + `" 404 NoSuchKey 287 - 9 - ` + rest
}

func TestReadingEqualsTheReference(t *testing.T) {
	var row Row
	for _, c := range cases(t) {
		agree(t, &row, c.Line)
	}
	lines, random := 8_000, rand.New(rand.NewPCG(1, 2))
	for range lines {
		choices := make([]byte, 2*len(slots))
		for i := range choices {
			choices[i] = byte(random.IntN(256))
		}
		agree(t, &row, compose(choices))
	}
}

// Each case, cut off at each place and with each byte replaced.
func TestDamagedRowsEqualTheReference(t *testing.T) {
	var row Row
	for i, c := range cases(t) {
		if i%16 != 0 { // these regular expressions are slow
			continue
		}
		for at := range len(c.Line) {
			agree(t, &row, c.Line[:at])
			agree(t, &row, c.Line[:at]+`"`+c.Line[at:])
			agree(t, &row, c.Line[:at]+` `+c.Line[at+1:])
		}
	}
}

func FuzzRow(f *testing.F) {
	for _, c := range cases(f) {
		f.Add([]byte(c.Line), true)
	}
	for i := range odd {
		f.Add(bytes.Repeat([]byte{byte(i), byte(i), 0, 255}, len(slots)/2), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		var row Row
		row.Parse([]byte(missOf("a%2520b", "GET /a%20b HTTP/1.1"))) // something to leave behind
		if raw {
			agree(t, &row, string(data))
		} else {
			agree(t, &row, compose(data))
		}
	})
}

func TestRowThatIsNotAMissCostsNoAllocation(t *testing.T) {
	var row Row
	for _, c := range cases(t) {
		line := []byte(c.Line)
		if n := testing.AllocsPerRun(10, func() { row.Parse(line) }); n != 0 {
			t.Errorf("case %d (%s): %v allocations", c.ID, c.Verdict, n)
		}
	}
}

func TestClientCannotImitateAStatus(t *testing.T) {
	const head = origin + ` - LA84XWKKUSHBQJPC REST.GET.OBJECT a "GET /a HTTP/1.1" `
	tests := map[string]struct {
		line string
		want Verdict
	}{
		"miss in the referer": {head + `200 - 1 1 1 1 "x" 404 NoSuchKey 1 1 1 1 "y" "z" - h=`, Skip},
		"miss in the agent":   {head + `200 - 1 1 1 1 "-" "x" 404 NoSuchKey 1 1 1 1 "y" "z" - h=`, Skip},
		"hit in the referer":  {head + `404 NoSuchKey 1 1 1 1 "x" 200 - 1 1 1 1 "y" "z" - h=`, Miss},
		"hit in the agent":    {head + `404 NoSuchKey 1 1 1 1 "-" "x" 200 - 1 1 1 1 "y" "z" - h=`, Miss},
		"bare miss in agent":  {head + `200 - 1 1 1 1 "-" "x REST.GET.OBJECT k - 404 NoSuchKey - - - - - - -" - h=`, Skip},
		"quotes in the URI":   {origin + ` - ID REST.GET.OBJECT a "GET /a?x="404"&y=" HTTP/1.1" 200 - 1 1 1 1 ` + rest, Skip},
		"text in the URI":     {origin + ` - ID REST.GET.OBJECT a "GET /a?x="%20404%20NoSuchKey HTTP/1.1" 200 - 1 1 1 1 ` + rest, Skip},
		"row in the agent":    {head + `200 - 1 1 1 1 "-" "` + missOf("b", "GET /b HTTP/1.1") + `" - h=`, Skip},
	}
	var row Row
	for name, test := range tests {
		if row.Parse([]byte(test.line)); row.Verdict != test.want || string(row.KeyRaw) != "a" {
			t.Errorf("%s: %s (%s) of %q", name, row.Verdict, row.Why, row.KeyRaw)
		}
	}
}

func TestRequesterMayHoldSpaces(t *testing.T) {
	const requester = "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E2EXAMPLEID"
	for _, uri := range []string{`"GET /a HTTP/1.1"`, "-"} {
		var row Row
		row.Parse([]byte(origin + " " + requester + " ID REST.GET.OBJECT a " + uri + ` 404 NoSuchKey 287 - 9 - ` + rest))
		if row.Verdict != Miss || string(row.Requester) != requester {
			t.Errorf("%s (%s), requester %q", row.Verdict, row.Why, row.Requester)
		}
	}
}

func TestOwnNeedsTheTokenAndASignature(t *testing.T) {
	const agent = "aws-sdk-go-v2/1.48.0 ua/2.1 api/s3#1.114.10 app/objectferry m/E,Z,e"
	tests := map[string]struct {
		requester, tail string
		want            Verdict
	}{
		"ours":                         {signed, `"-" "` + agent + `" - h=`, Skip},
		"token alone":                  {signed, `"-" "app/objectferry" - h=`, Skip},
		"at the end of a cut row":      {signed, `"-" "app/objectferry`, Skip},
		"behind a referer with quotes": {signed, `"x" "y" "` + agent + `" - h=`, Skip},
		"anonymous stranger":           {"-", `"-" "` + agent + `" - h=`, Miss},
		"anonymous in the referer":     {"-", `"app/objectferry" "curl" - h=`, Miss},
		"anonymous with a signature":   {"-", `"-" "x" ` + signed + ` "app/objectferry" - h=`, Miss},
		"another program":              {signed, `"-" "app/objectferry-lint" - h=`, Miss},
		"another program's end":        {signed, `"-" "myapp/objectferry" - h=`, Miss},
		"other role without token":     {signed, `"-" "curl/8.4.0" - h=`, Miss},
		"first another, then ours":     {signed, `"-" "app/objectferry2 app/objectferry" - h=`, Skip},
	}
	var row Row
	for name, test := range tests {
		row.Parse([]byte(origin + " " + test.requester + ` ID REST.HEAD.OBJECT a "HEAD /a HTTP/1.1" 404 NoSuchKey - - 8 - ` + test.tail))
		if row.Verdict != test.want || test.want == Skip && row.Why != Own {
			t.Errorf("%s: %s (%s)", name, row.Verdict, row.Why)
		}
	}
}

func TestOnlyReadsCanBeMisses(t *testing.T) {
	tests := map[string]Why{
		"REST.GET.OBJECT": NoSuchKey, "REST.HEAD.OBJECT": NoSuchKey,
		"WEBSITE.GET.OBJECT": NoSuchKey, "WEBSITE.HEAD.OBJECT": NoSuchKey, "REST.COPY.OBJECT_GET": NoSuchKey,
		"REST.GET.OBJECT_TAGGING": NotARead, "REST.PUT.OBJECT": NotARead, "REST.COPY.OBJECT": NotARead,
		"REST.GET.ACL": NotARead, "BATCH.DELETE.OBJECT": NotARead, "SOAP.GET.OBJECT": NotARead,
		"REST.NEW-THING.OBJECT.Later": NotARead, "S3.EXPIRE.OBJECT": System, "S3.COMPUTE.OBJECT.CHECKSUM": System,
		"OBJECT": NotARow, "404": NotARow, ".GET": NotARow, "REST.GÉT": NotARow,
	}
	var row Row
	for op, want := range tests {
		line := strings.Replace(missOf("a", "GET /a HTTP/1.1"), "REST.GET.OBJECT", op, 1)
		if row.Parse([]byte(line)); row.Why != want {
			t.Errorf("%s: %s (%s), want %s", op, row.Verdict, row.Why, want)
		}
	}
}

func TestOnlyTwoErrorsMeanAMissingKey(t *testing.T) {
	tests := []struct {
		status, code string
		want         Verdict
		why          Why
	}{
		{"404", "NoSuchKey", Miss, NoSuchKey},
		{"403", "AccessDenied", Maybe, AccessDenied},
		{"404", "NoSuchBucket", Skip, OtherError},
		{"404", "NoSuchVersion", Skip, OtherError},
		{"404", "-", Skip, OtherError},
		{"403", "NoSuchKey", Skip, OtherError},
		{"404", "AccessDenied", Skip, OtherError},
		{"403", "InvalidObjectState", Skip, OtherError},
		{"503", "SlowDown", Skip, OtherError},
		{"416", "InvalidRange", Skip, OtherError},
		{"-", "NoSuchKey", Skip, OtherError},
		{"200", "-", Skip, Hit},
		{"206", "-", Skip, Hit},
		{"304", "-", Skip, Hit},
		{"40", "NoSuchKey", Unparsed, NoStatus},
		{"4040", "NoSuchKey", Unparsed, NoStatus},
	}
	var row Row
	for _, test := range tests {
		line := strings.Replace(missOf("a", "GET /a HTTP/1.1"), "404 NoSuchKey", test.status+" "+test.code, 1)
		if row.Parse([]byte(line)); row.Verdict != test.want || row.Why != test.why {
			t.Errorf("%s %s: %s (%s)", test.status, test.code, row.Verdict, row.Why)
		}
	}
}

func TestRowWithoutAKeyIsNoMiss(t *testing.T) {
	var row Row
	if row.Parse([]byte(missOf("-", "GET / HTTP/1.1"))); row.Why != NoKey {
		t.Errorf("%s (%s)", row.Verdict, row.Why)
	}
}

func TestUnparsedRowHasNoFields(t *testing.T) {
	var row Row
	for _, line := range []string{"x", missOf("a", "GET /a HTTP/1.1")[:200], strings.Replace(missOf("a", ""), "Sep", "Spt", 1)} {
		row.Parse([]byte(missOf("a", "GET /a HTTP/1.1")))
		row.Parse([]byte(line))
		if got, want := readingOf(&row), (reading{Verdict: Unparsed, Why: row.Why}); got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestTimeIsChecked(t *testing.T) {
	tests := map[string]string{
		"04/Sep/2026:08:03:42 +0000": "2026-09-04T08:03:42Z",
		"04/Sep/2026:08:03:42 +0830": "2026-09-03T23:33:42Z",
		"04/Sep/2026:08:03:42 -0100": "2026-09-04T09:03:42Z",
		"29/Feb/2028:23:59:59 +0000": "2028-02-29T23:59:59Z",
		"29/Feb/2026:00:00:00 +0000": "",
		"00/Sep/2026:08:03:42 +0000": "",
		"04/sep/2026:08:03:42 +0000": "",
		"04/Sep/2026:24:03:42 +0000": "",
		"04/Sep/2026:08:60:42 +0000": "",
		"04/Sep/2026:08:03:60 +0000": "",
		"04/Sep/2026:08:03:4x +0000": "",
		"04/Sep/2026:08-03-42 +0000": "",
		"04/Sep/2026:08:03:42 +2400": "",
		"04/Sep/2026:08:03:42 +0060": "",
		"04/Sep/2026:08:03:42  0000": "",
		" 4/Sep/2026:08:03:42 +0000": "",
	}
	for stamp, want := range tests {
		// Once with the date of the row before, once with another.
		for _, before := range []string{stamp[:12] + "00:00:00 +0000", "01/Jan/2020:00:00:00 +0000"} {
			var row Row
			row.Parse([]byte(strings.Replace(missOf("a", "GET /a HTTP/1.1"), "04/Sep/2026:08:03:42 +0000", before, 1)))
			row.Parse([]byte(strings.Replace(missOf("a", "GET /a HTTP/1.1"), "04/Sep/2026:08:03:42 +0000", stamp, 1)))
			got := ""
			if row.Verdict == Miss {
				got = row.Time().Format(time.RFC3339)
			}
			if got != want || want == "" && row.Why != BadTime {
				t.Errorf("%s: %q (%s), want %q", stamp, got, row.Why, want)
			}
		}
	}
}

func TestNumbersOfAnyLengthAreRead(t *testing.T) {
	var row Row
	for digits := 1; digits <= 18; digits++ {
		for pad := range 9 { // the row ends shortly behind
			n := strings.Repeat("9", digits)
			line := fmt.Sprintf(`%s - ID REST.GET.OBJECT a "GET /a HTTP/1.1" 200 - %s %s %s %s -%s`, origin, n, n, n, n, strings.Repeat("x", pad))
			row.Parse([]byte(line))
			if f := row.Fields(); row.Why != Hit || f.BytesSent == nil || fmt.Sprint(*f.BytesSent) != n || fmt.Sprint(*f.TurnaroundMS) != n {
				t.Errorf("%d digits: %s, %+v", digits, row.Why, f)
			}
		}
	}
}

// What is remembered of the row before must not change the next one's time.
func TestTimeIsTheRowsWhateverCameBefore(t *testing.T) {
	var r Row
	for _, written := range []string{
		"04/Sep/2026:08:03:42 +0000", "04/Sep/2026:23:59:59 +0000", "04/Sep/2026:08:03:42 +0200", "04/Sep/2026:08:03:43 +0200",
		"04/Sep/2026:08:03:44 +0000", "05/Sep/2026:08:03:44 +0000", "31/Feb/2026:08:03:44 +0000", "05/Sep/2026:25:03:44 +0000", "05/Sep/2026:00:00:01 +0000",
	} {
		r.Parse([]byte("owner bucket [" + written + `] 203.0.113.9 - ID REST.GET.OBJECT key "GET /key HTTP/1.1" 200 - 7 7 9 1 "-" "curl/8.4.0" -`))
		want, err := time.Parse("02/Jan/2006:15:04:05 -0700", written)
		if got := r.Time(); !got.Equal(want) || (err != nil) != (r.Verdict == Unparsed) {
			t.Errorf("%s: %s with verdict %s, want %s", written, got, r.Verdict, want)
		}
	}
}
