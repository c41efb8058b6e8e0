package s3store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

var ours = object.Provenance{CopyID: strings.Repeat("i", 20), ETag: strings.Repeat("e", 20), CRC64: strings.Repeat("c", 20), LastModified: strings.Repeat("m", 20)}

func TestOurMetadataGivesWayTheCopysIDLast(t *testing.T) {
	const name = "theirs"
	tests := []struct {
		free int // bytes that theirs leaves
		want []string
	}{
		{200, []string{metaCopy, metaETag, metaCRC64, metaModified}},
		{len(metaCopy+metaETag+metaCRC64+metaModified) + 80, []string{metaCopy, metaETag, metaCRC64, metaModified}},
		{len(metaCopy+metaETag+metaCRC64+metaModified) + 79, []string{metaCopy, metaETag, metaCRC64}},
		{len(metaCopy+metaETag+metaCRC64) + 59, []string{metaCopy, metaETag}},
		{len(metaCopy+metaETag) + 39, []string{metaCopy}},
		{len(metaCopy) + 20, []string{metaCopy}},
		{len(metaCopy) + 19, nil},
		{0, nil},
	}
	for _, tt := range tests {
		theirs := map[string]string{name: strings.Repeat("x", maxMetadata-len(name)-tt.free)}
		got, err := metadata(theirs, ours)
		if err != nil {
			t.Errorf("%d bytes free: %v", tt.free, err)
			continue
		}
		if got[name] != theirs[name] {
			t.Errorf("%d bytes free: theirs was changed", tt.free)
		}
		var kept []string
		for _, name := range []string{metaCopy, metaETag, metaCRC64, metaModified} {
			if _, ok := got[name]; ok {
				kept = append(kept, name)
			}
		}
		if diff := cmp.Diff(tt.want, kept); diff != "" {
			t.Errorf("%d bytes free, kept (-want +got):\n%s", tt.free, diff)
		}
	}
	if _, err := metadata(map[string]string{name: strings.Repeat("x", maxMetadata-len(name)+1)}, ours); err == nil {
		t.Error("metadata over 2 KB was taken")
	}
}

func TestReservedMetadataOfTheSourceIsNotTakenForOurs(t *testing.T) {
	got, err := metadata(map[string]string{metaCopy: "forged", metaModified: "forged", "kept": "x"}, object.Provenance{CopyID: "id"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{metaCopy: "id", "kept": "x"}, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestHeaderThatS3CannotHold(t *testing.T) {
	s := New(nil, Config{Bucket: "b"})
	tests := []struct {
		name string
		in   object.Attributes
		ok   bool
	}{
		{"ASCII", object.Attributes{ContentType: "image/jpeg", ContentDisposition: `attachment; filename="a b.jpg"`}, true},
		{"a raw file name", object.Attributes{ContentDisposition: `attachment; filename="测试.jpg"`}, true},
		{"metadata that is not ASCII", object.Attributes{Metadata: map[string]string{"a": "测试"}}, true},
		{"metadata of several lines", object.Attributes{Metadata: map[string]string{"a": "x\r\nIf-Match: y"}}, true},
		{"a type that is not ASCII", object.Attributes{ContentType: "测试"}, false},
		{"a disposition that cannot be read", object.Attributes{ContentDisposition: "测试; ="}, false},
		{"a header of two lines", object.Attributes{CacheControl: "x\r\nIf-Match: y"}, false},
		{"a metadata name with a space", object.Attributes{Metadata: map[string]string{"a b": "x"}}, false},
		{"a metadata name that is not ASCII", object.Attributes{Metadata: map[string]string{"测": "x"}}, false},
		{"an empty metadata name", object.Attributes{Metadata: map[string]string{"": "x"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := s.headers(tt.in, ours)
			if (err == nil) != tt.ok {
				t.Fatalf("got %v, want ok %v", err, tt.ok)
			}
			for name, values := range h {
				if !printable(name + values[0]) {
					t.Errorf("%s: %q is not for a header", name, values[0])
				}
			}
		})
	}
	h, err := s.headers(object.Attributes{ContentDisposition: `attachment; filename="测试.jpg"`}, object.Provenance{})
	if got, want := h.Get("Content-Disposition"), "attachment; filename*=utf-8''%E6%B5%8B%E8%AF%95.jpg"; err != nil || got != want {
		t.Errorf("disposition %q, want %q, %v", got, want, err)
	}
}
