package strictaws_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/crc64nvme"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func nvme(s string) *string {
	return aws.String(base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum([]byte(s)))))
}

func (r *rig) begin(t *testing.T, key string, change func(*s3.CreateMultipartUploadInput)) *s3.CreateMultipartUploadOutput {
	t.Helper()
	in := &s3.CreateMultipartUploadInput{Bucket: aws.String("media"), Key: &key}
	if change != nil {
		change(in)
	}
	out, err := r.s3.CreateMultipartUpload(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *rig) part(t *testing.T, up *s3.CreateMultipartUploadOutput, n int32, body string) types.CompletedPart {
	t.Helper()
	out, err := r.s3.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId, PartNumber: &n,
		Body: strings.NewReader(body), ChecksumCRC64NVME: nvme(body)})
	if err != nil {
		t.Fatal(err)
	}
	return types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC64NVME: out.ChecksumCRC64NVME}
}

func completeInput(up *s3.CreateMultipartUploadOutput, parts ...types.CompletedPart) *s3.CompleteMultipartUploadInput {
	return &s3.CompleteMultipartUploadInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
}

func (r *rig) complete(t *testing.T, up *s3.CreateMultipartUploadOutput, parts ...types.CompletedPart) *s3.CompleteMultipartUploadOutput {
	t.Helper()
	out, err := r.s3.CompleteMultipartUpload(t.Context(), completeInput(up, parts...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMultipartObjectIsThePartsInOrder(t *testing.T) {
	r := newRig(t, strictaws.Config{MinPartSize: 3})
	up := r.begin(t, "big", func(in *s3.CreateMultipartUploadInput) {
		in.ContentType, in.Metadata = aws.String("video/mp4"), map[string]string{"a": "b"}
	})
	second := r.part(t, up, 7, "defg")
	r.part(t, up, 2, "zzz") // written again below
	first := r.part(t, up, 2, "abc")
	third := r.part(t, up, 9, "h")
	out := r.complete(t, up, first, second, third)
	inner := md5.New()
	for _, s := range []string{"abc", "defg", "h"} {
		m := md5.Sum([]byte(s))
		inner.Write(m[:])
	}
	if want := fmt.Sprintf(`"%x-3"`, inner.Sum(nil)); *out.ETag != want {
		t.Errorf("ETag = %s, want the MD5 of MD5s %s", *out.ETag, want)
	}
	if *out.ChecksumCRC64NVME != *nvme("abcdefgh") || out.ChecksumType != types.ChecksumTypeFullObject {
		t.Errorf("checksum = %v %s, want the full object's", *out.ChecksumCRC64NVME, out.ChecksumType)
	}
	got, err := r.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: up.Bucket, Key: up.Key, Range: aws.String("bytes=2-6")})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(got.Body); string(b) != "cdefg" || *got.ContentRange != "bytes 2-6/8" || *got.ContentType != "video/mp4" || got.Metadata["a"] != "b" {
		t.Errorf("range over parts = %q %+v", b, got)
	}
	if n := r.Uploads("media"); n != 0 {
		t.Errorf("%d uploads are open after Complete", n)
	}
	_, err = r.s3.CompleteMultipartUpload(t.Context(), completeInput(up, first, second, third))
	wantCode(t, err, "NoSuchUpload")
}

func TestCompleteRefusesWhatDoesNotFit(t *testing.T) {
	r := newRig(t, strictaws.Config{MinPartSize: 3})
	up := r.begin(t, "big", nil)
	one, two, small := r.part(t, up, 1, "abc"), r.part(t, up, 2, "def"), r.part(t, up, 3, "g")
	bent := one
	bent.ETag = aws.String(`"00000000000000000000000000000000"`)
	unknown := one
	unknown.PartNumber = aws.Int32(5)
	lying := one
	lying.ChecksumCRC64NVME = nvme("abd")
	for _, c := range []struct {
		name, code string
		in         *s3.CompleteMultipartUploadInput
		change     func(*s3.CompleteMultipartUploadInput)
	}{
		{"out of order", "InvalidPartOrder", completeInput(up, two, one), nil},
		{"twice the same", "InvalidPartOrder", completeInput(up, one, one), nil},
		{"unknown ETag", "InvalidPart", completeInput(up, bent, two), nil},
		{"unknown part", "InvalidPart", completeInput(up, one, unknown), nil},
		{"wrong checksum of a part", "InvalidPart", completeInput(up, lying, two), nil},
		{"small part in the middle", "EntityTooSmall", completeInput(up, one, small, r.part(t, up, 4, "hij")), nil},
		{"no parts", "MalformedXML", completeInput(up), nil},
		{"wrong checksum of the object", "BadDigest", completeInput(up, one, two), func(in *s3.CompleteMultipartUploadInput) { in.ChecksumCRC64NVME = nvme("abcdeg") }},
		{"wrong size", "InvalidRequest", completeInput(up, one, two), func(in *s3.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(7) }},
		{"another key", "NoSuchUpload", completeInput(up, one, two), func(in *s3.CompleteMultipartUploadInput) { in.Key = aws.String("other") }},
	} {
		if c.change != nil {
			c.change(c.in)
		}
		_, err := r.s3.CompleteMultipartUpload(t.Context(), c.in)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
		} else {
			t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.code) })
		}
		if len(r.Keys("media")) != 0 {
			t.Fatalf("%s: an object became visible", c.name)
		}
	}
	in := completeInput(up, one, two, small)
	in.ChecksumCRC64NVME, in.ChecksumType, in.MpuObjectSize = nvme("abcdefg"), types.ChecksumTypeFullObject, aws.Int64(7)
	if _, err := r.s3.CompleteMultipartUpload(t.Context(), in); err != nil {
		t.Errorf("all right: %v", err)
	}
}

func TestUploadPartRefusesWhatDoesNotFit(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	up := r.begin(t, "big", nil)
	for _, c := range []struct {
		name, code string
		n          int32
		change     func(*s3.UploadPartInput)
	}{
		{"part 0", "InvalidArgument", 0, nil},
		{"part 10001", "InvalidArgument", 10001, nil},
		{"wrong checksum", "BadDigest", 1, func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = nvme("x") }},
		{"another algorithm", "InvalidRequest", 1, func(in *s3.UploadPartInput) { in.ChecksumCRC32 = aws.String("AAAAAA==") }},
		{"unknown upload", "NoSuchUpload", 1, func(in *s3.UploadPartInput) { in.UploadId = aws.String("nope") }},
	} {
		in := &s3.UploadPartInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId, PartNumber: &c.n, Body: strings.NewReader("body")}
		if c.change != nil {
			c.change(in)
		}
		_, err := r.s3.UploadPart(t.Context(), in)
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.code) })
	}
	parts, err := r.s3.ListParts(t.Context(), &s3.ListPartsInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId})
	if err != nil || len(parts.Parts) != 0 {
		t.Errorf("ListParts = %+v, %v; want none", parts, err)
	}
}

func TestUploadsAreListedAndAborted(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	up := r.begin(t, "a b", nil)
	r.part(t, up, 3, "x")
	list, err := r.s3.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: up.Bucket})
	if err != nil || len(list.Uploads) != 1 || *list.Uploads[0].Key != "a b" || *list.Uploads[0].UploadId != *up.UploadId {
		t.Fatalf("ListMultipartUploads = %+v, %v", list, err)
	}
	parts, err := r.s3.ListParts(t.Context(), &s3.ListPartsInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId})
	if err != nil || len(parts.Parts) != 1 || *parts.Parts[0].PartNumber != 3 {
		t.Errorf("ListParts = %+v, %v", parts, err)
	}
	abort := &s3.AbortMultipartUploadInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId}
	if _, err := r.s3.AbortMultipartUpload(t.Context(), abort); err != nil || r.Uploads("media") != 0 {
		t.Errorf("Abort: %v, %d open", err, r.Uploads("media"))
	}
	_, err = r.s3.AbortMultipartUpload(t.Context(), abort)
	wantCode(t, err, "NoSuchUpload")
}

func TestCompositeChecksumIsOfTheParts(t *testing.T) {
	r := newRig(t, strictaws.Config{MinPartSize: 1})
	for _, c := range []struct {
		alg  types.ChecksumAlgorithm
		kind types.ChecksumType
		want string // of "abc" and "def"
	}{
		{"SHA256", "COMPOSITE", "-2"},
		{"CRC32", "FULL_OBJECT", sums("abcdef")["X-Amz-Checksum-Crc32"]},
		{"CRC32C", "FULL_OBJECT", sums("abcdef")["X-Amz-Checksum-Crc32c"]},
	} {
		up := r.begin(t, "k", func(in *s3.CreateMultipartUploadInput) { in.ChecksumAlgorithm, in.ChecksumType = c.alg, c.kind })
		var parts []types.CompletedPart
		for i, body := range []string{"abc", "def"} {
			n := int32(i + 1)
			out, err := r.s3.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId, PartNumber: &n,
				Body: strings.NewReader(body), ChecksumAlgorithm: c.alg})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC32C: out.ChecksumCRC32C, ChecksumSHA256: out.ChecksumSHA256})
		}
		out := r.complete(t, up, parts...)
		got := aws.ToString(out.ChecksumSHA256) + aws.ToString(out.ChecksumCRC32) + aws.ToString(out.ChecksumCRC32C)
		if !strings.HasSuffix(got, c.want) || out.ChecksumType != c.kind {
			t.Errorf("%s: %q %s, want %q %s", c.alg, got, out.ChecksumType, c.want, c.kind)
		}
	}
}
