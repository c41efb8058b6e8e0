package s3store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/minio/crc64nvme"

	"github.com/objectferry/objectferry/internal/object"
)

// createOnly is If-None-Match's "no version of it".
const createOnly = "*"

// Put writes a whole object, create-only; see copier.Destination.
func (s *Store) Put(ctx context.Context, key string, body []byte, a object.Attributes, p object.Provenance) error {
	const op = "PutObject"
	h, err := s.fits(key, int64(len(body)), a, p)
	if err != nil {
		return s.unfit(op, key, err)
	}
	sum := checksum(crc64nvme.Checksum(body))
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.cfg.Bucket, Key: &key, ExpectedBucketOwner: s.owner,
		Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
		ChecksumCRC64NVME: &sum, IfNoneMatch: aws.String(createOnly),
	}, carrying(h), unsigned)
	if err != nil {
		return classify(ctx, object.Destination, op, key, commits, err)
	}
	resp, _ := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	page := resp != nil && resp.ContentLength > 0 // S3's own answer has no body
	return s.proven(op, key, out.ETag, page, out.ChecksumCRC64NVME, sum)
}

// proven checks that an answer proves that what was sent was written.
func (s *Store) proven(op, key string, etag *string, page bool, got *string, sum string) error {
	e := &object.Error{Side: object.Destination, Op: op, Key: key, Code: "http 200"}
	switch {
	case aws.ToString(etag) == "":
		e.Class, e.Err = object.Ambiguous, errors.New("the answer has no ETag")
	case page:
		e.Class, e.Err = object.Ambiguous, errors.New("the answer has a body, so it is not S3's")
	case got != nil && *got != sum:
		e.Class, e.Err = object.Mangled, fmt.Errorf("S3 stored CRC64NVME %s, sent %s", *got, sum)
		e.Hint = "the ferry wrote it, but S3 stored it wrongly: delete that version of it, then redrive the request"
	default:
		return nil
	}
	return e
}

// fits returns the headers of an object, or why it cannot exist here.
func (s *Store) fits(key string, size int64, a object.Attributes, p object.Provenance) (http.Header, error) {
	if err := holdable(key); err != nil {
		return nil, err
	}
	if size > maxPut {
		return nil, fmt.Errorf("%d bytes exceed S3's %d of one PutObject", size, int64(maxPut))
	}
	return s.headers(a, p)
}

// holdable says why S3 cannot hold key, nil when it can.
func holdable(key string) error {
	if key == "" || len(key) > object.MaxKey {
		return fmt.Errorf("a key of %d bytes; S3 takes 1 to %d", len(key), object.MaxKey)
	}
	return nil
}

func (s *Store) unfit(op, key string, err error) error {
	return &object.Error{Side: object.Destination, Op: op, Key: key, Class: object.Unfit, Err: err}
}

// unsigned leaves the body out of the signature: S3 checks its CRC64NVME, whose
// header is signed, and TLS guards it on the way. A SHA-256 of every body would
// cost more than all the rest of a request.
func unsigned(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// checksum is a CRC as S3 writes it.
func checksum(crc uint64) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc))
}
