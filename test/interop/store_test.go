package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/s3store"
)

// TestStoreContract is what internal/s3store builds on, asked through it.
func TestStoreContract(t *testing.T) {
	contract(t, slices.Concat(writeRules, uploadRules, lookRules, keyRules, logRules))
}

var writeRules = []rule{
	{"a written object stands there with its bytes", nil, writtenStands},
	{"an empty object is written and found", nil, emptyObject},
	{"a write over what stands there is refused and changes nothing", nil, nothingIsOverwritten},
	{"headers are kept as they were sent", nil, headersAreKept},
	{"metadata are kept, other alphabets included", nil, metadataAreKept},
	{"metadata names with a low line are kept", lacks{"moto": "cannot tell them apart from others, as WSGI cannot, and drops them"}, lowLinesAreKept},
	{"the encryption and the storage class asked for are applied", nil, writtenAsAsked},
	{"an object that was altered on the way is refused and not visible", lacks{"moto": "never computes the checksum it is given"}, alteredObject},
	{"metadata of more than 2 KB are refused", lacks{"moto": "takes any"}, longMetadata},
	{"a bucket of another owner is refused", lacks{"moto": "does not ask whose a bucket is"}, otherOwner},
	{"a write to a bucket that is not there is refused", nil, writeToNoBucket},
}

// shelf is one bucket that is written to, and a witness of what stands in it.
type shelf struct {
	*testing.T
	bucket  string
	store   *s3store.Store
	witness *s3.Client
}

func newShelf(t *testing.T, c *cloud) *shelf {
	t.Helper()
	s := &shelf{T: t, bucket: c.bucket(t), witness: c.s3()}
	s.store = s3store.New(c.client(nil), s3store.Config{Bucket: s.bucket, ExpectedOwner: c.account})
	return s
}

// put writes as someone else would.
func (s *shelf) put(key, body string) {
	s.Helper()
	if _, err := s.witness.PutObject(s.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: strings.NewReader(body)}); err != nil {
		s.Fatalf("put %q: %v", key, err)
	}
}

// body is what stands under key.
func (s *shelf) body(key string) (string, error) {
	out, err := s.witness.GetObject(s.Context(), &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	return string(b), err
}

// keys are all keys of the bucket.
func (s *shelf) keys() []string {
	s.Helper()
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.witness, &s3.ListObjectsV2Input{Bucket: &s.bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.Context())
		if err != nil {
			s.Fatalf("list: %v", err)
		}
		for _, o := range page.Contents {
			keys = append(keys, *o.Key)
		}
	}
	return keys
}

// uploads are the ids of the bucket's open multipart uploads.
func (s *shelf) uploads() []string {
	s.Helper()
	out, err := s.witness.ListMultipartUploads(s.Context(), &s3.ListMultipartUploadsInput{Bucket: &s.bucket})
	if err != nil {
		s.Fatalf("list uploads: %v", err)
	}
	var ids []string
	for _, u := range out.Uploads {
		ids = append(ids, *u.UploadId)
	}
	return ids
}

// class checks the class of an error.
func class(err error, want object.Class) error {
	if object.ClassOf(err) != want {
		return fmt.Errorf("the answer was %v, want %s", err, want)
	}
	return nil
}

var provenance = object.Provenance{CopyID: "0123456789abcdef", ETag: `"source"`, CRC64: "42", LastModified: "2026-09-04T08:03:42Z"}

func writtenStands(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if err := s.store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance); err != nil {
		return err
	}
	if body, err := s.body("k"); err != nil || body != "hello" {
		return fmt.Errorf("there stands %q, %v", body, err)
	}
	found, err := s.store.Head(t.Context(), "k")
	if err != nil {
		return err
	}
	// The MD5, so that a CDN's revalidation holds across the change of origin.
	if !found.Exists || found.Size != 5 || found.CopyID != provenance.CopyID || found.ETag != `"5d41402abc4b2a76b9719d911017c592"` {
		return fmt.Errorf("found %+v", found)
	}
	return nil
}

func emptyObject(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if err := s.store.Put(t.Context(), "k", nil, object.Attributes{}, provenance); err != nil {
		return err
	}
	if found, err := s.store.Head(t.Context(), "k"); err != nil || !found.Exists || found.Size != 0 || found.CopyID == "" {
		return fmt.Errorf("found %+v, %v", found, err)
	}
	return nil
}

func nothingIsOverwritten(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	s.put("k", "theirs")
	if err := class(s.store.Put(t.Context(), "k", []byte("ours"), object.Attributes{}, provenance), object.Exists); err != nil {
		return err
	}
	if body, err := s.body("k"); err != nil || body != "theirs" {
		return fmt.Errorf("theirs became %q, %v", body, err)
	}
	return nil
}

// sent is one of each header.
func sent() object.Attributes {
	return object.Attributes{
		ContentType: "image/jpeg; charset=x", ContentEncoding: "gzip", ContentLanguage: "zh-CN", ContentDisposition: `inline; filename="a b.jpg"`,
		CacheControl: "public, max-age=60", Expires: "Fri, 04 Sep 2026 08:03:42 GMT",
	}
}

func headersAreKept(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if err := s.store.Put(t.Context(), "k", []byte("hello"), sent(), provenance); err != nil {
		return err
	}
	return s.carries("k", sent())
}

// carries checks the headers and the metadata under key, of which ours are taken
// off.
func (s *shelf) carries(key string, want object.Attributes) error {
	s.Helper()
	found, err := s.store.Head(s.Context(), key)
	if err != nil {
		return err
	}
	got := found.Attributes
	for name, value := range map[string]string{"copy": provenance.CopyID, "etag": provenance.ETag, "crc64": provenance.CRC64, "modified": provenance.LastModified} {
		if got.Metadata["ferry-"+name] != value {
			return fmt.Errorf("ferry-%s is %q, want %q", name, got.Metadata["ferry-"+name], value)
		}
		delete(got.Metadata, "ferry-"+name)
	}
	if len(got.Metadata) == 0 {
		got.Metadata = nil
	}
	want.Size, want.ETag, want.LastModified = got.Size, got.ETag, got.LastModified
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("attributes (-sent +kept):\n%s", diff)
	}
	if age := time.Since(got.LastModified); age < -5*time.Second || age > 5*time.Minute {
		return fmt.Errorf("last modified %s ago", age)
	}
	return nil
}

func metadataAreKept(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	a := object.Attributes{ContentType: "text/plain", Metadata: map[string]string{"plain": "a  b", "chinese": "测试 测试", "long": strings.Repeat("ü", 200)}}
	if err := s.store.Put(t.Context(), "k", []byte("hello"), a, provenance); err != nil {
		return err
	}
	return s.carries("k", a)
}

func lowLinesAreKept(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	a := object.Attributes{ContentType: "text/plain", Metadata: map[string]string{"x_y": "1"}}
	if err := s.store.Put(t.Context(), "k", []byte("hello"), a, provenance); err != nil {
		return err
	}
	return s.carries("k", a)
}

func writtenAsAsked(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	s.store = s3store.New(c.client(nil), s3store.Config{Bucket: s.bucket, SSE: "AES256", StorageClass: "STANDARD_IA"})
	if err := s.store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance); err != nil {
		return err
	}
	out, err := s.witness.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String("k")})
	if err != nil {
		return err
	}
	if out.ServerSideEncryption != types.ServerSideEncryptionAes256 || out.StorageClass != types.StorageClassStandardIa {
		return fmt.Errorf("encryption %q, storage class %q", out.ServerSideEncryption, out.StorageClass)
	}
	return nil
}

// alters flips a bit of each body on its way to S3, after its checksum was taken.
type alters struct{ next http.RoundTripper }

func (a alters) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && r.ContentLength > 0 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		body[0] ^= 1
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return a.next.RoundTrip(r)
}

// onBadWire is the shelf's store with every body altered on the way.
func (s *shelf) onBadWire(c *cloud) *s3store.Store {
	return s3store.New(c.client(func(next http.RoundTripper) http.RoundTripper { return alters{next} }), s3store.Config{Bucket: s.bucket})
}

func alteredObject(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	if err := class(s.onBadWire(c).Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance), object.Corrupt); err != nil {
		return err
	}
	if len(s.keys()) != 0 {
		return errors.New("it was refused and is visible")
	}
	return nil
}

func longMetadata(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	_, err := s.witness.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: aws.String("k"), Metadata: map[string]string{"x": strings.Repeat("x", 2048)}})
	if err == nil {
		return errors.New("they were taken")
	}
	return nil
}

func otherOwner(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	s.store = s3store.New(c.client(nil), s3store.Config{Bucket: s.bucket, ExpectedOwner: "999999999999"})
	if err := class(s.store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance), object.Denied); err != nil {
		return err
	}
	_, err := s.store.Head(t.Context(), "k")
	return class(err, object.Denied)
}

func writeToNoBucket(t *testing.T, c *cloud) error {
	store := s3store.New(c.client(nil), s3store.Config{Bucket: unique("no-bucket")})
	return class(store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance), object.Refused)
}
