package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/objectferry/objectferry/internal/object"
)

const opList = "ListObjectsV2"

// List returns a page of the keys that begin with prefix, in the order in which
// S3 lists them: the first page is of the keys after the key after, a further one
// begins at next, the Next of the page before. It takes s3:ListBucket.
func (s *Store) List(ctx context.Context, prefix, after, next string) (object.Page, error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.cfg.Bucket, EncodingType: types.EncodingTypeUrl, ExpectedBucketOwner: s.owner}
	if prefix != "" {
		in.Prefix = &prefix
	}
	switch {
	case next != "":
		in.ContinuationToken = &next
	case after != "":
		in.StartAfter = &after
	}
	out, err := s.client.ListObjectsV2(ctx, in)
	if err != nil {
		return object.Page{}, classify(ctx, object.Destination, opList, prefix, reads, err)
	}
	page, err := listedPage(out)
	if err != nil {
		return object.Page{}, &object.Error{Side: object.Destination, Op: opList, Key: prefix, Class: object.Corrupt, Err: err}
	}
	return page, nil
}

// listedPage reads an answer strictly: the SDK takes any XML for an empty listing,
// and what is not listed counts as not there.
func listedPage(out *s3.ListObjectsV2Output) (object.Page, error) {
	var page object.Page
	switch {
	case out.Name == nil || out.IsTruncated == nil:
		return page, errors.New("the answer is not a listing")
	case out.KeyCount != nil && int(*out.KeyCount) != len(out.Contents):
		return page, fmt.Errorf("the listing has %d keys and says %d", len(out.Contents), *out.KeyCount)
	}
	if *out.IsTruncated {
		if page.Next = aws.ToString(out.NextContinuationToken); page.Next == "" {
			return page, errors.New("the listing goes on, but says not where")
		}
	}
	page.Objects = make([]object.Listed, len(out.Contents))
	for i, o := range out.Contents {
		key := aws.ToString(o.Key)
		if out.EncodingType == types.EncodingTypeUrl {
			var err error
			if key, err = url.QueryUnescape(key); err != nil {
				return page, fmt.Errorf("read a listed key: %w", err)
			}
		}
		if key == "" || o.Size == nil || *o.Size < 0 {
			return page, fmt.Errorf("entry %d has no key or no size", i+1)
		}
		page.Objects[i] = object.Listed{Key: key, Size: *o.Size, ETag: aws.ToString(o.ETag), LastModified: aws.ToTime(o.LastModified)}
	}
	return page, nil
}
