package s3store_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/s3store"
)

const role = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/i"

// cloud starts an S3 that verifies signatures and checksums, with the versioned
// bucket b.
func cloud(t *testing.T, b strictaws.Bucket) (*strictaws.Cloud, *s3.Client) {
	t.Helper()
	c := strictaws.New(strictaws.Config{
		Credentials: map[string]strictaws.Credential{"AKID": {Secret: "SECRET", ARN: role}}, MinPartSize: 1, LogInterval: -1,
	})
	c.CreateBucket("b", b)
	server, err := c.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return c, s3store.Connect(aws.Config{
		Region: "us-west-2", BaseEndpoint: &server.S3URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	}, s3store.ClientConfig{PathStyle: true})
}

func destination(client *s3.Client) *s3store.Store {
	return s3store.New(client, s3store.Config{Bucket: "b", ExpectedOwner: "111122223333"})
}

// attributes is one of everything; some of it is not ASCII.
func attributes() object.Attributes {
	return object.Attributes{
		ContentType: "image/jpeg", ContentEncoding: "gzip", ContentLanguage: "zh", ContentDisposition: `attachment; filename="测试.jpg"`,
		CacheControl: "max-age=60", Expires: "0", Metadata: map[string]string{"plain": "a  b", "chinese": "测试 测试"},
	}
}

var provenance = object.Provenance{CopyID: "id", ETag: `"src"`, CRC64: "42", LastModified: "2026-09-04T08:03:42Z"}

func TestWrittenObjectIsThatOfTheSource(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{})
	store := destination(client)
	keys := []string{"a", "/img.jpg", "2026/1//1d8c", "a//", "//a", "a/../b", "a b", "a+b", "100%.txt", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "?x=1"}
	for b := range 128 {
		keys = append(keys, "k"+string([]byte{byte(b)})+"k")
	}
	for _, key := range keys {
		if err := store.Put(t.Context(), key, []byte(key), attributes(), provenance); err != nil {
			t.Errorf("put: %v", err)
			continue
		}
		o, ok := c.Object("b", key)
		if !ok || string(o.Body) != key {
			t.Errorf("key %q: stored %v %q", key, ok, o.Body)
		}
	}
	multi := []byte("hello, hello, hello")
	up, err := store.Begin(t.Context(), "multi", attributes(), provenance)
	if err != nil {
		t.Fatal(err)
	}
	for n, part := range [][]byte{multi[:7], multi[7:14], multi[14:]} {
		if err := up.Part(t.Context(), n+1, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := up.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, ok := c.Object("b", "multi"); !ok || !bytes.Equal(o.Body, multi) || o.CRC64NVME == "" {
		t.Errorf("stored %v %q, CRC64NVME %q", ok, o.Body, o.CRC64NVME)
	}
	for _, key := range []string{"a", "multi"} {
		found, err := store.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		want := attributes()
		want.Size, want.ETag, want.LastModified = found.Size, found.ETag, found.LastModified
		want.ContentDisposition = "attachment; filename*=utf-8''%E6%B5%8B%E8%AF%95.jpg"
		for name, value := range map[string]string{"copy": "id", "etag": `"src"`, "crc64": "42", "modified": provenance.LastModified} {
			want.Metadata["ferry-"+name] = value
		}
		if diff := cmp.Diff(object.Found{Attributes: want, Exists: true, CopyID: "id", SourceETag: `"src"`, SourceCRC64: "42"}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestNothingIsClobbered(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{Versioned: true})
	store := destination(client)
	if err := c.PutObject("b", "k", []byte("theirs"), nil); err != nil {
		t.Fatal(err)
	}
	up, err := store.Begin(t.Context(), "k", object.Attributes{}, provenance)
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Part(t.Context(), 1, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{store.Put(t.Context(), "k", []byte("ours"), object.Attributes{}, provenance), up.Complete(t.Context())} {
		if object.ClassOf(err) != object.Exists {
			t.Errorf("got %v, want exists", err)
		}
	}
	if o, _ := c.Object("b", "k"); string(o.Body) != "theirs" {
		t.Errorf("theirs became %q", o.Body)
	}
	if err := up.Abort(t.Context()); err != nil || c.Uploads("b") != 0 {
		t.Errorf("abort: %v, %d uploads left", err, c.Uploads("b"))
	}
	if err := c.DeleteObject("b", "k"); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Head(t.Context(), "k"); err != nil || found.Exists || !found.Deleted {
		t.Errorf("a delete marker: %+v, %v", found, err)
	}
}

func TestByteFlippedOnTheWayInBecomesNothing(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{})
	store := destination(client)
	up, err := store.Begin(t.Context(), "multi", object.Attributes{}, provenance)
	if err != nil {
		t.Fatal(err)
	}
	c.Faults().Add(strictaws.Fault{Service: strictaws.ServiceS3, Do: strictaws.FlipByte{Offset: 3}})
	for _, err := range []error{store.Put(t.Context(), "k", []byte("hello"), object.Attributes{}, provenance), up.Part(t.Context(), 1, []byte("hello"))} {
		if object.ClassOf(err) != object.Corrupt {
			t.Errorf("got %v, want corrupt", err)
		}
	}
	if _, ok := c.Object("b", "k"); ok {
		t.Error("the flipped object is visible")
	}
}

func TestWriteWhoseAnswerIsLostIsSettledByLooking(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{})
	store := destination(client)
	for name, effect := range map[string]strictaws.Effect{
		"reset": strictaws.CommitThenReset{}, "page": strictaws.CommitThenAnswer{Status: 200, Body: "<html>"},
		"gateway": strictaws.CommitThenAnswer{Status: 502}, "no ETag": strictaws.DropHeader{Name: "ETag"},
	} {
		fault := c.Faults().Add(strictaws.Fault{Action: "PutObject", Do: effect})
		err := store.Put(t.Context(), name, []byte("hello"), object.Attributes{}, provenance)
		fault.Remove()
		if object.ClassOf(err) != object.Ambiguous {
			t.Errorf("%s: %v, want ambiguous", name, err)
		}
		if found, err := store.Head(t.Context(), name); err != nil || found.CopyID != provenance.CopyID {
			t.Errorf("%s: looking found %+v, %v", name, found, err)
		}
		up, err := store.Begin(t.Context(), name+"/multi", object.Attributes{}, provenance)
		if err != nil {
			t.Fatal(err)
		}
		if err := up.Part(t.Context(), 1, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if name == "no ETag" { // Complete's is in the body
			continue
		}
		fault = c.Faults().Add(strictaws.Fault{Action: "CompleteMultipartUpload", Do: effect})
		err = up.Complete(t.Context())
		fault.Remove()
		if object.ClassOf(err) != object.Ambiguous {
			t.Errorf("%s: complete: %v, want ambiguous", name, err)
		}
	}
}

func TestPermissionTakenAwayIsToldByTheReferences(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{KMS: true})
	store := destination(client)
	references := func() (read, write object.Class) {
		return object.ClassOf(store.ReadReference(t.Context())), object.ClassOf(store.WriteReference(t.Context(), "k"))
	}
	if read, write := references(); read != "" || write != "" {
		t.Fatalf("nothing taken away: read %q, write %q", read, write)
	}
	for _, tt := range []struct {
		action, resource string
		read, write      object.Class
	}{
		{"s3:ListBucket", "b", object.Denied, ""},
		{"s3:PutObject", "b/*", "", object.Denied},
		{"kms:GenerateDataKey", "*", "", object.Denied},
	} {
		c.Deny(role, tt.action, tt.resource)
		if read, write := references(); read != tt.read || write != tt.write {
			t.Errorf("without %s: read %q, want %q; write %q, want %q", tt.action, read, tt.read, write, tt.write)
		}
		c.Allow(role, tt.action, tt.resource)
	}
	c.Deny(role, "s3:ListBucket", "b")
	if _, err := store.Head(t.Context(), "missing"); object.ClassOf(err) != object.Denied || object.CodeOf(err) != "AccessDenied" {
		t.Errorf("head without s3:ListBucket: %v, want denied with its code", err)
	}
	if c.Uploads("b") != 0 {
		t.Errorf("%d uploads left behind", c.Uploads("b"))
	}
}

func TestDeniedPrefixSaysNothingOfWhatIsThere(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{})
	store := s3store.New(client, s3store.Config{Bucket: "b", ExpectedOwner: "111122223333", Probe: "img/.probe"})
	if err := c.PutObject("b", "img/there", []byte("hello"), nil); err != nil {
		t.Fatal(err)
	}
	c.Deny(role, "s3:GetObject", "b/img/*")
	if found, err := store.Head(t.Context(), "img/there"); err != nil || !found.Exists || found.Size != 5 {
		t.Errorf("an object: %+v, %v", found, err)
	}
	for _, key := range []string{"img/missing", "img/ther"} {
		if found, err := store.Head(t.Context(), key); object.ClassOf(err) != object.Denied {
			t.Errorf("%s: %+v, %v, want denied", key, found, err)
		}
	}
	if err := store.ReadReference(t.Context()); object.ClassOf(err) != object.Denied {
		t.Errorf("a reference below the prefix: %v, want denied", err)
	}
}

func TestLogsAreReadListedAndDeleted(t *testing.T) {
	c, client := cloud(t, strictaws.Bucket{})
	logs := s3store.NewLogs(client, map[string]string{"b": "access/"})
	keys := []string{"access/1", "access/2 a+b", "access/3\x01"}
	for _, key := range append(keys, "other", "access/0") {
		if err := c.PutObject("b", key, []byte("hello"), http.Header{"Content-Encoding": {"gzip"}}); err != nil {
			t.Fatal(err)
		}
	}
	var listed []string
	for o, err := range logs.List(t.Context(), "b", "access/", "access/0") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, o.Key)
	}
	if diff := cmp.Diff(keys, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	read, err := logs.Read(t.Context(), "b", keys[1], object.Range{Offset: 1, Length: 100}, "")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(read.Body); err != nil || string(data) != "ello" || read.Size != 5 {
		t.Errorf("read %q of %d, %v", data, read.Size, err)
	}
	for range 2 {
		if err := logs.Delete(t.Context(), "b", keys[1]); err != nil {
			t.Error(err)
		}
	}
	if _, err := logs.Read(t.Context(), "b", keys[1], object.Range{Length: 100}, ""); object.ClassOf(err) != object.Absent {
		t.Errorf("read of a deleted log: %v, want absent", err)
	}
	if err := logs.Reference(t.Context(), "b"); err != nil {
		t.Errorf("reference: %v", err)
	}
}
