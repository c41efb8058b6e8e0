package syncrequest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allBytes is a key of all 256 byte values.
func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func sample() Request {
	return Request{
		Bucket: "overseas-media",
		Key:    "münchen a.jpg",
		Seen:   time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC),
		Cause:  "NoSuchKey",
		Log:    "s3://log-bucket/access/2026-09-04-09-00-00-0123456789ABCDEF",
	}
}

const sampleBody = `{"v":1,"bucket":"overseas-media","key":"m%C3%BCnchen%20a.jpg","seen":"2026-09-04T08:03:42Z",` +
	`"cause":"NoSuchKey","log":"s3://log-bucket/access/2026-09-04-09-00-00-0123456789ABCDEF"}`

// Golden: messages of version 1 stay in queues across deploys.
func TestMessageOfVersion1IsStable(t *testing.T) {
	got, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleBody, got); diff != "" {
		t.Error(diff)
	}
	back, err := Decode(sampleBody)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), back); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTripKeepsEveryByte(t *testing.T) {
	for _, key := range []string{allBytes(), "/", "//a//", "..", "a+b", "100%.txt", "x[1]", "\xff\xfe", "\ufffe\uffff", "测试.jpg", strings.Repeat("\xff", 1024)} {
		want := sample()
		want.Key = key
		want.Log = "s3://log-bucket/" + key
		body, err := Encode(want)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		got, err := Decode(body)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBodyIsPrintableASCII(t *testing.T) {
	r := sample()
	r.Key, r.Log = allBytes(), allBytes()
	body, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(body) {
		if body[i] < 0x20 || body[i] > 0x7e {
			t.Fatalf("byte %#02x at %d", body[i], i)
		}
	}
}

func TestOnlyUnreservedCharactersAndSlashesStayAsTheyAre(t *testing.T) {
	const stay = "-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
	for _, c := range []byte(allBytes()) {
		want := fmt.Sprintf("%%%02X", c)
		if strings.IndexByte(stay, c) >= 0 {
			want = string(c)
		}
		if got := EscapeKey(string([]byte{c})); got != want {
			t.Errorf("%#02x became %s", c, got)
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	got, err := Decode(strings.Replace(sampleBody, `{"v":1,`, `{"v":1,"priority":{"bucket":"x"},"Bucket":"y","KEY":7,`, 1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
}

func TestCauseAndLogMayBeAbsent(t *testing.T) {
	want := sample()
	want.Cause, want.Log = "", ""
	body, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewerVersionIsNotMalformed(t *testing.T) {
	for _, body := range []string{
		`{"v":2}`,
		`{"v":2,"bucket":["a","b"],"key":null}`,
		strings.Replace(sampleBody, `"v":1`, `"v":7`, 1),
	} {
		_, err := Decode(body)
		if !errors.Is(err, ErrNewer) || errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestMalformedIsRefusedAndSaysWhy(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(sampleBody, old) {
			t.Fatalf("no %q in the sample", old)
		}
		return strings.Replace(sampleBody, old, new, 1)
	}
	tests := map[string]struct{ body, says string }{
		"empty":               {"", "not a JSON object"},
		"text":                {"hello", "not a JSON object"},
		"null":                {"null", "not a JSON object"},
		"array":               {"[]", "not a JSON object"},
		"no version":          {"{}", "v: missing"},
		"version 0":           {`{"v":0}`, "version 0"},
		"negative version":    {`{"v":-1}`, "version -1"},
		"version as text":     {`{"v":"1"}`, "v: not of the type"},
		"version as fraction": {`{"v":1.5}`, "v: not of the type"},
		"version null":        {`{"v":null}`, "v: not of the type"},
		"cut off":             {sampleBody[:60], "broken JSON"},
		"trailing text":       {sampleBody + "x", "text after"},
		"trailing object":     {sampleBody + sampleBody, "text after"},
		"duplicate":           {with(`{"v":1,`, `{"v":1,"bucket":"a",`), `"bucket": given twice`},
		"duplicate, not ours": {with(`{"v":1,`, `{"secret":1,"secret":2,"v":1,`), `a member is given twice`},
		"duplicate version":   {with(`{"v":1,`, `{"v":2,"v":1,`), `"v": given twice`},
		"no bucket":           {with(`"bucket"`, `"BUCKET"`), "bucket: missing"},
		"empty bucket":        {with("overseas-media", ""), "bucket: empty"},
		"bucket null":         {with(`"overseas-media"`, `null`), "bucket: not of the type"},
		"bucket with a slash": {with("overseas-media", "a/b"), "bucket: not a bucket name"},
		"long bucket":         {with("overseas-media", strings.Repeat("b", 256)), "bucket: not a bucket name"},
		"no key":              {with(`"key"`, `"Key"`), "key: missing"},
		"empty key":           {with("m%C3%BCnchen%20a.jpg", ""), "key: empty"},
		"bad escape":          {with("%20a", "%2"), "key: bad escape at byte 12"},
		"bad escape at end":   {with("a.jpg", "a.jpg%4"), "key: bad escape"},
		"no hex":              {with("%20", "%zz"), "key: bad escape"},
		"bare space":          {with("%20", " "), "key: byte 0x20 at 12 must be escaped"},
		"bare UTF-8":          {with("%C3%BC", "ü"), "key: byte 0xc3"},
		"bad log":             {with("s3://", "s3%//"), "log: bad escape"},
		"no time":             {with(`"seen"`, `"seem"`), "seen: missing"},
		"not a time":          {with("2026-09-04T08:03:42Z", "yesterday"), "seen: not a time"},
		"time without a zone": {with("42Z", "42"), "seen: not a time"},
		"zero time":           {with("2026-09-04T08:03:42Z", "0001-01-01T00:00:00Z"), "seen: not a time"},
		"cause with a space":  {with("NoSuchKey", "No Such"), "cause: not an error code"},
		"too large":           {with("a.jpg", strings.Repeat("a", MaxSize)), "are more than 65536"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(test.body)
			if !errors.Is(err, ErrMalformed) || errors.Is(err, ErrNewer) {
				t.Fatalf("error is %v", err)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
			if len(err.Error()) > 200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	tests := map[string]func(*Request){
		"no bucket":   func(r *Request) { r.Bucket = "" },
		"odd bucket":  func(r *Request) { r.Bucket = "a\xffb" },
		"wide bucket": func(r *Request) { r.Bucket = "\u0161\u0162" }, // ends in the bytes of letters
		"no key":      func(r *Request) { r.Key = "" },
		"no time":     func(r *Request) { r.Seen = time.Time{} },
		"far future":  func(r *Request) { r.Seen = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"odd cause":   func(r *Request) { r.Cause = "a\nb" },
		"endless key": func(r *Request) { r.Key = strings.Repeat("k", MaxSize) },
	}
	for name, change := range tests {
		r := sample()
		change(&r)
		if body, err := Encode(r); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: %v %s", name, err, body)
		}
	}
}

func TestTimeIsUTC(t *testing.T) {
	got, err := Decode(strings.Replace(sampleBody, "08:03:42Z", "16:03:42+08:00", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got.Seen != sample().Seen {
		t.Errorf("got %v", got.Seen)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sampleBody)
	f.Add(`{"v":2}`)
	f.Add(`{"v":1,"bucket":"b","key":"%00","seen":"2026-09-04T08:03:42.5+08:00"}`)
	f.Add(`{"v":1,"v":1}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := Decode(body)
		if err != nil {
			if errors.Is(err, ErrNewer) == errors.Is(err, ErrMalformed) {
				t.Fatalf("neither one nor the other: %v", err)
			}
			return
		}
		if len(body) > MaxSize/3 {
			return // what came unescaped may be too large once it is escaped
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatalf("decoded, but cannot be encoded: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzKeyRoundTrip(f *testing.F) {
	f.Add(allBytes())
	f.Add("a+b c%2525/../~")
	f.Fuzz(func(t *testing.T, key string) {
		got, err := UnescapeKey(EscapeKey(key))
		if err != nil || got != key {
			t.Errorf("%q became %q, %v", key, got, err)
		}
	})
}
