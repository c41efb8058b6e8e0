package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/crc64nvme"

	"github.com/objectferry/objectferry/internal/object"
)

// nvme is the reversed polynomial of CRC64NVME.
const nvme = 0x9a6c9329ac4bc9b5

// maxParts is S3's limit of parts in an upload.
const maxParts = 10_000

// Begin starts a multipart upload; see copier.Destination. The whole object's
// CRC64NVME, which S3 alone allows for this algorithm, is combined from the
// parts' and checked by S3 before the object becomes visible.
func (s *Store) Begin(ctx context.Context, key string, a object.Attributes, p object.Provenance) (object.Upload, error) {
	const op = "CreateMultipartUpload"
	h, err := s.fits(key, 0, a, p)
	if err != nil {
		return nil, s.unfit(op, key, err)
	}
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &s.cfg.Bucket, Key: &key, ExpectedBucketOwner: s.owner,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme, ChecksumType: types.ChecksumTypeFullObject,
	}, carrying(h))
	if err != nil {
		return nil, classify(ctx, object.Destination, op, key, prepares, err)
	}
	if aws.ToString(out.UploadId) == "" {
		return nil, &object.Error{Side: object.Destination, Op: op, Key: key, Class: object.Unavailable, Err: errors.New("the answer has no upload id, so it is not S3's")}
	}
	return &upload{store: s, key: key, id: *out.UploadId, parts: make(map[int]part)}, nil
}

// upload is one multipart upload; parts may be written concurrently.
type upload struct {
	store *Store
	key   string
	id    string

	mu    sync.Mutex
	parts map[int]part
}

// part is what Complete must know of a part that was written.
type part struct {
	etag string
	crc  uint64
	size int64
}

// Part writes part n; see object.Upload.
func (u *upload) Part(ctx context.Context, n int, body []byte) error {
	const op = "UploadPart"
	if n < 1 || n > maxParts || len(body) > maxPut {
		return u.store.unfit(op, u.key, fmt.Errorf("part %d of %d bytes exceeds S3's limits", n, len(body)))
	}
	crc := crc64nvme.Checksum(body)
	sum := checksum(crc)
	out, err := u.store.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.store.cfg.Bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(n)), ExpectedBucketOwner: u.store.owner,
		Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))), ChecksumCRC64NVME: &sum,
	}, unsigned)
	if err != nil {
		return classify(ctx, object.Destination, op, u.key, prepares, err)
	}
	e := &object.Error{Side: object.Destination, Op: op, Key: u.key, Code: "http 200"}
	switch got := out.ChecksumCRC64NVME; {
	case aws.ToString(out.ETag) == "":
		e.Class, e.Err = object.Unavailable, errNoETag
		return e
	case got != nil && *got != sum:
		e.Class, e.Err = object.Corrupt, fmt.Errorf("S3 stored CRC64NVME %s of part %d, sent %s", *got, n, sum)
		return e
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[n] = part{etag: *out.ETag, crc: crc, size: int64(len(body))}
	return nil
}

// Complete makes the object visible; see object.Upload.
func (u *upload) Complete(ctx context.Context) error {
	const op = "CompleteMultipartUpload"
	parts, crc, size, err := u.listed()
	if err != nil {
		return &object.Error{Side: object.Destination, Op: op, Key: u.key, Class: object.Corrupt, Err: err}
	}
	sum := checksum(crc)
	out, err := u.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.store.cfg.Bucket, Key: &u.key, UploadId: &u.id, ExpectedBucketOwner: u.store.owner,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}, MpuObjectSize: &size,
		ChecksumCRC64NVME: &sum, ChecksumType: types.ChecksumTypeFullObject, IfNoneMatch: aws.String(createOnly),
	})
	if err != nil {
		// NoSuchUpload is what a repeated Complete hears after one that succeeded
		// and whose answer was lost; classify leaves that Ambiguous.
		return classify(ctx, object.Destination, op, u.key, commits, err)
	}
	return u.store.proven(op, u.key, out.ETag, false, out.ChecksumCRC64NVME, sum)
}

// listed is every part in order, and the CRC64NVME and the size of them all.
func (u *upload) listed() (parts []types.CompletedPart, crc uint64, size int64, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.parts) == 0 {
		return nil, 0, 0, errors.New("no part was written")
	}
	for n := 1; n <= len(u.parts); n++ {
		p, ok := u.parts[n]
		if !ok {
			return nil, 0, 0, fmt.Errorf("part %d of %d was not written", n, len(u.parts))
		}
		parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(int32(n)), ETag: aws.String(p.etag), ChecksumCRC64NVME: aws.String(checksum(p.crc))})
		crc = object.CombineCRC64(nvme, crc, p.crc, p.size)
		size += p.size
	}
	return parts, crc, size, nil
}

// Abort throws the parts away; see object.Upload.
func (u *upload) Abort(ctx context.Context) error {
	_, err := u.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: &u.store.cfg.Bucket, Key: &u.key, UploadId: &u.id, ExpectedBucketOwner: u.store.owner,
	})
	if err == nil {
		return nil
	}
	if e := classify(ctx, object.Destination, "AbortMultipartUpload", u.key, prepares, err); e.Code != "NoSuchUpload" {
		return e
	}
	return nil // gone already
}
