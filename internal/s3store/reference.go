package s3store

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/objectferry/objectferry/internal/object"
)

// AbortReference aborts an upload that never was: nil when we may abort uploads of
// key. S3 looks at permissions first, so it says NoSuchUpload to those only.
func (s *Store) AbortReference(ctx context.Context, key string) error {
	return s.neverBegun(key).Abort(ctx)
}

// PartReference writes a part of an upload that never was: nil when we may write
// key. Unlike WriteReference it begins nothing, and asks for no key of KMS.
func (s *Store) PartReference(ctx context.Context, key string) error {
	err := s.neverBegun(key).Part(ctx, 1, []byte("-"))
	if object.CodeOf(err) == "NoSuchUpload" {
		return nil
	}
	return err
}

func (s *Store) neverBegun(key string) *upload {
	return &upload{store: s, key: key, id: rand.Text(), parts: map[int]part{}}
}

// DeleteReference deletes a key that does not exist: nil when we may delete logs.
// If-Match keeps S3 from leaving a delete marker in a bucket with versions; a key
// that is not there, or not matched, is its word that we were let in.
func (l *LogStore) DeleteReference(ctx context.Context, bucket string) error {
	key := l.referenceKey(bucket)
	_, err := l.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, IfMatch: aws.String("*")})
	if err == nil {
		return nil
	}
	e := classify(ctx, object.Logs, "DeleteObject", key, prepares, err)
	if e.Class == object.Absent || e.Class == object.Exists {
		return nil
	}
	return e
}

// referenceKey is a key that does not exist, where our role may read.
func (l *LogStore) referenceKey(bucket string) string {
	return l.prefixes[bucket] + "objectferry-reference-" + rand.Text()
}

// RefusedByKey reports whether it was the KMS key that refused us, and not S3.
func RefusedByKey(err error) bool {
	var e *object.Error
	return errors.As(err, &e) && e.Hint == hintKMS
}
