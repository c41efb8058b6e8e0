package cos_test

import (
	"bytes"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/cos"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/object"
)

// bucket starts a private bucket and a source that reads it signed.
func bucket(t *testing.T) (*cosd.Server, *cos.Source) {
	t.Helper()
	s := cosd.New(cosd.Config{Principals: []cosd.Principal{{ID: "AKID", Key: "SECRET", Token: "TOKEN"}}})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(path, []byte(`{"id": "AKID", "key": "SECRET", "token": "TOKEN"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	transport := cos.NewTransport(4)
	t.Cleanup(transport.CloseIdleConnections)
	source, err := cos.New(cos.Config{URL: s.URL(), Signed: true, CredentialsFile: path}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return s, source
}

func fetch(t *testing.T, source *cos.Source, key string, r object.Range, pin string) (*object.Read, []byte, error) {
	t.Helper()
	read, err := source.Get(t.Context(), key, r, pin)
	if err != nil {
		return nil, nil, err
	}
	defer read.Body.Close()
	data, err := io.ReadAll(read.Body)
	return read, data, err
}

func TestSignedReadOfEveryKindOfKey(t *testing.T) {
	s, source := bucket(t)
	keys := []string{"a", "/img.jpg", "2026/1//1d8c", "a//", "//a", "a/../b", "a b", "a+b", "100%.txt", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "\xff\xfe", "?versionId=1"}
	for b := range 256 {
		keys = append(keys, "k"+string([]byte{byte(b)})+"k")
	}
	for _, key := range keys {
		s.Put(key, []byte(key), cosd.Attributes{})
	}
	for _, key := range keys {
		read, data, err := fetch(t, source, key, object.Range{Length: 1 << 20}, "")
		if err != nil || string(data) != key || read.CRC64 != crc64.Checksum(data, crc64.MakeTable(crc64.ECMA)) {
			t.Errorf("key %q: %q, %v", key, data, err)
		}
	}
	s.Put("empty", nil, cosd.Attributes{})
	if read, data, err := fetch(t, source, "empty", object.Range{Length: 5}, ""); err != nil || len(data) != 0 || read.Size != 0 || !read.HasCRC64 {
		t.Errorf("empty object: %+v %q %v", read, data, err)
	}
}

func TestLieNeverYieldsBytesThatPassForTheObjects(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 100)
	plain := cosd.Attributes{ContentType: "text/plain", Meta: map[string]string{"a": "%E6%B5%8B"}}
	tests := []struct {
		name string
		lie  cosd.Lie
		want object.Class // of the first half of the object, pinned
	}{
		{"page", cosd.Page(200), object.Unavailable},
		{"page for a missing key", cosd.Page(404), object.Unavailable},
		{"redirect", cosd.Redirect(302, "http://127.0.0.1:1/"), object.Unavailable},
		{"listing", cosd.List(), object.Unavailable},
		{"reset", cosd.Reset(), object.Unavailable},
		{"cut", cosd.Cut(100), object.Unavailable},
		{"cut without a length", cosd.CutUnframed(100), object.Corrupt},
		{"whole without a length", cosd.Unframed(), object.Corrupt},
		{"range ignored", cosd.IgnoreRange(), object.Corrupt},
		{"another range", cosd.WrongContentRange("bytes 1-500/1000"), object.Corrupt},
		{"longer", cosd.Resize(1), object.Corrupt},
		{"shorter", cosd.Resize(-1), object.Corrupt},
		{"recompressed", cosd.Recompress(), object.Corrupt},
		{"no request id", cosd.Without("X-Cos-Request-Id"), object.Unavailable},
		{"no ETag", cosd.Without("ETag"), object.Corrupt},
		{"another ETag", cosd.With("ETag", `"f"`), object.Changed},
		{"another object", cosd.Become(bytes.Repeat([]byte("x"), 1000), cosd.Attributes{}), object.Changed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, source := bucket(t)
			s.Put("k", body, plain)
			half := object.Range{Length: 500}
			first, data, err := fetch(t, source, "k", half, "")
			if err != nil || !bytes.Equal(data, body[:500]) || first.ContentType != "text/plain" {
				t.Fatalf("honest read: %d bytes, %+v, %v", len(data), first, err)
			}
			if diff := cmp.Diff(map[string]string{"a": "测"}, first.Metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			s.Lie(cosd.When{}, tt.lie)
			_, _, err = fetch(t, source, "k", half, first.ETag)
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
		})
	}
	t.Run("flipped byte", func(t *testing.T) {
		s, source := bucket(t)
		s.Put("k", body, plain)
		s.Lie(cosd.When{}, cosd.Flip(3))
		read, data, err := fetch(t, source, "k", object.Range{Length: 1 << 20}, "")
		if err != nil || !read.HasCRC64 || read.CRC64 == crc64.Checksum(data, crc64.MakeTable(crc64.ECMA)) {
			t.Errorf("the object's CRC does not betray the flipped byte: %v", err)
		}
	})
}

func TestRefusalIsToldByItsCode(t *testing.T) {
	s, source := bucket(t)
	s.Put("archived", []byte("x"), cosd.Attributes{StorageClass: "ARCHIVE"})
	s.Put("k", []byte("x"), cosd.Attributes{})
	for key, want := range map[string]object.Class{"archived": object.Archived, "missing": object.Absent, "k": ""} {
		if _, _, err := fetch(t, source, key, object.Range{Length: 5}, ""); object.ClassOf(err) != want {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	s.Revoke("")
	if err := source.Reference(t.Context(), "k"); object.ClassOf(err) != object.Denied {
		t.Errorf("reference of a revoked policy: %v, want denied", err)
	}
	s.Change(func(b *cosd.Behaviour) { b.PathStyleForbidden = true })
	if err := source.Reference(t.Context(), "k"); object.ClassOf(err) != object.Refused {
		t.Errorf("reference of a refused domain: %v, want refused", err)
	}
	s.Down()
	if err := source.Reference(t.Context(), "k"); object.ClassOf(err) != object.Unavailable {
		t.Errorf("reference of a bucket that is down: %v, want unavailable", err)
	}
}
