package s3store

import (
	"testing"

	"github.com/objectferry/objectferry/internal/object"
)

// What does not exist is asked for, so that nothing changes and the answer tells
// only whether we are let in.
func TestReferencesTellARefusalFromWhatIsMissing(t *testing.T) {
	abort := func(s *server) error { return store(s).AbortReference(t.Context(), "img/.probe") }
	write := func(s *server) error { return store(s).PartReference(t.Context(), "img/.probe") }
	remove := func(s *server) error { return logs(s).DeleteReference(t.Context(), "b") }
	for _, tt := range []struct {
		name   string
		ask    func(*server) error
		answer string
		want   object.Class
	}{
		{"abort: no such upload", abort, coded(404, "NoSuchUpload", "m"), ""},
		{"abort: taken", abort, reply("204 No Content\nx-amz-request-id: R", ""), ""},
		{"abort: denied", abort, coded(403, "AccessDenied", "m"), object.Denied},
		{"abort: a page", abort, page(403), object.Unavailable},
		{"part: no such upload", write, coded(404, "NoSuchUpload", "m"), ""},
		{"part: denied", write, coded(403, "AccessDenied", "m"), object.Denied},
		{"part: a page", write, page(404), object.Unavailable},
		{"delete: no such key", remove, coded(404, "NoSuchKey", "m"), ""},
		{"delete: not matched", remove, coded(412, "PreconditionFailed", "m"), ""},
		{"delete: taken", remove, reply("204 No Content\nx-amz-request-id: R", ""), ""},
		{"delete: denied", remove, coded(403, "AccessDenied", "m"), object.Denied},
		{"delete: no such bucket", remove, coded(404, "NoSuchBucket", "m"), object.Refused},
		{"delete: a page", remove, page(404), object.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.ask(serve(t, always(tt.answer))); object.ClassOf(err) != tt.want || (err == nil) != (tt.want == "") {
				t.Errorf("%v, want class %q", err, tt.want)
			}
		})
	}
}

// A bucket with versions would keep a delete marker for ever.
func TestDeleteReferenceIsConditional(t *testing.T) {
	s := serve(t, always(coded(404, "NoSuchKey", "m")))
	if err := logs(s).DeleteReference(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if r := s.last(); r.Header.Get("If-Match") != "*" || r.URL.Path[:len("/b/access/objectferry-reference-")] != "/b/access/objectferry-reference-" {
		t.Errorf("%s %s, If-Match %q", r.Method, r.URL.Path, r.Header.Get("If-Match"))
	}
}

func TestTheKeyIsToldFromTheBucket(t *testing.T) {
	for answer, want := range map[string]bool{
		coded(403, "AccessDenied", "not authorized to perform: kms:GenerateDataKey on resource: k"): true,
		coded(400, "KMS.DisabledException", "m"):                                                    true,
		coded(403, "AccessDenied", "not authorized to perform: s3:PutObject"):                       false,
	} {
		if err := store(serve(t, always(answer))).WriteReference(t.Context(), "k"); RefusedByKey(err) != want {
			t.Errorf("%v: by the key: %t", err, !want)
		}
	}
}
