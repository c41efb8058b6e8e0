package strictaws_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/crc64nvme"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func sums(body string) map[string]string {
	b := []byte(body)
	m, s := md5.Sum(b), sha256.Sum256(b)
	enc := base64.StdEncoding.EncodeToString
	return map[string]string{
		"Content-Md5":              enc(m[:]),
		"X-Amz-Content-Sha256":     hex.EncodeToString(s[:]),
		"X-Amz-Checksum-Sha256":    enc(s[:]),
		"X-Amz-Checksum-Crc32":     enc(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b))),
		"X-Amz-Checksum-Crc32c":    enc(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))),
		"X-Amz-Checksum-Crc64nvme": enc(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(b))),
	}
}

func TestWrongDigestIsRefusedAndNothingStored(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{})
	right, wrong := sums("hello"), sums("hellp")
	for header, code := range map[string]string{
		"Content-Md5":              "BadDigest",
		"X-Amz-Content-Sha256":     "XAmzContentSHA256Mismatch",
		"X-Amz-Checksum-Sha256":    "BadDigest",
		"X-Amz-Checksum-Crc32":     "BadDigest",
		"X-Amz-Checksum-Crc32c":    "BadDigest",
		"X-Amz-Checksum-Crc64nvme": "BadDigest",
	} {
		if got := putRaw(cloud, "hello", http.Header{header: {wrong[header]}}); got != "400 "+code {
			t.Errorf("%s wrong: %s, want 400 %s", header, got, code)
		}
		if keys := cloud.Keys("media"); len(keys) != 0 {
			t.Fatalf("%s wrong, but stored %q", header, keys)
		}
		if got := putRaw(cloud, "hello", http.Header{header: {right[header]}}); got != "200 " {
			t.Errorf("%s right: %s", header, got)
		}
		if err := cloud.DeleteObject("media", "k"); err != nil {
			t.Fatal(err)
		}
	}
}

// putRaw puts body under media/k with a signature that nobody verifies and
// returns status and error code.
func putRaw(cloud *strictaws.Cloud, body string, h http.Header) string {
	req := httptest.NewRequest("PUT", "/media/k", strings.NewReader(body))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260101/us-west-2/s3/aws4_request, SignedHeaders=host, Signature=00")
	req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	for k, v := range h {
		req.Header[k] = v
	}
	if length := h.Get("Content-Length"); length == "none" {
		req.ContentLength = -1
	} else if n, err := strconv.ParseInt(length, 10, 64); err == nil {
		req.ContentLength = n
	}
	w := httptest.NewRecorder()
	cloud.S3().ServeHTTP(w, req)
	_, code, _ := strings.Cut(w.Body.String(), "<Code>")
	code, _, _ = strings.Cut(code, "<")
	return w.Result().Status[:4] + code
}

func TestMalformedWritesAreRefused(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{})
	for _, c := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"no length", http.Header{"Content-Length": {"none"}}, "411 MissingContentLength"},
		{"length of a framed body is missing", http.Header{"X-Amz-Content-Sha256": {"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}}, "411 MissingContentLength"},
		{"MD5 that is none", http.Header{"Content-Md5": {"aGVsbG8="}}, "400 InvalidDigest"},
		{"checksum that is none", http.Header{"X-Amz-Checksum-Crc32": {"aGVsbG8="}}, "400 InvalidRequest"},
		{"two checksums", http.Header{"X-Amz-Checksum-Crc32": {sums("hello")["X-Amz-Checksum-Crc32"]}, "X-Amz-Checksum-Crc64nvme": {sums("hello")["X-Amz-Checksum-Crc64nvme"]}}, "400 InvalidRequest"},
		{"algorithm without checksum", http.Header{"X-Amz-Sdk-Checksum-Algorithm": {"CRC32"}}, "400 InvalidRequest"},
		{"payload hash that is none", http.Header{"X-Amz-Content-Sha256": {"abc"}}, "400 InvalidArgument"},
		{"If-None-Match of an ETag", http.Header{"If-None-Match": {`"x"`}}, "501 NotImplemented"},
		{"unknown storage class", http.Header{"X-Amz-Storage-Class": {"COLD"}}, "400 InvalidStorageClass"},
		{"unknown encryption", http.Header{"X-Amz-Server-Side-Encryption": {"rot13"}}, "400 InvalidEncryptionAlgorithmError"},
		{"metadata over 2 KB", http.Header{"X-Amz-Meta-A": {strings.Repeat("x", 2048)}}, "400 MetadataTooLarge"},
		{"metadata not ASCII", http.Header{"X-Amz-Meta-A": {"münchen"}}, "403 SignatureDoesNotMatch"},
		{"copy", http.Header{"X-Amz-Copy-Source": {"/media/x"}}, "501 NotImplemented"},
	} {
		if got := putRaw(cloud, "hello", c.header); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if keys := cloud.Keys("media"); len(keys) != 0 {
			t.Fatalf("%s: stored", c.name)
		}
	}
	if got := putRaw(cloud, "hello", http.Header{"X-Amz-Meta-A": {strings.Repeat("x", 2047)}}); got != "200 " {
		t.Errorf("metadata of 2 KB: %s", got)
	}
}

func TestBodyCutShortIsNotStored(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{})
	if got := putRaw(cloud, "short", http.Header{"Content-Length": {"100"}}); got != "400 IncompleteBody" || len(cloud.Keys("media")) != 0 {
		t.Errorf("cut body: %s, keys %q", got, cloud.Keys("media"))
	}
}

func TestKeyOver1024BytesIsRefused(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, strings.Repeat("k", 1024), "x")
	_, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String(strings.Repeat("k", 1025))})
	wantCode(t, err, "KeyTooLongError")
}

func TestExpectedOwnerIsChecked(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for owner, code := range map[string]string{"111122223333": "", "999999999999": "AccessDenied"} {
		_, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("k"), ExpectedBucketOwner: &owner})
		if code == "" && err != nil {
			t.Errorf("owner %s: %v", owner, err)
		} else if code != "" {
			wantCode(t, err, code)
		}
	}
}

func TestWritesAreCreateOnlyWhenAsked(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, "there", "theirs")
	_, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("there"), Body: strings.NewReader("ours"), IfNoneMatch: aws.String("*")})
	wantCode(t, err, "PreconditionFailed")

	up := r.begin(t, "there", nil)
	p := r.part(t, up, 1, "ours")
	in := completeInput(up, p)
	in.IfNoneMatch = aws.String("*")
	_, err = r.s3.CompleteMultipartUpload(t.Context(), in)
	wantCode(t, err, "PreconditionFailed")
	if o, _ := r.Object("media", "there"); string(o.Body) != "theirs" {
		t.Errorf("clobbered: %q", o.Body)
	}
	if err := r.DeleteObject("media", "there"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.s3.CompleteMultipartUpload(t.Context(), in); err != nil {
		t.Errorf("create-only Complete with nothing there: %v", err)
	}
}

func TestETagIsMD5OfASinglePutWithoutKMS(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	sum := md5.Sum([]byte("hello"))
	want := `"` + hex.EncodeToString(sum[:]) + `"`
	for sse, isMD5 := range map[types.ServerSideEncryption]bool{"": true, "AES256": true, "aws:kms": false} {
		out, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("k"), Body: strings.NewReader("hello"), ServerSideEncryption: sse})
		if err != nil || (*out.ETag == want) != isMD5 {
			t.Errorf("sse %q: ETag %v, %v; MD5 wanted: %v", sse, out, err, isMD5)
		}
	}
}

func TestDiscardedBodiesAreStillVerified(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{DiscardOver: 4})
	cloud.CreateBucket("media", strictaws.Bucket{})
	const h = "X-Amz-Checksum-Crc64nvme"
	if got := putRaw(cloud, "hello", http.Header{h: {sums("hellp")[h]}}); got != "400 BadDigest" {
		t.Errorf("wrong checksum: %s", got)
	}
	if got := putRaw(cloud, "hello", http.Header{h: {sums("hello")[h]}}); got != "200 " {
		t.Errorf("right checksum: %s", got)
	}
	if o, ok := cloud.Object("media", "k"); !ok || o.Body != nil || o.Size != 5 || o.CRC64NVME != sums("hello")[h] {
		t.Errorf("Object = %+v", o)
	}
}
