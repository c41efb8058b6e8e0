package interop

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/objectferry/objectferry/internal/object"
)

var uploadRules = []rule{
	{"parts written in any order become one object with its headers", nil, partsBecomeOne},
	{"an upload over what stands there is refused and changes nothing", nil, uploadOverwritesNothing},
	{"a part that was altered on the way is refused", lacks{"moto": "never computes the checksum it is given"}, alteredPart},
	{"a whole whose checksum is another's is refused and not visible", lacks{"moto": "does not look at the checksum of the whole"}, alteredWhole},
	{"a part that was replaced meanwhile is refused and nothing is visible", nil, replacedPart},
	{"parts that are too small are refused and nothing is visible", nil, smallParts},
	{"an abort leaves nothing, and a second one is no error", nil, abortLeavesNothing},
	{"completing what was aborted proves nothing", nil, completeAborted},
	{"completing twice does no harm", nil, completeTwice},
}

// smallest is the least that S3 takes for any part but the last.
const smallest = 5 << 20

// begin starts an upload of key.
func (s *shelf) begin(key string, a object.Attributes) object.Upload {
	s.Helper()
	up, err := s.store.Begin(s.Context(), key, a, provenance)
	if err != nil {
		s.Fatalf("begin: %v", err)
	}
	return up
}

// part writes part n.
func (s *shelf) part(up object.Upload, n int, body []byte) {
	s.Helper()
	if err := up.Part(s.Context(), n, body); err != nil {
		s.Fatalf("part %d: %v", n, err)
	}
}

func partsBecomeOne(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	whole := bytes.Repeat([]byte("0123456789abcdef!"), 2*smallest/17+1000)
	a := sent()
	a.Metadata = map[string]string{"title": "测试"}
	up := s.begin("k", a)
	if ids := s.uploads(); len(ids) != 1 {
		return fmt.Errorf("%d uploads are open, want 1", len(ids))
	}
	errs := make([]error, 3)
	var writing sync.WaitGroup
	for i := range errs {
		n := 3 - i // the last first
		writing.Go(func() { errs[i] = up.Part(t.Context(), n, whole[(n-1)*smallest:min(len(whole), n*smallest)]) })
	}
	writing.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.part(up, 3, whole[2*smallest:]) // a part may be written again
	if len(s.keys()) != 0 {
		return errors.New("it is visible before it is complete")
	}
	if err := up.Complete(t.Context()); err != nil {
		return err
	}
	if body, err := s.body("k"); err != nil || body != string(whole) {
		return fmt.Errorf("%d bytes of %d stand there, or others: %v", len(body), len(whole), err)
	}
	return s.carries("k", a)
}

func uploadOverwritesNothing(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("ours"))
	s.put("k", "theirs")
	if err := class(up.Complete(t.Context()), object.Exists); err != nil {
		return err
	}
	if body, err := s.body("k"); err != nil || body != "theirs" {
		return fmt.Errorf("theirs became %q, %v", body, err)
	}
	return nil
}

func alteredPart(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	s.store = s.onBadWire(c)
	return class(s.begin("k", object.Attributes{}).Part(t.Context(), 1, []byte("hello")), object.Corrupt)
}

// alteredWhole completes with the right parts and a checksum that is not theirs.
func alteredWhole(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	id := s.uploads()[0]
	list, err := s.witness.ListParts(t.Context(), &s3.ListPartsInput{Bucket: &s.bucket, Key: aws.String("k"), UploadId: &id})
	if err != nil {
		t.Fatalf("list parts: %v", err)
	}
	_, err = s.witness.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: aws.String("k"), UploadId: &id,
		MultipartUpload:   &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: list.Parts[0].ETag}}},
		ChecksumCRC64NVME: aws.String("AAAAAAAAAAA="), ChecksumType: types.ChecksumTypeFullObject,
	})
	switch {
	case err == nil:
		return errors.New("it was taken")
	case len(s.keys()) != 0:
		return errors.New("it was refused and is visible")
	}
	return nil
}

func replacedPart(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	_, err := s.witness.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: &s.bucket, Key: aws.String("k"), UploadId: &s.uploads()[0],
		PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("HELLO"))})
	if err != nil {
		t.Fatalf("replace the part: %v", err)
	}
	if err := class(up.Complete(t.Context()), object.Corrupt); err != nil {
		return err
	}
	if len(s.keys()) != 0 {
		return errors.New("it was refused and is visible")
	}
	return nil
}

func smallParts(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	s.part(up, 2, []byte("hello"))
	if err := up.Complete(t.Context()); object.CodeOf(err) != "EntityTooSmall" {
		return fmt.Errorf("the answer was %v, want EntityTooSmall", err)
	}
	if len(s.keys()) != 0 {
		return errors.New("it was refused and is visible")
	}
	return nil
}

func abortLeavesNothing(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	for range 2 {
		if err := up.Abort(t.Context()); err != nil {
			return err
		}
	}
	if uploads, keys := s.uploads(), s.keys(); len(uploads)+len(keys) != 0 {
		return fmt.Errorf("%d uploads and %d objects are left", len(uploads), len(keys))
	}
	return nil
}

// completeAborted is also what a repeated Complete hears whose first answer was
// lost, so only looking tells.
func completeAborted(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	if err := up.Abort(t.Context()); err != nil {
		return err
	}
	return class(up.Complete(t.Context()), object.Ambiguous)
}

// What AWS says to the second is not documented: the first's answer again, that
// there is no such upload, or that the object exists. Each makes us look.
func completeTwice(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	up := s.begin("k", object.Attributes{})
	s.part(up, 1, []byte("hello"))
	if err := up.Complete(t.Context()); err != nil {
		return err
	}
	err := up.Complete(t.Context())
	switch object.ClassOf(err) {
	case "", object.Ambiguous, object.Exists:
	default:
		return fmt.Errorf("the second answer was %w", err)
	}
	if found, err := s.store.Head(t.Context(), "k"); err != nil || found.CopyID != provenance.CopyID || found.Size != 5 {
		return fmt.Errorf("found %+v, %v", found, err)
	}
	return nil
}
