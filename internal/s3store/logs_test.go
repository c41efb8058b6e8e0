package s3store

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

func logs(s *server) *LogStore { return NewLogs(client(s.URL), map[string]string{"b": "access/"}) }

func TestLogIsReadAsStoredInPinnedRanges(t *testing.T) {
	s := serve(t, always(reply("206 Partial Content\nx-amz-request-id: R\nETag: \"e\"\nContent-Encoding: gzip\nContent-Range: bytes 2-6/9\nContent-Length: 5", "\x1f\x8bllo")))
	got, err := logs(s).Read(t.Context(), "b", "access/2026 a+b", object.Range{Offset: 2, Length: 5}, `"e"`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(got.Body)
	if err != nil || string(data) != "\x1f\x8bllo" || got.Size != 9 || got.ETag != `"e"` || got.Range != (object.Range{Offset: 2, Length: 5}) {
		t.Errorf("got %+v %q %v", got, data, err)
	}
	r := s.last()
	if r.URL.Path != "/b/access/2026 a+b" || r.Header.Get("Range") != "bytes=2-6" || r.Header.Get("If-Match") != `"e"` {
		t.Errorf("asked %s, %v", r.RequestURI, r.Header)
	}
}

func TestClassOfEachAnswerToALogRead(t *testing.T) {
	tests := []struct {
		name, answer string
		want         object.Class
	}{
		{"gone", coded(404, "NoSuchKey", "m"), object.Absent},
		{"no such bucket", coded(404, "NoSuchBucket", "m"), object.Refused},
		{"404 of a proxy", page(404), object.Unavailable},
		{"denied", coded(403, "AccessDenied", "m"), object.Denied},
		{"another version", coded(412, "PreconditionFailed", "m"), object.Changed},
		{"slow down", coded(503, "SlowDown", "m"), object.Throttled},
		{"an internal error", coded(500, "InternalError", "m"), object.Unavailable},
		{"a page", page(200), object.Unavailable},
		{"another range", reply("206 Partial Content\nx-amz-request-id: R\nETag: \"e\"\nContent-Range: bytes 1-5/9\nContent-Length: 5", "hello"), object.Corrupt},
		{"cut", reply("206 Partial Content\nx-amz-request-id: R\nETag: \"e\"\nContent-Range: bytes 0-4/9\nContent-Length: 5", "hel"), object.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.answer))
			got, err := logs(s).Read(t.Context(), "b", "k", object.Range{Length: 5}, "")
			if err == nil {
				_, err = io.ReadAll(got.Body)
			}
			if class := object.ClassOf(err); class != tt.want {
				t.Errorf("class %q, want %q: %v", class, tt.want, err)
			}
			if e, ok := err.(*object.Error); ok && e.Side != object.Logs {
				t.Errorf("side %s, want logs", e.Side)
			}
		})
	}
}

func TestEmptyLogIsConfirmedByAPlainRead(t *testing.T) {
	const empty = "200 OK\nx-amz-request-id: R\nETag: \"e\"\nContent-Length: 0"
	tests := []struct {
		name, ranged, plain string
		want                object.Class
	}{
		{"empty", coded(416, "InvalidRange", "m"), reply(empty, ""), ""},
		{"a proxy answers the range alone", page(416), reply("200 OK\nx-amz-request-id: R\nETag: \"e\"\nContent-Length: 5", "hello"), object.Changed},
		{"a proxy answers both", page(416), reply("200 OK\nETag: \"e\"\nContent-Length: 0", ""), object.Unavailable},
		{"no object", coded(416, "InvalidRange", "m"), coded(404, "NoSuchKey", "m"), object.Absent},
		{"no length", coded(416, "InvalidRange", "m"), reply("200 OK\nx-amz-request-id: R\nETag: \"e\"", ""), object.Changed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(r request) string {
				if r.Header.Get("Range") != "" {
					return tt.ranged
				}
				return tt.plain
			})
			got, err := logs(s).Read(t.Context(), "b", "k", object.Range{Length: 5}, "")
			if class := object.ClassOf(err); class != tt.want {
				t.Errorf("class %q, want %q: %v", class, tt.want, err)
			}
			if err == nil && (got.Size != 0 || got.Range.Length != 0) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestDeletingALogThatIsGoneIsNoError(t *testing.T) {
	for answer, want := range map[string]object.Class{
		reply("204 No Content\nx-amz-request-id: R", ""): "", coded(404, "NoSuchKey", "m"): "",
		coded(403, "AccessDenied", "m"): object.Denied, coded(404, "NoSuchBucket", "m"): object.Refused,
		reply("204 No Content", ""): object.Unavailable,
	} {
		s := serve(t, always(answer))
		if err := logs(s).Delete(t.Context(), "b", "access/k"); object.ClassOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if r := s.last(); r.Method != http.MethodDelete || r.URL.Path != "/b/access/k" {
			t.Errorf("asked %s %s", r.Method, r.RequestURI)
		}
	}
}

func TestLogReferenceLiesWhereTheRoleMayRead(t *testing.T) {
	for answer, want := range map[string]object.Class{
		coded(404, "NoSuchKey", "m"): "", coded(404, "NoSuchBucket", "m"): object.Refused, coded(403, "AccessDenied", "m"): object.Denied, page(200): object.Unavailable,
	} {
		s := serve(t, always(answer))
		if err := logs(s).Reference(t.Context(), "b"); object.ClassOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if r := s.last(); !strings.HasPrefix(r.URL.Path, "/b/access/objectferry-reference-") {
			t.Errorf("asked for %s", r.URL.Path)
		}
	}
}

func TestListingGoesOnAndKeepsOddKeys(t *testing.T) {
	const entry = "<Contents><Key>%s</Key><Size>5</Size><LastModified>2026-09-04T08:03:42.000Z</LastModified></Contents>"
	s := serve(t, func(r request) string {
		q := r.URL.Query()
		if q.Get("encoding-type") != "url" || q.Get("prefix") != "access/" || q.Get("start-after") != "access/0" {
			t.Errorf("asked %s", r.RequestURI)
		}
		if q.Get("continuation-token") == "" {
			return xmlReply("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>N</NextContinuationToken>" +
				fmt.Sprintf(entry, "access/a%01+b%2Bc") + "</ListBucketResult>")
		}
		return xmlReply("<ListBucketResult>" + fmt.Sprintf(entry, "access/100%25+d") + "</ListBucketResult>")
	})
	var got []string
	for o, err := range logs(s).List(t.Context(), "b", "access/", "access/0") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != 5 || !o.LastModified.Equal(time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)) {
			t.Errorf("got %+v", o)
		}
		got = append(got, o.Key)
	}
	// The second page is not encoded, whatever was asked.
	if diff := cmp.Diff([]string{"access/a\x01 b+c", "access/100%25+d"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	refused := serve(t, always(coded(403, "AccessDenied", "m")))
	for _, err := range logs(refused).List(t.Context(), "b", "", "") {
		if object.ClassOf(err) != object.Denied {
			t.Errorf("got %v, want denied", err)
		}
	}
}
