package s3store

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

func TestHeadSaysWhatStandsThere(t *testing.T) {
	const there = "x-amz-request-id: R\nETag: \"e\"\nLast-Modified: Fri, 04 Sep 2026 08:03:42 GMT\nContent-Length: 0"
	found := object.Found{Exists: true, Attributes: object.Attributes{ETag: `"e"`, LastModified: time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)}}
	oneByte := reply("206 Partial Content\nx-amz-request-id: R\nETag: \"e\"\nLast-Modified: Fri, 04 Sep 2026 08:03:42 GMT\nContent-Range: bytes 0-0/5\nContent-Length: 1", "h")
	partly := found
	partly.Size = 5
	tests := []struct {
		name, head, get string // get "" must not be asked
		want            object.Found
		class           object.Class
	}{
		{"an object", reply("200 OK\n"+there, ""), "", found, ""},
		{"nothing", reply("404 Not Found\nx-amz-request-id: R", ""), "", object.Found{}, ""},
		{"a delete marker", reply("404 Not Found\nx-amz-request-id: R\nx-amz-delete-marker: true", ""), "", object.Found{Deleted: true}, ""},
		{"an object of a proxy", reply("200 OK\nETag: \"e\"\nContent-Length: 5", ""), "", object.Found{}, object.Unavailable},
		{"404 of a proxy", reply("404 Not Found\nx-amz-delete-marker: true", ""), page(404), object.Found{}, object.Unavailable},
		{"404 of a proxy, and then it is there", reply("404 Not Found", ""), oneByte, partly, ""},
		{"a page", reply("200 OK\nContent-Type: text/html\nContent-Length: 5", ""), "", object.Found{}, object.Unavailable},
		{"403, denied", reply("403 Forbidden\nx-amz-request-id: R", ""), coded(403, "AccessDenied", "m"), object.Found{}, object.Denied},
		{"403, a bad signature", reply("403 Forbidden\nx-amz-request-id: R", ""), coded(403, "SignatureDoesNotMatch", "m"), object.Found{}, object.Refused},
		{"403, of a proxy", reply("403 Forbidden", ""), page(403), object.Found{}, object.Unavailable},
		{"400, an old token", reply("400 Bad Request\nx-amz-request-id: R", ""), coded(400, "ExpiredToken", "m"), object.Found{}, object.Refused},
		{"403, and then it is there", reply("403 Forbidden\nx-amz-request-id: R", ""), oneByte, partly, ""},
		{"403, and then it is not", reply("403 Forbidden\nx-amz-request-id: R", ""), coded(404, "NoSuchKey", "m"), object.Found{}, ""},
		{"403, and then a proxy's 416", reply("403 Forbidden\nx-amz-request-id: R", ""), page(416), object.Found{}, object.Unavailable},
		{"503, slow down", reply("503 Slow Down\nx-amz-request-id: R", ""), coded(503, "SlowDown", "m"), object.Found{}, object.Throttled},
		{"500", reply("500 Internal Server Error\nx-amz-request-id: R", ""), "", object.Found{}, object.Unavailable},
		{"another region", reply("301 Moved Permanently\nx-amz-request-id: R", ""), "", object.Found{}, object.Refused},
		{"a redirect", reply("302 Found\nLocation: http://127.0.0.1:1/", ""), "", object.Found{}, object.Unavailable},
		{"no answer", "", "", object.Found{}, object.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(r request) string {
				if r.Method == http.MethodHead {
					return tt.head
				}
				if r.URL.Query().Has("list-type") {
					return coded(403, "AccessDenied", "m")
				}
				if plain := tt.get == page(416); tt.get == "" || !plain && r.Header.Get("Range") != "bytes=0-0" {
					t.Errorf("asked %s, range %q", r.Method, r.Header.Get("Range"))
				}
				return tt.get
			})
			got, err := store(s).Head(t.Context(), "k")
			if class := object.ClassOf(err); class != tt.class {
				t.Fatalf("class %q, want %q: %v", class, tt.class, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyObjectIsConfirmedByAPlainRead(t *testing.T) {
	s := serve(t, func(r request) string {
		switch {
		case r.Method == http.MethodHead:
			return reply("403 Forbidden\nx-amz-request-id: R", "")
		case r.Header.Get("Range") != "":
			return coded(416, "InvalidRange", "m")
		}
		return reply("200 OK\nx-amz-request-id: R\nETag: \"e\"\nx-amz-meta-ferry-copy: id\nContent-Length: 0", "")
	})
	got, err := store(s).Head(t.Context(), "k")
	if err != nil || !got.Exists || got.Size != 0 || got.CopyID != "id" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestHeadReadsBackWhatPutWrote(t *testing.T) {
	a := object.Attributes{
		ContentType: "image/jpeg", ContentEncoding: "gzip", ContentLanguage: "zh", ContentDisposition: "inline", CacheControl: "max-age=60", Expires: "0",
		Metadata: map[string]string{"plain": "a b", "chinese": strings.Repeat("测试 ", 40), "control": "a\nb", "percent": "100%25"},
	}
	p := object.Provenance{CopyID: "id", ETag: `"src"`, CRC64: "42", LastModified: "2026-09-04T08:03:42Z"}
	var stored http.Header
	s := serve(t, func(r request) string {
		if r.Method == http.MethodPut {
			stored = r.Header
			return reply(written, "")
		}
		head := "200 OK\nx-amz-request-id: R\nETag: \"e\"\nContent-Length: 7"
		for name, values := range stored {
			if strings.HasPrefix(name, "X-Amz-Meta-") || strings.HasPrefix(name, "Content-") && name != "Content-Length" || name == "Cache-Control" || name == "Expires" {
				head += "\n" + name + ": " + values[0]
			}
		}
		return reply(head, "")
	})
	if err := store(s).Put(t.Context(), "k", []byte("hello"), a, p); err != nil {
		t.Fatal(err)
	}
	got, err := store(s).Head(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	want := object.Found{Attributes: a, Exists: true, CopyID: "id", SourceETag: `"src"`, SourceCRC64: "42"}
	want.Size, want.ETag = 7, `"e"`
	want.Metadata["ferry-copy"], want.Metadata["ferry-etag"] = "id", `"src"`
	want.Metadata["ferry-crc64"], want.Metadata["ferry-modified"] = "42", "2026-09-04T08:03:42Z"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestDeniedKeyIsLookedUpInTheListing(t *testing.T) {
	const key = "a+b &\x01"
	listing := func(keys string) string {
		return xmlReply("<ListBucketResult><EncodingType>url</EncodingType>" + keys + "</ListBucketResult>")
	}
	tests := []struct {
		name, get, list string // list "" must not be asked
		exists          bool
		class           object.Class
	}{
		{"listed", coded(403, "AccessDenied", "m"), listing("<Contents><Key>a%2Bb+%26%01</Key><Size>5</Size></Contents>"), true, ""},
		{"not listed", coded(403, "AccessDenied", "m"), listing(""), false, object.Denied},
		{"a longer one is listed", coded(403, "AccessDenied", "m"), listing("<Contents><Key>a%2Bb+%26%01x</Key></Contents>"), false, object.Denied},
		{"the listing is denied", coded(403, "AccessDenied", "m"), coded(403, "AccessDenied", "m"), false, object.Denied},
		{"the listing is throttled", coded(403, "AccessDenied", "m"), coded(503, "SlowDown", "m"), false, object.Throttled},
		{"the listing is a proxy's", coded(403, "AccessDenied", "m"), page(200), false, object.Unavailable},
		{"not denied", coded(403, "SignatureDoesNotMatch", "m"), "", false, object.Refused},
		{"a proxy's refusal", page(403), "", false, object.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(r request) string {
				q := r.URL.Query()
				switch {
				case r.Method == http.MethodHead:
					return reply("403 Forbidden\nx-amz-request-id: R", "")
				case !q.Has("list-type"):
					return tt.get
				case tt.list == "" || q.Get("prefix") != key || q.Get("max-keys") != "1" || q.Get("encoding-type") != "url":
					t.Errorf("asked %s", r.RequestURI)
				}
				return tt.list
			})
			found, err := store(s).Head(t.Context(), key)
			if object.ClassOf(err) != tt.class || found.Exists != tt.exists {
				t.Errorf("found %+v, %v; want %t, %q", found, err, tt.exists, tt.class)
			}
		})
	}
}

func TestReadReferenceLiesWhereTheRoleMayRead(t *testing.T) {
	s := serve(t, always(coded(404, "NoSuchKey", "m")))
	if err := New(client(s.URL), Config{Bucket: "b", Probe: "img/.probe"}).ReadReference(t.Context()); err != nil {
		t.Error(err)
	}
	if path := s.last().URL.Path; !strings.HasPrefix(path, "/b/img/.probe-") {
		t.Errorf("asked for %s", path)
	}
}

func TestReadReferenceTellsAMissingKeyFromAMissingBucket(t *testing.T) {
	for _, tt := range []struct {
		answer string
		want   object.Class
	}{
		{coded(404, "NoSuchKey", "m"), ""},
		{coded(404, "NoSuchBucket", "m"), object.Refused},
		{coded(403, "AccessDenied", "m"), object.Denied},
		{page(404), object.Unavailable},
		{coded(503, "SlowDown", "m"), object.Throttled},
	} {
		s := serve(t, always(tt.answer))
		for range 2 {
			if err := store(s).ReadReference(t.Context()); object.ClassOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		}
		if a := s.asked(); a[0].URL.Path == a[1].URL.Path {
			t.Errorf("the same key was asked for twice: %s", a[0].URL.Path)
		}
	}
}

func TestErrorAnswerIsReadInBounds(t *testing.T) {
	const size, piece = 64 << 20, 64 << 10
	sent := make(chan int, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amz-Request-Id", "R")
		w.WriteHeader(http.StatusForbidden)
		n := 0
		for ; n < size; n += piece {
			if _, err := w.Write(make([]byte, piece)); err != nil {
				break
			}
		}
		sent <- n
	}))
	defer s.Close()
	if err := New(client(s.URL), Config{Bucket: "b"}).ReadReference(t.Context()); err == nil {
		t.Error("a refusal passed")
	}
	if n := <-sent; n >= size {
		t.Errorf("an error answer of %d bytes was read whole", n)
	}
}
