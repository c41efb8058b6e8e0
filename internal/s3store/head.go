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
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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
		return s.found("HeadObject", key, told(out.ResultMetadata))
	}
	switch status, header := answered(err); {
	case status == http.StatusNotFound && authentic(header):
		return object.Found{Deleted: header.Get("X-Amz-Delete-Marker") == "true"}, nil
	case status >= 400 && status < 500, status == http.StatusServiceUnavailable:
		found, err := s.look(ctx, key) // a HEAD's refusal has no body, hence no code
		if object.ClassOf(err) == object.Denied {
			return s.list(ctx, key, err)
		}
		return found, err
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
		a := told(out.ResultMetadata)
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

// list settles what stands under a key that we are denied: a policy may deny a
// whole prefix, so a refusal is no word that something is there. Who may list
// sees the key all the same. Where it is not listed the refusal, denied, stands.
func (s *Store) list(ctx context.Context, key string, denied error) (object.Found, error) {
	out, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.cfg.Bucket, Prefix: &key, MaxKeys: aws.Int32(1), EncodingType: types.EncodingTypeUrl, ExpectedBucketOwner: s.owner,
	})
	if err != nil {
		if e := classify(ctx, object.Destination, opList, key, reads, err); e.Class != object.Denied {
			return object.Found{}, e
		}
		return object.Found{}, denied
	}
	// Of all keys that begin with this one, it is the first.
	for _, o := range out.Contents {
		if listedKey(o, out.EncodingType) == key {
			return object.Found{Exists: true, Attributes: object.Attributes{
				Size: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag), LastModified: aws.ToTime(o.LastModified)}}, nil
		}
	}
	return object.Found{}, denied
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
	return object.Found{Attributes: a, Exists: true, CopyID: a.Metadata[metaCopy],
		SourceETag: a.Metadata[metaETag], SourceCRC64: a.Metadata[metaCRC64]}, nil
}

// told are the attributes that the headers of an answer tell; of a ranged read
// the size is the range's.
func told(m middleware.Metadata) object.Attributes {
	resp, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response)
	if !ok {
		return object.Attributes{}
	}
	h := resp.Header
	modified, _ := http.ParseTime(h.Get("Last-Modified")) // zero when it is not told
	a := object.Attributes{
		Size: max(0, resp.ContentLength), ETag: h.Get("Etag"), LastModified: modified,
		ContentType: h.Get("Content-Type"), ContentEncoding: h.Get("Content-Encoding"), ContentLanguage: h.Get("Content-Language"),
		ContentDisposition: h.Get("Content-Disposition"), CacheControl: h.Get("Cache-Control"), Expires: h.Get("Expires"),
		StorageClass: h.Get("X-Amz-Storage-Class"),
	}
	for name, values := range h {
		if name, is := strings.CutPrefix(name, "X-Amz-Meta-"); is {
			if a.Metadata == nil {
				a.Metadata = map[string]string{}
			}
			a.Metadata[strings.ToLower(name)] = values[0]
		}
	}
	return a
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
	_, err := s.look(ctx, s.cfg.Probe+"-"+rand.Text())
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
