package s3store

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/objectferry/objectferry/internal/object"
)

const opGet = "GetObject"

// LogStore reads the buckets that access logs are delivered to.
type LogStore struct {
	client   *s3.Client
	prefixes map[string]string
}

// NewLogs wires a LogStore on a client that Connect made. prefixes has, for each
// bucket, one under which logs lie: a role may read no other, so the reference
// must lie there too.
func NewLogs(client *s3.Client, prefixes map[string]string) *LogStore {
	return &LogStore{client: client, prefixes: prefixes}
}

// Read opens one ranged read, cut to what is there, as it is stored; pin is the
// ETag that must match, "" on the first read. An empty object answers with
// length 0. Class Absent when there is no such key, Changed when it is another
// version.
func (l *LogStore) Read(ctx context.Context, bucket, key string, r object.Range, pin string) (*object.Read, error) {
	in := &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: aws.String(r.Header())}
	if pin != "" {
		in.IfMatch = &pin
	}
	out, err := l.client.GetObject(ctx, in)
	if status, _ := answered(err); status == http.StatusRequestedRangeNotSatisfiable && r.Offset == 0 {
		return l.empty(ctx, in)
	}
	if err := l.opened(ctx, key, out, err); err != nil {
		return nil, err
	}
	length := int64(-1)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	got, size, err := r.Answered(aws.ToString(out.ContentRange), length)
	if err != nil {
		out.Body.Close()
		return nil, &object.Error{Side: object.Logs, Op: opGet, Key: key, Class: object.Corrupt, Err: err}
	}
	read := &object.Read{Attributes: told(out.ResultMetadata), Range: got}
	read.Size = size
	read.SetBody(ctx, out.Body, object.Error{Side: object.Logs, Op: opGet, Key: key})
	return read, nil
}

// empty settles that an object without a satisfiable range is empty: a plain GET
// must say so, for a log that is taken for empty is deleted unread.
func (l *LogStore) empty(ctx context.Context, in *s3.GetObjectInput) (*object.Read, error) {
	key := aws.ToString(in.Key)
	in.Range = nil
	out, err := l.client.GetObject(ctx, in)
	if err := l.opened(ctx, key, out, err); err != nil {
		return nil, err
	}
	out.Body.Close()
	if out.ContentLength == nil || *out.ContentLength != 0 {
		return nil, &object.Error{Side: object.Logs, Op: opGet, Key: key, Class: object.Changed, Err: errors.New("the log was empty a moment ago")}
	}
	return &object.Read{Attributes: told(out.ResultMetadata), Body: http.NoBody}, nil
}

// opened says why an answer is not an object's, nil when it is.
func (l *LogStore) opened(ctx context.Context, key string, out *s3.GetObjectOutput, err error) error {
	if err != nil {
		return classify(ctx, object.Logs, opGet, key, reads, err)
	}
	if out.ETag == nil {
		out.Body.Close()
		return &object.Error{Side: object.Logs, Op: opGet, Key: key, Class: object.Unavailable, Err: errNoETag, Hint: hintNotS3}
	}
	return nil
}

// Delete removes a log object; one that is gone is no error.
func (l *LogStore) Delete(ctx context.Context, bucket, key string) error {
	_, err := l.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	if err == nil {
		return nil
	}
	if e := classify(ctx, object.Logs, "DeleteObject", key, prepares, err); e.Class != object.Absent {
		return e
	}
	return nil
}

// Reference asks for a key that does not exist: nil when S3 says so. It needs
// s3:ListBucket; without it S3 says AccessDenied of every missing key.
func (l *LogStore) Reference(ctx context.Context, bucket string) error {
	key := l.referenceKey(bucket)
	read, err := l.Read(ctx, bucket, key, object.Range{Length: 1}, "")
	if object.ClassOf(err) == object.Absent {
		return nil
	}
	if err != nil {
		return err
	}
	return read.Body.Close()
}

// LogObject is one entry of a listing.
type LogObject struct {
	Key          string
	Size         int64
	LastModified time.Time
}

// List yields the objects under prefix whose keys come after startAfter, in the
// order of their keys, a page in memory at a time. An error is the last it yields.
func (l *LogStore) List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[LogObject, error] {
	return func(yield func(LogObject, error) bool) {
		// Encoded, because a key may hold characters that XML has no way to write
		// and one such key would make its whole page unreadable.
		in := &s3.ListObjectsV2Input{Bucket: &bucket, EncodingType: types.EncodingTypeUrl}
		if prefix != "" {
			in.Prefix = &prefix
		}
		if startAfter != "" {
			in.StartAfter = &startAfter
		}
		for {
			out, err := l.client.ListObjectsV2(ctx, in)
			if err != nil {
				yield(LogObject{}, classify(ctx, object.Logs, opList, prefix, reads, err))
				return
			}
			for _, o := range out.Contents {
				entry := LogObject{Key: listedKey(o, out.EncodingType), Size: aws.ToInt64(o.Size), LastModified: aws.ToTime(o.LastModified)}
				if !yield(entry, nil) {
					return
				}
			}
			if !aws.ToBool(out.IsTruncated) {
				return
			}
			if aws.ToString(out.NextContinuationToken) == "" {
				yield(LogObject{}, &object.Error{Side: object.Logs, Op: opList, Key: prefix, Class: object.Unavailable,
					Err: errors.New("the listing goes on but says not where")})
				return
			}
			in.ContinuationToken = out.NextContinuationToken
		}
	}
}

// listedKey is the key of an entry of a listing, which need not be encoded as it
// was asked to be.
func listedKey(o types.Object, encoding types.EncodingType) string {
	key := aws.ToString(o.Key)
	if encoding == types.EncodingTypeUrl {
		if decoded, err := url.QueryUnescape(key); err == nil {
			return decoded
		}
	}
	return key
}
