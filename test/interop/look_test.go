package interop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/s3store"
)

var lookRules = []rule{
	{"a missing key is told as missing", nil, missingKey},
	{"a delete marker is told from a missing key", nil, deleteMarker},
	{"a listing has every key, in the order of its bytes", nil, listedInOrder},
	{"the references pass, and leave nothing", nil, referencesPass},
	{"the references of a bucket that is not there are refused", nil, referencesOfNoBucket},
	{"who may not list is told denied, by a look and by the reference", lacks{"moto": "lets everybody do everything"}, lookWithoutList},
	{"who may not write is told denied, by a write and by the reference", lacks{"moto": "lets everybody do everything"}, writeWithoutPermission},
}

var keyRules = []rule{
	{"keys of printable characters are kept", nil, keysAreKept("a b", "a+b", "100%.txt", "%2F%2f", "a&b=c?d#e;f", "x[1]{2}|3^`", "~!*'()@:$,", `"quoted"`, `back\slash`, "<xml>", " lead and trail ")},
	{"keys in other alphabets are kept as they are composed", nil, keysAreKept("测试/图片.jpg", "ünïcode", "u\u0308", "\U0001F600", "שלום")},
	{"keys with empty, dot and dot-dot segments are kept", nil, keysAreKept("/lead", "a//", "a//b", "//", "/", "a/./b", "a/../b", "./a", "../a", "a/..", "..", ".")},
	{"keys with control characters are kept", nil, keysAreKept("tab\tx", "bell\ax", "\x01")},
	{"keys with line ends are kept", lacks{"moto": "finds no route for them and answers with a page"}, keysAreKept("line\nx", "line\r\nx")},
	{"keys that are not UTF-8 are kept or refused as unfit", nil, keyNotUTF8},
	{"keys over 1,024 bytes are refused", lacks{"moto": "takes any"}, longKey},
}

func missingKey(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if found, err := s.store.Head(t.Context(), "k"); err != nil || found.Exists || found.Deleted {
		return fmt.Errorf("found %+v, %v", found, err)
	}
	return nil
}

func deleteMarker(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	_, err := s.witness.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &s.bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	if err != nil {
		t.Fatalf("switch on versions: %v", err)
	}
	s.put("k", "theirs")
	if _, err := s.witness.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String("k")}); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if found, err := s.store.Head(t.Context(), "k"); err != nil || found.Exists || !found.Deleted {
		return fmt.Errorf("found %+v, %v", found, err)
	}
	return nil
}

func referencesPass(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if err := errors.Join(s.store.ReadReference(t.Context()), s.store.WriteReference(t.Context(), "k")); err != nil {
		return err
	}
	if uploads, keys := s.uploads(), s.keys(); len(uploads)+len(keys) != 0 {
		return fmt.Errorf("%d uploads and %d objects are left", len(uploads), len(keys))
	}
	return nil
}

func referencesOfNoBucket(t *testing.T, c *cloud) error {
	store := s3store.New(c.client(nil), s3store.Config{Bucket: unique("no-bucket")})
	return errors.Join(class(store.ReadReference(t.Context()), object.Refused), class(store.WriteReference(t.Context(), "k"), object.Refused))
}

func lookWithoutList(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if c.deny == nil {
		return errors.New("there is no way to take the permission away")
	}
	c.deny("s3:ListBucket", s.bucket)
	_, err := s.store.Head(t.Context(), "k")
	return errors.Join(class(err, object.Denied), class(s.store.ReadReference(t.Context()), object.Denied))
}

func writeWithoutPermission(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if c.deny == nil {
		return errors.New("there is no way to take the permission away")
	}
	c.deny("s3:PutObject", s.bucket+"/*")
	return errors.Join(class(s.store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance), object.Denied),
		class(s.store.WriteReference(t.Context(), "k"), object.Denied))
}

// keysAreKept is a check that writes each key, looks it up, reads it as someone
// else and finds exactly these keys in the bucket.
func keysAreKept(keys ...string) func(*testing.T, *cloud) error {
	return func(t *testing.T, c *cloud) error {
		s := newShelf(t, c)
		var errs []error
		for _, key := range keys {
			if err := s.store.Put(t.Context(), key, []byte(key), object.Attributes{}, provenance); err != nil {
				errs = append(errs, err)
				continue
			}
			if found, err := s.store.Head(t.Context(), key); err != nil || found.CopyID != provenance.CopyID {
				errs = append(errs, fmt.Errorf("%q: found %+v, %w", key, found, err))
			}
			if body, err := s.body(key); err != nil || body != key {
				errs = append(errs, fmt.Errorf("%q: there stands %q, %w", key, body, err))
			}
		}
		logs := s3store.NewLogs(c.client(nil), nil)
		var listed []string
		for o, err := range logs.List(t.Context(), s.bucket, "", "") {
			if err != nil {
				errs = append(errs, err)
				break
			}
			listed = append(listed, o.Key)
		}
		want := slices.Sorted(slices.Values(keys))
		if diff := cmp.Diff(want, listed); diff != "" {
			errs = append(errs, fmt.Errorf("keys (-written +listed):\n%s", diff))
		}
		return errors.Join(errs...)
	}
}

// What AWS says of them is not documented; both answers end a request well.
func keyNotUTF8(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	err := s.store.Put(t.Context(), "a\xffb", []byte("hello"), object.Attributes{}, provenance)
	if err != nil {
		return class(err, object.Unfit)
	}
	if found, err := s.store.Head(t.Context(), "a\xffb"); err != nil || found.CopyID != provenance.CopyID {
		return fmt.Errorf("found %+v, %w", found, err)
	}
	return nil
}

func longKey(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	key := strings.Repeat("k", 1025)
	if _, err := s.witness.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: &key}); err == nil {
		return errors.New("it was taken")
	}
	return nil
}
