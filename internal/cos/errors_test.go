package cos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

func newPlainServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// coded is an authentic error answer of COS.
func coded(status int, code string) string {
	body := fmt.Sprintf("<?xml version='1.0' encoding='utf-8' ?><Error><Code>%s</Code><Message>m</Message></Error>", code)
	return reply(fmt.Sprintf("%d X\nx-cos-request-id: R\nContent-Type: application/xml\nContent-Length: %d", status, len(body)), body)
}

var answers = []struct {
	status int
	code   string
	want   object.Class
	passes bool // as a reference
}{
	{404, "NoSuchKey", object.Absent, true},
	{400, "KeyTooLong", object.Absent, true},
	{404, "NoSuchBucket", object.Refused, false},
	{403, "AccessDenied", object.Denied, false},
	{403, "SomethingNew", object.Denied, false},
	{403, "InvalidObjectState", object.Archived, false},
	{403, "DownloadForbidden", object.Denied, false},
	{403, "SignatureDoesNotMatch", object.Refused, false},
	{403, "InvalidAccessKeyId", object.Refused, false},
	{403, "RequestTimeTooSkewed", object.Refused, false},
	{403, "ExpiredToken", object.Refused, false},
	{403, "PathStyleDomainForbidden", object.Refused, false},
	{451, "UnavailableForLegalReasons", object.Refused, false},
	{412, "PreconditionFailed", object.Changed, true},
	{429, "TooManyRequests", object.Throttled, false},
	{429, "", object.Throttled, false},
	{503, "SlowDown", object.Throttled, false},
	{503, "RequestLimitExceeded", object.Throttled, false},
	{503, "ServiceUnavailable", object.Unavailable, false},
	{500, "InternalError", object.Unavailable, false},
	{502, "", object.Unavailable, false},
	{408, "RequestTimeout", object.Unavailable, false},
	{400, "InvalidArgument", object.Unknown, false},
	{405, "MethodNotAllowed", object.Unknown, false},
}

func TestClassOfEachErrorAnswer(t *testing.T) {
	for _, tt := range answers {
		t.Run(fmt.Sprintf("%d %s", tt.status, tt.code), func(t *testing.T) {
			s := serve(t, always(coded(tt.status, tt.code)))
			source := anonymous(t, s.URL)
			_, _, err := read(source, "k", object.Range{Length: 5}, "")
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
			code := tt.code
			if code == "" {
				code = fmt.Sprintf("http %d", tt.status)
			}
			if got := object.CodeOf(err); got != code {
				t.Errorf("code %q, want %q", got, code)
			}
			if err := source.Reference(t.Context(), "k"); (err == nil) != tt.passes {
				t.Errorf("reference: %v, want let through %v", err, tt.passes)
			}
		})
	}
}

func TestReferenceTakesAnObjectsAnswer(t *testing.T) {
	s := serve(t, func(r *http.Request) string {
		if r.Header.Get("Range") != "bytes=0-0" {
			t.Errorf("asked for %q, want one byte", r.Header.Get("Range"))
		}
		return reply("206 Partial Content\nx-cos-request-id: R\nETag: \"e\"\nContent-Range: bytes 0-0/5\nContent-Length: 1", "h")
	})
	if err := anonymous(t, s.URL).Reference(t.Context(), "k"); err != nil {
		t.Errorf("reference: %v", err)
	}
}

func TestReferenceTakesNoPage(t *testing.T) {
	s := serve(t, always(reply("200 OK\nContent-Type: text/html\nContent-Length: 5", "hello")))
	if err := anonymous(t, s.URL).Reference(t.Context(), "k"); object.ClassOf(err) != object.Unavailable {
		t.Errorf("reference: %v, want unavailable", err)
	}
}

func TestNoAnswerIsUnavailable(t *testing.T) {
	s := serve(t, always(""))
	source := anonymous(t, s.URL)
	for _, closed := range []bool{false, true} {
		if closed {
			s.Close()
		}
		if _, _, err := read(source, "k", object.Range{Length: 5}, ""); object.ClassOf(err) != object.Unavailable {
			t.Errorf("closed %v: %v, want unavailable", closed, err)
		}
	}
}

func TestServerSaysHowLongToWait(t *testing.T) {
	s := serve(t, always(reply("429 Too Many Requests\nx-cos-request-id: R\nRetry-After: 7\nContent-Length: 0", "")))
	_, _, err := read(anonymous(t, s.URL), "k", object.Range{Length: 5}, "")
	if e, ok := err.(*object.Error); !ok || e.RetryAfter != 7*time.Second {
		t.Errorf("got %v, want to wait 7s", err)
	}
}

func TestErrorAnswerIsReadInBounds(t *testing.T) {
	const size, piece = 64 << 20, 64 << 10
	sent := make(chan int, 1)
	url := newPlainServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Cos-Request-Id", "R")
		w.WriteHeader(http.StatusForbidden)
		n := 0
		for ; n < size; n += piece {
			if _, err := w.Write(make([]byte, piece)); err != nil {
				break
			}
		}
		sent <- n
	})
	if _, err := anonymous(t, url).Get(t.Context(), "k", object.Range{Length: 5}, ""); object.ClassOf(err) != object.Denied {
		t.Errorf("got %v, want denied", err)
	}
	if n := <-sent; n >= size {
		t.Errorf("an error answer of %d bytes was read whole", n)
	}
}

func TestErrorNamesTheKeyOnceAndQuoted(t *testing.T) {
	s := serve(t, always(coded(403, "AccessDenied")))
	_, _, err := read(anonymous(t, s.URL), "a\nb", object.Range{Length: 5}, "")
	if text := err.Error(); strings.Contains(text, "\n") || strings.Count(text, `a\nb`) != 1 || !strings.Contains(text, "AccessDenied") {
		t.Errorf("got %q", text)
	}
	s.Close()
	_, _, err = read(anonymous(t, s.URL), "a\nb", object.Range{Length: 5}, "")
	if text := err.Error(); strings.Contains(text, "%0A") || strings.Count(text, `a\nb`) != 1 {
		t.Errorf("got %q", text)
	}
}
