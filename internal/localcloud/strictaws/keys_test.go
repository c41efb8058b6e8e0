package strictaws_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

// oddKeys are names that others clean, decode or refuse.
func oddKeys() []string {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return []string{"a", "a//", "/img.jpg", "2026/1//1d8c", "a/../b", "../..", "..", ".", "a/./b", "/", "//", "a b", "a+b", "a%20b", "100%.txt",
		"a%2Fb", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "q?x=1", "h#1", "a;b", "a=b&c", "line\nbreak", "\xff\xfe", string(every)}
}

func TestKeysAreExactBytes(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for _, key := range oddKeys() {
		r.put(t, key, "body of "+key)
		o, ok := r.Object("media", key)
		if !ok || string(o.Body) != "body of "+key {
			t.Errorf("key %q is not there under its own name", key)
		}
		got, err := r.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("media"), Key: &key})
		if err != nil || *got.ContentLength != int64(len("body of "+key)) {
			t.Errorf("HeadObject %q: %v", key, err)
		}
	}
	if got, want := len(r.Keys("media")), len(oddKeys()); got != want {
		t.Errorf("%d keys, want %d: two of them became one", got, want)
	}
}

func TestKeysAreExactBytesInDeleteAndMultipart(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for _, key := range []string{"a//../b", "/x", "a b+c"} {
		up := r.begin(t, key, nil)
		r.complete(t, up, r.part(t, up, 1, "x"))
		if _, err := r.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: up.Bucket, Key: &key}); err != nil {
			t.Error(err)
		}
	}
	if keys := r.Keys("media"); len(keys) != 0 {
		t.Errorf("left over: %q", keys)
	}
}

func TestHostHeaderNamesTheBucket(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.CreateBucket("my.pub", strictaws.Bucket{PublicRead: true, PublicList: true})
	if err := r.PutObject("my.pub", "/a//b", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	for host, target := range map[string]string{
		"":                                  "/my.pub//a//b",
		"s3.us-west-2.amazonaws.com":        "/my.pub//a//b",
		"localhost:9000":                    "/my.pub//a//b",
		"my.pub.s3.us-west-2.amazonaws.com": "/%2Fa//b",
		"my.pub.s3-us-west-2.amazonaws.com": "/%2Fa//b",
		"my.pub.s3.localhost:9000":          "/%2Fa//b",
		"my.pub.localhost":                  "/%2Fa//b",
	} {
		if resp, body := r.request(t, "GET", target, "", http.Header{"Host": {host}}); resp.StatusCode != 200 || body != "x" {
			t.Errorf("Host %q GET %s = %s %s", host, target, resp.Status, body)
		}
	}
}

func TestListing(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for _, k := range []string{"a", "a/1", "a/2", "a/b/3", "b b/ü", "c//d", "z"} {
		r.put(t, k, k)
	}
	type page struct{ Keys, Prefixes []string }
	for _, c := range []struct {
		name string
		in   s3.ListObjectsV2Input
		want page
	}{
		{"all", s3.ListObjectsV2Input{}, page{Keys: []string{"a", "a/1", "a/2", "a/b/3", "b b/ü", "c//d", "z"}}},
		{"prefix", s3.ListObjectsV2Input{Prefix: aws.String("a/")}, page{Keys: []string{"a/1", "a/2", "a/b/3"}}},
		{"delimiter", s3.ListObjectsV2Input{Delimiter: aws.String("/")}, page{Keys: []string{"a", "z"}, Prefixes: []string{"a/", "b b/", "c/"}}},
		{"prefix and delimiter", s3.ListObjectsV2Input{Prefix: aws.String("a/"), Delimiter: aws.String("/")}, page{Keys: []string{"a/1", "a/2"}, Prefixes: []string{"a/b/"}}},
		{"start after", s3.ListObjectsV2Input{StartAfter: aws.String("b b/ü")}, page{Keys: []string{"c//d", "z"}}},
		{"url encoding", s3.ListObjectsV2Input{Prefix: aws.String("b b"), EncodingType: "url"}, page{Keys: []string{"b+b/%C3%BC"}}},
	} {
		for _, size := range []int32{1, 2, 1000} {
			in := c.in
			in.Bucket, in.MaxKeys = aws.String("media"), &size
			var got page
			for p := s3.NewListObjectsV2Paginator(r.s3, &in); p.HasMorePages(); {
				out, err := p.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n := len(out.Contents) + len(out.CommonPrefixes); n > int(size) || int(*out.KeyCount) != n {
					t.Errorf("%s: page of %d entries, KeyCount %d, limit %d", c.name, n, *out.KeyCount, size)
				}
				for _, o := range out.Contents {
					got.Keys = append(got.Keys, *o.Key)
				}
				for _, o := range out.CommonPrefixes {
					got.Prefixes = append(got.Prefixes, *o.Prefix)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s in pages of %d (-want +got):\n%s", c.name, size, d)
			}
		}
	}
}

func TestUnknownSubresourceIsNotIgnored(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.CreateBucket("public", strictaws.Bucket{PublicRead: true})
	for _, target := range []string{"/public/a?tagging", "/public/a?acl", "/public?lifecycle", "/public?list-type=1"} {
		if resp, body := r.request(t, "GET", target, "", nil); resp.StatusCode == 200 || strings.Contains(body, "NoSuchKey") {
			t.Errorf("GET %s = %s %s", target, resp.Status, body)
		}
	}
}
