package strictaws_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestReadsKnowRangesAndConditions(t *testing.T) {
	modified := time.Date(2026, 9, 4, 8, 0, 0, 5e8, time.UTC)
	r := newRig(t, strictaws.Config{Now: func() time.Time { return modified }})
	r.CreateBucket("public", strictaws.Bucket{PublicRead: true, PublicList: true})
	for key, body := range map[string]string{"k": "0123456789", "empty": ""} {
		if err := r.PutObject("public", key, []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	o, _ := r.Object("public", "k")
	at, before := "Fri, 04 Sep 2026 08:00:00 GMT", "Fri, 04 Sep 2026 07:59:59 GMT"
	for _, c := range []struct {
		key, header, value string
		status             int
		body, contentRange string
	}{
		{"k", "Range", "bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"k", "Range", "bytes=8-99", 206, "89", "bytes 8-9/10"},
		{"k", "Range", "bytes=8-", 206, "89", "bytes 8-9/10"},
		{"k", "Range", "bytes=-3", 206, "789", "bytes 7-9/10"},
		{"k", "Range", "bytes=-99", 206, "0123456789", "bytes 0-9/10"},
		{"k", "Range", "bytes=10-", 416, "", "bytes */10"},
		{"k", "Range", "bytes=-0", 416, "", "bytes */10"},
		{"k", "Range", "bytes=3-2", 200, "0123456789", ""},
		{"k", "Range", "lines=1-2", 200, "0123456789", ""},
		{"empty", "Range", "bytes=0-3", 416, "", "bytes */0"},
		{"empty", "If-Match", "*", 200, "", ""},
		{"k", "If-Match", o.ETag, 200, "0123456789", ""},
		{"k", "If-Match", `"other"`, 412, "", ""},
		{"k", "If-None-Match", o.ETag, 304, "", ""},
		{"k", "If-None-Match", `"other"`, 200, "0123456789", ""},
		{"k", "If-Modified-Since", at, 304, "", ""},
		{"k", "If-Modified-Since", before, 200, "0123456789", ""},
		{"k", "If-Unmodified-Since", at, 200, "0123456789", ""},
		{"k", "If-Unmodified-Since", before, 412, "", ""},
	} {
		resp, body := r.request(t, "GET", "/public/"+c.key, "", http.Header{c.header: {c.value}})
		if resp.StatusCode >= 400 {
			body = ""
		}
		if resp.StatusCode != c.status || body != c.body || resp.Header.Get("Content-Range") != c.contentRange {
			t.Errorf("%s: %s: %d %q %q, want %d %q %q", c.header, c.value, resp.StatusCode, body, resp.Header.Get("Content-Range"), c.status, c.body, c.contentRange)
		}
		head, _ := r.request(t, "HEAD", "/public/"+c.key, "", http.Header{c.header: {c.value}})
		if head.StatusCode != c.status || head.StatusCode == 206 && head.ContentLength != int64(len(c.body)) {
			t.Errorf("HEAD %s: %s: %d with length %d", c.header, c.value, head.StatusCode, head.ContentLength)
		}
	}
}

func TestHeadersAreGivenBack(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	in := &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("k"), Body: strings.NewReader("x"), ContentType: aws.String("image/jpeg"), ContentEncoding: aws.String("gzip"),
		ContentLanguage: aws.String("zh-CN"), ContentDisposition: aws.String(`attachment; filename="a.jpg"`), CacheControl: aws.String("max-age=60"),
		Metadata: map[string]string{"cos-etag": "1", "name": "=?UTF-8?Q?m=C3=BC?="}, StorageClass: types.StorageClassStandardIa}
	expires := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	in.Expires = &expires
	if _, err := r.s3.PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	got, err := r.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: in.Bucket, Key: in.Key})
	if err != nil {
		t.Fatal(err)
	}
	type kept struct {
		Type, Encoding, Language, Disposition, Cache, Expires *string
		Metadata                                              map[string]string
		Class                                                 types.StorageClass
		SSE                                                   types.ServerSideEncryption
	}
	want := kept{in.ContentType, in.ContentEncoding, in.ContentLanguage, in.ContentDisposition, in.CacheControl, aws.String("Tue, 01 Jan 2030 00:00:00 GMT"), in.Metadata, in.StorageClass, "AES256"}
	have := kept{got.ContentType, got.ContentEncoding, got.ContentLanguage, got.ContentDisposition, got.CacheControl, got.ExpiresString, got.Metadata, got.StorageClass, got.ServerSideEncryption}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
}

func TestMetadataNamesAreLowerCase(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{PublicRead: true})
	if got := putRaw(cloud, "hello", http.Header{"X-Amz-Meta-Cos-Etag": {"1"}}); got != "200 " {
		t.Fatal(got)
	}
	w := httptest.NewRecorder()
	cloud.S3().ServeHTTP(w, httptest.NewRequest("GET", "/media/k", nil))
	if got := w.Header()["x-amz-meta-cos-etag"]; len(got) != 1 || got[0] != "1" {
		t.Errorf("headers = %v", w.Header())
	}
}

func TestArchivedObjectsCannotBeRead(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	if err := r.PutObject("media", "k", []byte("x"), http.Header{"X-Amz-Storage-Class": {"GLACIER"}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("media"), Key: aws.String("k")})
	wantCode(t, err, "InvalidObjectState")
	if _, err := r.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("media"), Key: aws.String("k")}); err != nil {
		t.Errorf("HeadObject: %v", err)
	}
}

func TestDeleteMarkersHideObjects(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.CreateBucket("kept", strictaws.Bucket{Versioned: true, PublicRead: true, PublicList: true})
	bucket, key := aws.String("kept"), aws.String("k")
	put, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x")})
	if err != nil {
		t.Fatal(err)
	}
	del, err := r.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key})
	if err != nil || !aws.ToBool(del.DeleteMarker) {
		t.Fatalf("DeleteObject = %+v, %v", del, err)
	}
	for _, method := range []string{"GET", "HEAD"} {
		if resp, _ := r.request(t, method, "/kept/k", "", nil); resp.StatusCode != 404 || resp.Header.Get("X-Amz-Delete-Marker") != "true" {
			t.Errorf("%s of a marker = %s %v", method, resp.Status, resp.Header)
		}
	}
	if resp, _ := r.request(t, "HEAD", "/kept/never", "", nil); resp.StatusCode != 404 || resp.Header.Get("X-Amz-Delete-Marker") != "" {
		t.Errorf("HEAD of nothing = %s %v", resp.Status, resp.Header)
	}
	if o, ok := r.Object("kept", "k"); !ok || !o.DeleteMarker || len(r.Keys("kept")) != 0 {
		t.Errorf("Object = %+v, keys %q", o, r.Keys("kept"))
	}
	if resp, body := r.request(t, "GET", "/kept/k?versionId="+*put.VersionId, "", nil); resp.StatusCode != 200 || body != "x" {
		t.Errorf("the old version = %s %q", resp.Status, body)
	}
	if _, err := r.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key, VersionId: del.VersionId}); err != nil {
		t.Fatal(err)
	}
	if o, _ := r.Object("kept", "k"); string(o.Body) != "x" {
		t.Errorf("with the marker gone: %+v", o)
	}
}

func TestDeleteObjectsTellsEachKey(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for _, k := range []string{"a//b", "ü x", "kept"} {
		r.put(t, k, k)
	}
	r.Deny("*", "s3:DeleteObject", "media/kept")
	out, err := r.s3.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("media"), Delete: &types.Delete{Objects: []types.ObjectIdentifier{
		{Key: aws.String("a//b")}, {Key: aws.String("ü x")}, {Key: aws.String("kept")}, {Key: aws.String("never there")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Deleted) != 3 || len(out.Errors) != 1 || *out.Errors[0].Key != "kept" || *out.Errors[0].Code != "AccessDenied" {
		t.Errorf("DeleteObjects = %+v", out)
	}
	if d := cmp.Diff([]string{"kept"}, r.Keys("media")); d != "" {
		t.Error(d)
	}
}
