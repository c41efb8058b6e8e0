package cosd

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// liar is a public bucket with one object "k" and a lie about it.
func liar(t *testing.T, when When, lies ...Lie) (*Server, []byte) {
	t.Helper()
	s := start(t, Behaviour{PublicRead: true})
	body := bytes.Repeat([]byte("0123456789"), 100)
	s.Put("k", body, Attributes{ContentType: "text/plain"})
	for _, l := range lies {
		s.Lie(when, l)
	}
	return s, body
}

// honest fails the test when "k" is not answered as it should be.
func honest(t *testing.T, s *Server, body []byte) {
	t.Helper()
	r := ask(t, s, "GET", "/k")
	if r.StatusCode != 200 || !bytes.Equal(r.body, body) || r.Header.Get("x-cos-request-id") == "" {
		t.Errorf("the honest answer: %d, %d bytes, %v", r.StatusCode, len(r.body), r.err)
	}
}

func TestLieRefuse(t *testing.T) {
	for status, code := range map[int]string{
		503: "ServiceUnavailable", 500: "InternalError", 404: "NoSuchBucket", 403: "AccessDenied", 429: "RequestLimitExceeded",
	} {
		s, body := liar(t, When{Key: "k", Times: 1}, Refuse(status, code))
		r := ask(t, s, "GET", "/k")
		if r.StatusCode != status || r.code() != code || r.Header.Get("x-cos-request-id") == "" {
			t.Errorf("%d %s: got %d %q", status, code, r.StatusCode, r.code())
		}
		honest(t, s, body)
	}
}

func TestLiePageIsNotCOSs(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		s, body := liar(t, When{Times: 2}, Page(status))
		for range 2 {
			r := ask(t, s, "GET", "/k")
			if r.StatusCode != status || !bytes.Contains(r.body, []byte("<html>")) || r.Header.Get("x-cos-request-id") != "" ||
				r.Header.Get("ETag") != "" || r.Header.Get("Server") == "tencent-cos" {
				t.Errorf("%d: got %d %v %q", status, r.StatusCode, r.Header, r.body)
			}
		}
		honest(t, s, body)
	}
}

func TestLieRedirect(t *testing.T) {
	s, body := liar(t, When{Times: 1}, Redirect(302, "http://example.com/login"))
	r := ask(t, s, "GET", "/k")
	if r.StatusCode != 302 || r.Header.Get("Location") != "http://example.com/login" || r.Header.Get("x-cos-request-id") != "" {
		t.Errorf("got %d %v", r.StatusCode, r.Header)
	}
	honest(t, s, body)
}

func TestLieCutBreaksItsPromise(t *testing.T) {
	s, body := liar(t, When{Times: 1}, Cut(50))
	r := ask(t, s, "GET", "/k")
	if r.ContentLength != 1000 || !errors.Is(r.err, io.ErrUnexpectedEOF) || !bytes.Equal(r.body, body[:50]) {
		t.Errorf("length %d, %d bytes, %v", r.ContentLength, len(r.body), r.err)
	}
	honest(t, s, body)
}

// Without a length it is the missing last chunk that tells.
func TestLieCutBreaksChunkedAnswersToo(t *testing.T) {
	s, _ := liar(t, When{}, Recompress(), Cut(10))
	r := ask(t, s, "GET", "/k")
	if r.ContentLength != -1 || !errors.Is(r.err, io.ErrUnexpectedEOF) || len(r.body) != 10 {
		t.Errorf("length %d, %d bytes, %v", r.ContentLength, len(r.body), r.err)
	}
}

func TestLieCutUnframedLooksRegular(t *testing.T) {
	s, body := liar(t, When{Times: 1}, CutUnframed(50))
	r := ask(t, s, "GET", "/k")
	if r.ContentLength != -1 || len(r.TransferEncoding) != 0 || r.err != nil || !bytes.Equal(r.body, body[:50]) {
		t.Errorf("length %d, %v, %d bytes, %v", r.ContentLength, r.TransferEncoding, len(r.body), r.err)
	}
	honest(t, s, body)
}

func TestLieUnframedIsWhole(t *testing.T) {
	s, body := liar(t, When{}, Unframed())
	r := ask(t, s, "GET", "/k")
	if r.ContentLength != -1 || r.err != nil || !bytes.Equal(r.body, body) {
		t.Errorf("length %d, %d bytes, %v", r.ContentLength, len(r.body), r.err)
	}
}

func TestLieFlipIsOneByteUnderTheOldCRC(t *testing.T) {
	s, body := liar(t, When{}, Flip(500))
	want := bytes.Clone(body)
	want[500] ^= 1
	r := ask(t, s, "GET", "/k")
	crc := strconv.FormatUint(crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)), 10)
	if !bytes.Equal(r.body, want) || r.Header.Get("x-cos-hash-crc64ecma") != crc {
		t.Error("whole: not one flipped byte under the object's CRC")
	}
	if r := ask(t, s, "GET", "/k", "Range", "bytes=400-599"); !bytes.Equal(r.body, want[400:600]) {
		t.Error("a range that holds it: not flipped")
	}
	if r := ask(t, s, "GET", "/k", "Range", "bytes=501-599"); !bytes.Equal(r.body, body[501:600]) {
		t.Error("a range beside it: flipped")
	}
	s.Heal()
	honest(t, s, body) // the stored bytes are untouched
}

func TestLieAboutRanges(t *testing.T) {
	for _, tc := range []struct {
		name   string
		lie    Lie
		status int
		length int
		served string
	}{
		{"IgnoreRange", IgnoreRange(), 200, 1000, ""},
		{"WrongContentRange", WrongContentRange("bytes 20-29/1000"), 206, 10, "bytes 20-29/1000"},
		{"shorter", Resize(-3), 206, 7, "bytes 10-19/1000"},
		{"longer", Resize(3), 206, 13, "bytes 10-19/1000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, body := liar(t, When{Times: 1}, tc.lie)
			r := ask(t, s, "GET", "/k", "Range", "bytes=10-19")
			if r.StatusCode != tc.status || len(r.body) != tc.length || r.ContentLength != int64(tc.length) ||
				r.Header.Get("Content-Range") != tc.served || r.err != nil {
				t.Errorf("%d, %d bytes, %q, %v", r.StatusCode, len(r.body), r.Header.Get("Content-Range"), r.err)
			}
			honest(t, s, body)
		})
	}
}

func TestLieBecomeChangesTheObjectBetweenTwoRequests(t *testing.T) {
	after := bytes.Repeat([]byte("x"), 1000)
	s, body := liar(t, When{Key: "k", After: 2, Times: 1}, Become(after, Attributes{}))
	etag := ask(t, s, "HEAD", "/k").Header.Get("ETag")
	if r := ask(t, s, "GET", "/k", "If-Match", etag); !bytes.Equal(r.body, body) {
		t.Fatal("changed too early")
	}
	if r := ask(t, s, "GET", "/k", "If-Match", etag); r.code() != "PreconditionFailed" {
		t.Errorf("pinned read after the change: %d %q", r.StatusCode, r.code())
	}
	if r := ask(t, s, "GET", "/k"); !bytes.Equal(r.body, after) || r.Header.Get("ETag") == etag {
		t.Error("the change did not last")
	}
}

// The two evil forms: the pin is not looked at, and the ETag does not change.
func TestLieBecomeUnnoticed(t *testing.T) {
	after := bytes.Repeat([]byte("x"), 1000)
	s, _ := liar(t, When{Key: "k", After: 1}, IgnoreIfMatch())
	s.Lie(When{Key: "k", After: 1, Times: 1}, Become(after, Attributes{}))
	etag := ask(t, s, "HEAD", "/k").Header.Get("ETag")
	r := ask(t, s, "GET", "/k", "If-Match", etag)
	if r.StatusCode != 200 || !bytes.Equal(r.body, after) || r.Header.Get("ETag") == etag {
		t.Errorf("If-Match ignored: %d, ETag %s", r.StatusCode, r.Header.Get("ETag"))
	}

	s, _ = liar(t, When{Key: "k", After: 1, Times: 1}, Become(after, Attributes{ETag: etag}))
	ask(t, s, "HEAD", "/k")
	r = ask(t, s, "GET", "/k", "If-Match", etag)
	if r.StatusCode != 200 || !bytes.Equal(r.body, after) || r.Header.Get("ETag") != etag {
		t.Errorf("ETag kept: %d, ETag %s", r.StatusCode, r.Header.Get("ETag"))
	}
}

func TestLieRecompress(t *testing.T) {
	s, body := liar(t, When{}, Recompress())
	r := ask(t, s, "GET", "/k", "Accept-Encoding", "identity")
	if r.Header.Get("Content-Encoding") != "gzip" || r.ContentLength != -1 || r.Header.Get("x-cos-request-id") == "" {
		t.Errorf("%v, length %d", r.Header, r.ContentLength)
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || !bytes.Equal(unpacked, body) {
		t.Errorf("unpacked to %d bytes, %v", len(unpacked), err)
	}
}

// No lie: an object stored gzip-encoded is answered as stored, also to a client
// that does not take gzip.
func TestAGzipObjectIsAnsweredAsStored(t *testing.T) {
	s, _ := liar(t, When{})
	stored := []byte("\x1f\x8b these are the stored bytes")
	s.Put("gz", stored, Attributes{ContentEncoding: "gzip"})
	r := ask(t, s, "GET", "/gz", "Accept-Encoding", "identity")
	if !bytes.Equal(r.body, stored) || r.Header.Get("Content-Encoding") != "gzip" || r.ContentLength != int64(len(stored)) {
		t.Errorf("%q, %v", r.body, r.Header)
	}
}

func TestLieListInPlaceOfTheObject(t *testing.T) {
	s, body := liar(t, When{Times: 1}, List())
	r := ask(t, s, "GET", "/k")
	if r.StatusCode != 200 || !bytes.Contains(r.body, []byte("<ListBucketResult>")) || r.Header.Get("x-cos-request-id") == "" {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
	honest(t, s, body)
}

func TestLieWithoutHeaders(t *testing.T) {
	names := []string{"ETag", "x-cos-hash-crc64ecma", "x-cos-request-id", "Last-Modified"}
	for _, name := range names {
		s, body := liar(t, When{Times: 1}, Without(name), With("x-cos-meta-a", "b"))
		r := ask(t, s, "GET", "/k")
		for _, other := range names {
			if has := r.Header.Get(other) != ""; has == (other == name) {
				t.Errorf("without %s: has %s %v", name, other, has)
			}
		}
		if !bytes.Equal(r.body, body) || r.Header.Get("x-cos-meta-a") != "b" {
			t.Errorf("without %s: %v", name, r.Header)
		}
	}
	s, _ := liar(t, When{})
	s.Put("old", []byte("x"), Attributes{NoCRC: true})
	if r := ask(t, s, "GET", "/old"); r.Header.Get("x-cos-hash-crc64ecma") != "" || r.StatusCode != 200 {
		t.Errorf("NoCRC: %d %v", r.StatusCode, r.Header)
	}
}

func TestLieResetAnswersNothing(t *testing.T) {
	s, body := liar(t, When{Times: 1}, Reset())
	if r, err := do(t.Context(), s, "GET", "/k"); err == nil {
		t.Errorf("got an answer: %d", r.StatusCode)
	}
	honest(t, s, body)
}

func TestLieHangAnswersWhenHealed(t *testing.T) {
	s, body := liar(t, When{})
	hang := s.Lie(When{Key: "k"}, Hang())

	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := do(ctx, s, "GET", "/k"); gone <- err }()
	waitFor(t, func() bool { return s.Counts().Running == 1 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("client that went: %v", err)
	}
	waitFor(t, func() bool { return s.Counts().Running == 0 })

	answered := make(chan reply)
	go func() { r, _ := do(t.Context(), s, "GET", "/k"); answered <- r }()
	waitFor(t, func() bool { return hang.Told() == 2 })
	if r := ask(t, s, "GET", "/other"); r.code() != "NoSuchKey" {
		t.Errorf("another key: %d", r.StatusCode)
	}
	hang.Heal()
	if r := <-answered; r.Response == nil || !bytes.Equal(r.body, body) {
		t.Errorf("after healing: %v", r.err)
	}
}

// Which requests a lie is told to: key, predicate, after, times; healing ends it.
func TestLieIsToldWhenItShould(t *testing.T) {
	s, body := liar(t, When{})
	lie := s.Lie(When{
		Match: func(q Request) bool { return q.Method == http.MethodGet && q.Range == "bytes=0-9" },
		After: 1, Times: 2,
	}, Refuse(500, "InternalError"))
	var got []int
	for range 4 {
		got = append(got, ask(t, s, "GET", "/k", "Range", "bytes=0-9").StatusCode)
		honest(t, s, body)
	}
	if got[0] != 206 || got[1] != 500 || got[2] != 500 || got[3] != 206 || lie.Told() != 2 {
		t.Errorf("statuses %v, told %d", got, lie.Told())
	}
	forever := s.Lie(When{}, Refuse(500, "InternalError"))
	for range 3 {
		if r := ask(t, s, "GET", "/k"); r.StatusCode != 500 {
			t.Errorf("for ever: %d", r.StatusCode)
		}
	}
	forever.Heal()
	forever.Heal() // twice is once
	honest(t, s, body)
}

// waitFor polls until ok.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 5 s in vain")
		}
	}
}
