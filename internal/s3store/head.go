package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/objectferry/objectferry/internal/object"
)

// firstByte is asked for where the answer matters and the object does not.
var firstByte = object.Range{Length: 1}.Header()

// Head says what stands under key; see copier.Destination.
func (s *Store) Head(ctx context.Context, key string) (object.Found, error) {
	if err := holdable(key); err != nil {
		return object.Found{}, s.unfit("HeadObject", key, err)
	}
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.cfg.Bucket, Key: &key, ExpectedBucketOwner: s.owner})
	if err == nil {
		return s.found("HeadObject", key, object.Attributes{
			Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), LastModified: aws.ToTime(out.LastModified),
			ContentType: aws.ToString(out.ContentType), ContentEncoding: aws.ToString(out.ContentEncoding),
			ContentLanguage: aws.ToString(out.ContentLanguage), ContentDisposition: aws.ToString(out.ContentDisposition),
			CacheControl: aws.ToString(out.CacheControl), Expires: aws.ToString(out.ExpiresString), Metadata: out.Metadata,
		})
	}
	switch status, header := answered(err); {
	case status == http.StatusNotFound && authentic(header):
		return object.Found{Deleted: header.Get("X-Amz-Delete-Marker") == "true"}, nil
	case status >= 400 && status < 500, status == http.StatusServiceUnavailable:
		return s.look(ctx, key) // a HEAD's refusal has no body, hence no code
	}
	return object.Found{}, classify(ctx, object.Destination, "HeadObject", key, reads, err)
}

// look asks for one byte of key, which tells the same as a HEAD and, when it is
// refused, why.
func (s *Store) look(ctx context.Context, key string) (object.Found, error) {
	in := &s3.GetObjectInput{Bucket: &s.cfg.Bucket, Key: &key, Range: &firstByte, ExpectedBucketOwner: s.owner}
	out, err := s.client.GetObject(ctx, in)
	if status, _ := answered(err); status == http.StatusRequestedRangeNotSatisfiable { // it is there, and empty
		in.Range = nil
		out, err = s.client.GetObject(ctx, in)
	}
	if err == nil {
		out.Body.Close()
		a := gotten(out)
		if _, size, err := (object.Range{Length: 1}).Answered(aws.ToString(out.ContentRange), a.Size); err == nil {
			a.Size = size
		}
		return s.found(opGet, key, a)
	}
	e := classify(ctx, object.Destination, opGet, key, reads, err)
	if _, header := answered(err); e.Class == object.Absent {
		return object.Found{Deleted: header.Get("X-Amz-Delete-Marker") == "true"}, nil
	}
	return object.Found{}, e
}

// errNoETag tells a page from an object: every object of S3 has an ETag.
var errNoETag = errors.New("the answer has no ETag, so it is not S3's")

// found is what an answer says stands there.
func (s *Store) found(op, key string, a object.Attributes) (object.Found, error) {
	if a.ETag == "" {
		return object.Found{}, &object.Error{Side: object.Destination, Op: op, Key: key, Class: object.Unavailable,
			Err: errNoETag, Hint: hintNotS3}
	}
	a.Metadata = decoded(a.Metadata)
	return object.Found{Attributes: a, Exists: true, CopyID: a.Metadata[metaCopy]}, nil
}

// gotten are the attributes that a ranged GET tells; its size is the range's.
func gotten(out *s3.GetObjectOutput) object.Attributes {
	return object.Attributes{
		Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), LastModified: aws.ToTime(out.LastModified),
		ContentType: aws.ToString(out.ContentType), ContentEncoding: aws.ToString(out.ContentEncoding),
		ContentLanguage: aws.ToString(out.ContentLanguage), ContentDisposition: aws.ToString(out.ContentDisposition),
		CacheControl: aws.ToString(out.CacheControl), Expires: aws.ToString(out.ExpiresString), Metadata: out.Metadata,
	}
}

// decoded undoes RFC 2047 words, as headers wrote them.
func decoded(metadata map[string]string) map[string]string {
	words := new(mime.WordDecoder)
	for name, value := range metadata {
		if strings.Contains(value, "=?") {
			if text, err := words.DecodeHeader(value); err == nil {
				metadata[name] = text
			}
		}
	}
	return metadata
}

// answered is the status and the headers of the answer in err's chain, 0 when
// there is none.
func answered(err error) (int, http.Header) {
	var e *awshttp.ResponseError
	if errors.As(err, &e) && e.Response != nil {
		return e.HTTPStatusCode(), e.Response.Header
	}
	return 0, nil
}

// ReadReference asks for a key that does not exist; see copier.Destination. It is
// a GET of one byte, which needs the same permissions as a HEAD and, unlike it,
// tells a missing key from a missing bucket.
func (s *Store) ReadReference(ctx context.Context) error {
	_, err := s.look(ctx, "objectferry-reference-"+rand.Text())
	return err
}

// aMoment bounds what is done for tidiness after a request's own end.
const aMoment = 10 * time.Second

// WriteReference starts a multipart upload and aborts it; see copier.Destination.
func (s *Store) WriteReference(ctx context.Context, key string) error {
	upload, err := s.Begin(ctx, key, object.Attributes{}, object.Provenance{})
	if err != nil {
		return err
	}
	// Even if ctx ends now: parts of an upload that nobody aborts stay billed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aMoment)
	defer cancel()
	return upload.Abort(ctx)
}
