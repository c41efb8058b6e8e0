package cosd

import (
	"bytes"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	cos "github.com/tencentyun/cos-go-sdk-v5"
)

// Keys are bytes: each reads back under its own name, raw and through the SDK.
func TestKeysAreExactBytes(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	c := sdk(t, s, owner)
	keys := []string{
		"a", "a/b", "a//", "a//b", "/a", "//a", "/", "//", "a/../b", "a/./b", "../..", "dir/", "a+b", "a b", "100%.txt",
		"x%2Fy", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "q?x=1#f", "http://host/a", "tab\tnew\nline", "\xff\xfe", "a\\b", "~!'()*",
	}
	for _, key := range keys {
		s.Put(key, []byte("body of "+key), Attributes{})
	}
	for _, key := range keys {
		resp, err := c.Object.Get(t.Context(), key, nil)
		if err != nil {
			t.Errorf("SDK, %q: %v", key, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "body of "+key {
			t.Errorf("SDK, %q: got %q", key, body)
		}
		// As an edge writes it: slashes kept.
		path := "/" + strings.ReplaceAll(encode(key), "%2F", "/")
		if key == "/" {
			path = "/%2F"
		}
		if r := ask(t, s, "GET", path); string(r.body) != "body of "+key {
			t.Errorf("raw %s: got %d %q", path, r.StatusCode, r.body)
		}
	}
}

func TestTheRootIsAListing(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	for _, key := range []string{"a/1", "a/2", "b", "测试 & <x>"} {
		s.Put(key, []byte("x"), Attributes{})
	}
	c := sdk(t, s, owner)
	list, _, err := c.Bucket.Get(t.Context(), &cos.BucketGetOptions{Prefix: "a/", MaxKeys: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Contents) != 1 || list.Contents[0].Key != "a/1" || !list.IsTruncated || list.NextMarker != "a/1" {
		t.Errorf("first page: %+v", list)
	}
	list, _, err = c.Bucket.Get(t.Context(), &cos.BucketGetOptions{Marker: "a/2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Contents) != 2 || list.Contents[1].Key != "测试 & <x>" || list.IsTruncated {
		t.Errorf("the rest: %+v", list)
	}
	// The SDK turns the key ".." into GET /, a listing with status 200.
	resp, err := c.Object.Get(t.Context(), "..", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); !bytes.Contains(body, []byte("<ListBucketResult>")) {
		t.Errorf("key ..: %s", body)
	}
}

func TestAnObjectCarriesItsHeaders(t *testing.T) {
	s := start(t, Behaviour{})
	body := []byte("stored bytes")
	s.Put("a", body, Attributes{
		ContentType: "image/jpeg", ContentEncoding: "gzip", ContentLanguage: "zh-CN", ContentDisposition: "inline",
		CacheControl: "max-age=60", Expires: "Thu, 01 Dec 2033 16:00:00 GMT", VersionID: "v1", StorageClass: "STANDARD_IA",
		Meta: map[string]string{"title": "测试 über"}, LastModified: time.Date(2026, 9, 4, 8, 3, 42, 5, time.UTC),
	})
	c := sdk(t, s, owner)
	get, err := c.Object.Get(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(get.Body)
	get.Body.Close()
	head, err := c.Object.Head(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, body) {
		t.Errorf("body %q", got)
	}
	want := map[string]string{
		"ETag": `"ead0eb0586ff4f57deffee2548fd7960"`, "Last-Modified": "Fri, 04 Sep 2026 08:03:42 GMT", "Accept-Ranges": "bytes",
		"Content-Length": "12", "Content-Type": "image/jpeg", "Content-Encoding": "gzip", "Content-Language": "zh-CN",
		"Content-Disposition": "inline", "Cache-Control": "max-age=60", "Expires": "Thu, 01 Dec 2033 16:00:00 GMT",
		"x-cos-meta-title": "测试 über", "x-cos-storage-class": "STANDARD_IA", "x-cos-version-id": "v1", "Server": "tencent-cos",
		"x-cos-hash-crc64ecma": fmt.Sprint(crc64.Checksum(body, crc64.MakeTable(crc64.ECMA))),
	}
	for method, h := range map[string]http.Header{"GET": get.Header, "HEAD": head.Header} {
		seen := map[string]string{}
		for name := range want {
			seen[name] = h.Get(name)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
		if h.Get("x-cos-request-id") == "" {
			t.Errorf("%s: no request id", method)
		}
	}
}

func TestRanges(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("ten", []byte("0123456789"), Attributes{})
	s.Put("empty", nil, Attributes{})
	for _, tc := range []struct {
		key, rng     string
		status       int
		body, served string
	}{
		{"ten", "bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"ten", "bytes=4-99", 206, "456789", "bytes 4-9/10"},
		{"ten", "bytes=9-", 206, "9", "bytes 9-9/10"},
		{"ten", "bytes=-3", 206, "789", "bytes 7-9/10"},
		{"ten", "bytes=-99", 206, "0123456789", "bytes 0-9/10"},
		{"ten", "bytes=10-", 416, "InvalidRange", ""},
		{"ten", "bytes=-0", 416, "InvalidRange", ""},
		{"empty", "bytes=0-0", 416, "InvalidRange", ""},
		{"empty", "", 200, "", ""},
		{"ten", "bytes=3-1", 200, "0123456789", ""},
		{"ten", "bytes=0-1,3-4", 200, "0123456789", ""},
		{"ten", "lines=0-1", 200, "0123456789", ""},
	} {
		r := ask(t, s, "GET", "/"+tc.key, "Range", tc.rng)
		got := string(r.body)
		if tc.status == 416 {
			got = r.code()
		}
		if r.StatusCode != tc.status || got != tc.body || r.Header.Get("Content-Range") != tc.served {
			t.Errorf("%s %q: %d %q %q", tc.key, tc.rng, r.StatusCode, got, r.Header.Get("Content-Range"))
		}
	}
}

func TestConditions(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("a", []byte("x"), Attributes{})
	_, at, _ := s.Get("a")
	for _, tc := range []struct {
		header, value string
		status        int
		code          string
	}{
		{"If-Match", at.ETag, 200, ""}, {"If-Match", `"other"`, 412, "PreconditionFailed"},
		{"If-None-Match", at.ETag, 304, ""}, {"If-None-Match", `"other", ` + at.ETag, 304, ""}, {"If-None-Match", `"other"`, 200, ""},
	} {
		if r := ask(t, s, "GET", "/a", tc.header, tc.value); r.StatusCode != tc.status || r.code() != tc.code {
			t.Errorf("%s: %s: %d %q, want %d %q", tc.header, tc.value, r.StatusCode, r.code(), tc.status, tc.code)
		}
	}
}

func TestHeadErrorsHaveNoBody(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("private", []byte("x"), Attributes{ACL: Private})
	s.Put("public", []byte("x"), Attributes{})
	for path, status := range map[string]int{"/private": 403, "/missing": 404, "/public": 412} {
		r := ask(t, s, "HEAD", path, "If-Match", `"other"`)
		if r.StatusCode != status || len(r.body) != 0 || r.Header.Get("x-cos-request-id") == "" || r.Header.Get("x-cos-trace-id") == "" {
			t.Errorf("HEAD %s: %d, %d bytes, %v", path, r.StatusCode, len(r.body), r.Header)
		}
	}
	resp, err := sdk(t, s, owner).Object.Head(t.Context(), "missing", nil)
	if !cos.IsNotFoundError(err) || resp.Header.Get("x-cos-request-id") == "" {
		t.Errorf("signed HEAD of a missing key: %v", err)
	}
}

func TestAnArchivedObjectMustBeRestored(t *testing.T) {
	s := start(t, Behaviour{})
	c := sdk(t, s, owner)
	for _, class := range []string{"ARCHIVE", "DEEP_ARCHIVE"} {
		s.Put("a", []byte("x"), Attributes{StorageClass: class})
		if status, code := sdkCode(t, c, "a"); status != 403 || code != "InvalidObjectState" {
			t.Errorf("%s: %d %q", class, status, code)
		}
		s.Put("a", []byte("x"), Attributes{StorageClass: class, Restored: true})
		resp, err := c.Object.Get(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Header.Get("x-cos-storage-class") != class || !strings.Contains(resp.Header.Get("x-cos-restore"), `ongoing-request="false"`) {
			t.Errorf("%s restored: %v", class, resp.Header)
		}
	}
}

func TestTheBucketIsReadOnlyOverHTTP(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("a", []byte("x"), Attributes{})
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		if r := ask(t, s, method, "/a"); r.StatusCode != 405 || r.code() != "MethodNotAllowed" {
			t.Errorf("%s: %d %q", method, r.StatusCode, r.code())
		}
	}
	s.Delete("a")
	if r := ask(t, s, "GET", "/a"); r.code() != "NoSuchKey" {
		t.Errorf("after Delete: %d %q", r.StatusCode, r.code())
	}
}

// Any part of a synthetic object is the same bytes as in the whole, no two pages
// are equal, and the CRC is that of the bytes.
func TestSyntheticObjectsAreConsistent(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	const size = 3<<20 + 12345
	s.PutSynthetic("big", size, 7, Attributes{})
	whole, at, _ := s.Get("big")
	crc, _ := s.CRC64("big")
	if len(whole) != size || crc != crc64.Checksum(whole, crc64.MakeTable(crc64.ECMA)) {
		t.Fatalf("%d bytes, CRC %d", len(whole), crc)
	}
	seen := map[string]bool{}
	for i := 0; i < size; i += pageSize {
		seen[string(whole[i:min(i+pageSize, size)])] = true
	}
	if want := (size + pageSize - 1) / pageSize; len(seen) != want {
		t.Errorf("%d distinct pages, want %d", len(seen), want)
	}
	for _, span := range [][2]int{{0, 1}, {3, 12}, {4095, 4099}, {1<<20 - 5, 1<<20 + 5}, {2<<20 + 3, 2<<20 + 9000}, {size - 2, size}} {
		r := ask(t, s, "GET", "/big", "Range", fmt.Sprintf("bytes=%d-%d", span[0], span[1]-1), "If-Match", at.ETag)
		if !bytes.Equal(r.body, whole[span[0]:span[1]]) {
			t.Errorf("bytes %d to %d differ from the whole (status %d)", span[0], span[1], r.StatusCode)
		}
	}
	s.PutSynthetic("other", size, 8, Attributes{})
	if other, at2, _ := s.Get("other"); bytes.Equal(other, whole) || at2.ETag == at.ETag {
		t.Error("another seed gives the same object")
	}
}
