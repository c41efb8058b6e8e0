package cos

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

const five = "206 Partial Content\nx-cos-request-id: R\nETag: \"e\"\nContent-Range: bytes 0-4/5\nContent-Length: 5"

func TestEveryKeyGoesOverTheWireByteForByte(t *testing.T) {
	s := serve(t, always(reply(five, "hello")))
	source := anonymous(t, s.URL)
	keys := []string{
		"a", "/img.jpg", "2026/1//1d8c", "a//", "a/", "//a", "a/./b", "a/../b", "../b", "./b", "a b", "a+b", "100%.txt", "%2F", "%", "a?b", "a#b",
		"x[1]", "Artik & ASTI $1.wav", "测试.jpg", "\xff\xfe", "a;b=c", "a:b@c", "?versionId=1", "a\\b", "new\nline", strings.Repeat("k", 1024),
	}
	for b := range 256 {
		keys = append(keys, "k"+string([]byte{byte(b)})+"k")
	}
	for _, key := range keys {
		if _, _, err := read(source, key, object.Range{Length: 5}, ""); err != nil {
			t.Errorf("get %q: %v", key, err)
			continue
		}
		asked := s.asked()
		uri := asked[len(asked)-1].RequestURI
		if got, err := url.PathUnescape(strings.TrimPrefix(uri, "/")); err != nil || got != key {
			t.Errorf("key %q went over the wire as %s", key, uri)
		}
		if strings.ContainsAny(uri, "?#") || strings.Count(uri, "/") != 1 {
			t.Errorf("key %q went over the wire as %s, which is more than a path of one segment", key, uri)
		}
	}
}

func TestKeyThatCOSCannotHoldIsAbsentWithoutAsking(t *testing.T) {
	s := serve(t, always(reply(five, "hello")))
	source := anonymous(t, s.URL)
	for _, key := range []string{"", ".", "..", "/", "//", "./", "../", "a/..", "/..", "a/../"} {
		_, err := source.Get(t.Context(), key, object.Range{Length: 5}, "")
		if got := object.ClassOf(err); got != object.Absent {
			t.Errorf("key %q: class %s, want absent", key, got)
		}
		if err := source.Reference(t.Context(), key); object.ClassOf(err) != object.Unknown {
			t.Errorf("reference %q that was never asked: %v, want unknown", key, err)
		}
	}
	if n := len(s.asked()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestRequestAsksForTheRangeAndThePin(t *testing.T) {
	s := serve(t, always(reply("206 Partial Content\nx-cos-request-id: R\nETag: \"e\"\nContent-Range: bytes 10-14/20\nContent-Length: 5", "hello")))
	got, data, err := read(anonymous(t, s.URL), "k", object.Range{Offset: 10, Length: 5}, `"e"`)
	if err != nil || data != "hello" || got.Size != 20 || got.Range != (object.Range{Offset: 10, Length: 5}) {
		t.Fatalf("got %+v %q %v", got, data, err)
	}
	want := map[string]string{"Range": "bytes=10-14", "If-Match": `"e"`, "Accept-Encoding": "identity", "Authorization": "", "X-Cos-Security-Token": ""}
	for name, value := range want {
		if got := s.asked()[0].Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if n := len(s.asked()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestRangeIsCutToWhatIsThere(t *testing.T) {
	s := serve(t, always(reply(five, "hello")))
	got, data, err := read(anonymous(t, s.URL), "k", object.Range{Length: 1 << 20}, "")
	if err != nil || data != "hello" || got.Size != 5 || got.Range != (object.Range{Length: 5}) {
		t.Errorf("got %+v %q %v", got, data, err)
	}
}

// Every answer here is wrong for a read of bytes 0-4 of an object of 10 pinned to
// "e"; none may yield an object, and none but the last may be absent.
func TestAnswerThatIsNotTheRangeIsNeverAnObject(t *testing.T) {
	const id = "x-cos-request-id: R\n"
	tests := []struct {
		name, head, body string
		want             object.Class
	}{
		{"a page without a request id", "200 OK\nContent-Type: text/html\nContent-Length: 5", "hello", object.Unavailable},
		{"a range without a request id", "206 Partial Content\nETag: \"e\"\nContent-Range: bytes 0-4/10\nContent-Length: 5", "hello", object.Unavailable},
		{"a listing", "200 OK\n" + id + "Content-Type: application/xml\nContent-Length: 5", "<List", object.Unavailable},
		{"the whole object", "200 OK\n" + id + "ETag: \"e\"\nContent-Length: 10", "helloworld", object.Corrupt},
		{"another start", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 1-5/10\nContent-Length: 5", "elloW", object.Corrupt},
		{"a later start", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 1-4/10\nContent-Length: 4", "ello", object.Corrupt},
		{"another end", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-3/10\nContent-Length: 4", "hell", object.Corrupt},
		{"an end behind the object", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/4\nContent-Length: 5", "hello", object.Corrupt},
		{"an unknown size", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/*\nContent-Length: 5", "hello", object.Corrupt},
		{"no Content-Range", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Length: 5", "hello", object.Corrupt},
		{"no length", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/10\nConnection: close", "hello", object.Corrupt},
		{"chunks", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/10\nTransfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", object.Corrupt},
		{"another length", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/10\nContent-Length: 4", "hell", object.Corrupt},
		{"another version", "206 Partial Content\n" + id + "ETag: \"f\"\nContent-Range: bytes 0-4/10\nContent-Length: 5", "hello", object.Changed},
		{"no ETag", "206 Partial Content\n" + id + "Content-Range: bytes 0-4/10\nContent-Length: 5", "hello", object.Corrupt},
		{"a weak ETag", "206 Partial Content\n" + id + "ETag: W/\"e\"\nContent-Range: bytes 0-4/10\nContent-Length: 5", "hello", object.Corrupt},
		{"a body that is cut", "206 Partial Content\n" + id + "ETag: \"e\"\nContent-Range: bytes 0-4/10\nContent-Length: 5", "hel", object.Unavailable},
		{"a redirect", "302 Found\n" + id + "Location: /other\nContent-Length: 0", "", object.Unavailable},
		{"a redirect of someone else", "307 Temporary Redirect\nLocation: http://127.0.0.1:1/\nContent-Length: 0", "", object.Unavailable},
		{"a 404 page", "404 Not Found\nContent-Length: 5", "hello", object.Unavailable},
		{"a 404 with the code but without a request id", "404 Not Found\nContent-Length: 37", "<Error><Code>NoSuchKey</Code></Error>", object.Unavailable},
		{"a 403 page", "403 Forbidden\nContent-Length: 5", "hello", object.Unavailable},
		{"an answer that is no HTTP", "", "", object.Unavailable},
		{"a 404 of COS without a code", "404 Not Found\n" + id + "Content-Length: 0", "", object.Unknown},
		{"no such key", "404 Not Found\n" + id + "Content-Length: 37", "<Error><Code>NoSuchKey</Code></Error>", object.Absent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(reply(tt.head, tt.body)))
			_, _, err := read(anonymous(t, s.URL), "k", object.Range{Length: 5}, `"e"`)
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
			if n := len(s.asked()); n != 1 {
				t.Errorf("%d requests, want 1: no retry, no redirect", n)
			}
		})
	}
}

func TestVersionThatCannotBePinnedIsTakenOnlyWholeAndWithACRC(t *testing.T) {
	const id = "x-cos-request-id: R\n"
	const crc = "x-cos-hash-crc64ecma: 42\n"
	tests := []struct {
		name, head string
		want       object.Class
	}{
		{"whole, with a CRC", "206 Partial Content\n" + id + crc + "Content-Range: bytes 0-4/5\nContent-Length: 5", ""},
		{"whole, without", "206 Partial Content\n" + id + "Content-Range: bytes 0-4/5\nContent-Length: 5", object.Corrupt},
		{"a part, with a CRC", "206 Partial Content\n" + id + crc + "Content-Range: bytes 0-4/6\nContent-Length: 5", object.Corrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(reply(tt.head, "hello")))
			_, _, err := read(anonymous(t, s.URL), "k", object.Range{Length: 5}, "")
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func TestEmptyObjectIsEmptyOnlyIfAPlainReadSaysSo(t *testing.T) {
	const id = "x-cos-request-id: R\n"
	refused := reply("416 Requested Range Not Satisfiable\n"+id+"Content-Length: 0", "")
	tests := []struct {
		name, ranged, plain string
		want                object.Class
	}{
		{"both say so", refused, reply("200 OK\n"+id+"ETag: \"e\"\nx-cos-hash-crc64ecma: 0\nContent-Length: 0", ""), ""},
		{"a range of nothing is ignored", reply("200 OK\n"+id+"ETag: \"e\"\nContent-Length: 0", ""), reply("200 OK\n"+id+"ETag: \"e\"\nContent-Length: 0", ""), ""},
		{"not empty any more", refused, reply("200 OK\n"+id+"ETag: \"e\"\nContent-Length: 5", "hello"), object.Changed},
		{"no length", refused, reply("200 OK\n"+id+"ETag: \"e\"\nConnection: close", ""), object.Corrupt},
		{"no request id", refused, reply("200 OK\nETag: \"e\"\nContent-Length: 0", ""), object.Unavailable},
		{"neither ETag nor CRC", refused, reply("200 OK\n"+id+"Content-Length: 0", ""), object.Unavailable},
		{"a range to a plain read", refused, reply(five, "hello"), object.Corrupt},
		{"gone", refused, reply("404 Not Found\n"+id+"Content-Length: 37", "<Error><Code>NoSuchKey</Code></Error>"), object.Absent},
		{"a 416 of someone else", reply("416 Requested Range Not Satisfiable\nContent-Length: 0", ""), "", object.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(r *http.Request) string {
				if r.Header.Get("Range") != "" {
					return tt.ranged
				}
				return tt.plain
			})
			got, data, err := read(anonymous(t, s.URL), "k", object.Range{Length: 5}, "")
			if class := object.ClassOf(err); class != tt.want {
				t.Fatalf("class %q, want %q: %v", class, tt.want, err)
			}
			if err == nil && (data != "" || got.Size != 0 || got.Range.Length != 0 || got.ETag != `"e"`) {
				t.Errorf("got %+v %q", got, data)
			}
		})
	}
	t.Run("a range that begins behind the end", func(t *testing.T) {
		s := serve(t, always(refused))
		_, _, err := read(anonymous(t, s.URL), "k", object.Range{Offset: 5, Length: 5}, `"e"`)
		if got := object.ClassOf(err); got != object.Changed {
			t.Errorf("class %q, want changed", got)
		}
	})
}

func TestGzipObjectIsCarriedAsStored(t *testing.T) {
	stored := "\x1f\x8b\x08\x00not really"
	head := "206 Partial Content\nx-cos-request-id: R\nETag: \"e\"\nContent-Encoding: gzip\nContent-Range: bytes 0-13/14\nContent-Length: 14"
	s := serve(t, always(reply(head, stored[:14])))
	// A transport that unpacks by default must not matter either.
	for name, transport := range map[string]http.RoundTripper{"ours": NewTransport(1), "Go's": &http.Transport{}} {
		source, err := New(Config{URL: s.URL}, transport)
		if err != nil {
			t.Fatal(err)
		}
		got, data, err := read(source, "k", object.Range{Length: 14}, "")
		if err != nil || data != stored[:14] || got.ContentEncoding != "gzip" {
			t.Errorf("%s transport: %q %+v %v", name, data, got, err)
		}
	}
}

func TestConnectionIsKept(t *testing.T) {
	addresses := map[string]bool{}
	server := newPlainServer(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.Header().Set("X-Cos-Request-Id", "R")
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Content-Range", "bytes 0-4/5")
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "hello")
	})
	source := anonymous(t, server)
	for range 5 {
		got, err := source.Get(t.Context(), "k", object.Range{Length: 5}, "")
		if err != nil {
			t.Fatal(err)
		}
		// Exactly as many bytes as announced, as the copier reads.
		if _, err := io.ReadFull(got.Body, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
	}
	if len(addresses) != 1 {
		t.Errorf("%d connections for five reads one after the other, want 1", len(addresses))
	}
}

func TestClassOfAReadThatIsInterrupted(t *testing.T) {
	hold := make(chan struct{})
	server := newPlainServer(t, func(w http.ResponseWriter, r *http.Request) { <-hold })
	defer close(hold)
	slow := &object.Error{Class: object.Unavailable, Err: errors.New("too slow")}
	tests := []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want object.Class
	}{
		{"a drain", func(c context.Context) (context.Context, context.CancelFunc) {
			c, cancel := context.WithCancel(c)
			time.AfterFunc(20*time.Millisecond, cancel)
			return c, cancel
		}, object.Canceled},
		{"a deadline", func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(c, 20*time.Millisecond)
		}, object.Unavailable},
		{"a guard that gave up", func(c context.Context) (context.Context, context.CancelFunc) {
			c, cancel := context.WithCancelCause(c)
			time.AfterFunc(20*time.Millisecond, func() { cancel(slow) })
			return c, func() { cancel(nil) }
		}, object.Unavailable},
	}
	source := anonymous(t, server)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := tt.end(t.Context())
			defer cancel()
			_, err := source.Get(ctx, "k", object.Range{Length: 5}, "")
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func TestAttributesComeAsTheyWereSent(t *testing.T) {
	head := strings.Join([]string{
		"206 Partial Content", "x-cos-request-id: R", `ETag: "e"`, "Content-Range: bytes 0-4/5", "Content-Length: 5",
		"Last-Modified: Fri, 04 Sep 2026 08:03:42 GMT", "x-cos-hash-crc64ecma: 18446744073709551615",
		"Content-Type: image/jpeg", "Content-Encoding: br", "Content-Language: zh", "Content-Language: en", "Cache-Control: max-age=60", "Expires: 0",
		"Content-Disposition: inline", "x-cos-meta-Plain: a b", "x-cos-meta-percent: %E6%B5%8B%E8%AF%95", "x-cos-meta-ascii: 100%25",
		"x-cos-meta-raw: \xe6\xb5\x8b", "x-cos-meta-latin: caf\xe9", "x-cos-meta-word: =?UTF-8?B?5rWL?=", "x-cos-meta-twice: a", "x-cos-meta-twice: b",
	}, "\n")
	want := object.Attributes{
		Size: 5, ETag: `"e"`, LastModified: time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC), CRC64: 18446744073709551615, HasCRC64: true,
		ContentType: "image/jpeg", ContentEncoding: "br", ContentLanguage: "zh, en", CacheControl: "max-age=60", Expires: "0", ContentDisposition: "inline",
		Metadata: map[string]string{"plain": "a b", "percent": "测试", "ascii": "100%25", "raw": "测", "latin": "café", "word": "测", "twice": "a, b"},
	}
	for _, forced := range []string{"", "\nx-cos-force-download: true"} {
		s := serve(t, always(reply(head+forced, "hello")))
		got, _, err := read(anonymous(t, s.URL), "k", object.Range{Length: 5}, "")
		if err != nil {
			t.Fatal(err)
		}
		if forced != "" {
			want.ContentDisposition = "" // COS's own doing, not the object's
		}
		if diff := cmp.Diff(want, got.Attributes); diff != "" {
			t.Errorf("attributes (-want +got), forced %q:\n%s", forced, diff)
		}
	}
}

func TestCRCThatIsNotANumberIsUnknownNotWrong(t *testing.T) {
	for _, value := range []string{"", "0x10", "-1", "18446744073709551616", "1, 2"} {
		if a := attributes(http.Header{"X-Cos-Hash-Crc64ecma": {value}}); a.HasCRC64 {
			t.Errorf("%q was taken for the CRC %d", value, a.CRC64)
		}
	}
}
