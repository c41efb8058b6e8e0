package s3store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"github.com/objectferry/objectferry/internal/object"
)

// coded is an error answer of S3.
func coded(status int, code, message string) string {
	body := fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>R</RequestId></Error>", code, message)
	return reply(fmt.Sprintf("%d X\nx-amz-request-id: R\nContent-Type: application/xml\nContent-Length: %d", status, len(body)), body)
}

func page(status int) string {
	return reply(fmt.Sprintf("%d X\nContent-Type: text/html\nContent-Length: 27", status), "<html><p>Welcome!</p></html"[:27])
}

const (
	written   = "200 OK\nx-amz-request-id: R\nETag: \"e\"\nContent-Length: 0"
	initiated = `<InitiateMultipartUploadResult><UploadId>U</UploadId></InitiateMultipartUploadResult>`
	completed = `<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>`
)

func xmlReply(body string) string {
	return reply(fmt.Sprintf("200 OK\nx-amz-request-id: R\nContent-Type: application/xml\nContent-Length: %d", len(body)), body)
}

func TestEveryKeyGoesOverTheWireByteForByte(t *testing.T) {
	s := serve(t, always(reply(written, "")))
	keys := []string{"a", "/img.jpg", "2026/1//1d8c", "a//", "//a", "a/./b", "a/../b", "..", ".", "a b", "a+b", "100%.txt", "%2F", "a?b", "a#b", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "\xff", "?x=1", "a\\b"}
	for b := range 256 {
		keys = append(keys, "k"+string([]byte{byte(b)})+"k")
	}
	for _, key := range keys {
		if err := store(s).Put(t.Context(), key, []byte("hello"), object.Attributes{}, object.Provenance{}); err != nil {
			t.Errorf("put %q: %v", key, err)
			continue
		}
		path, _, _ := strings.Cut(s.last().RequestURI, "?")
		if got, err := url.PathUnescape(strings.TrimPrefix(path, "/b/")); err != nil || got != key {
			t.Errorf("key %q went over the wire as %s", key, path)
		}
	}
}

func TestWriteIsCreateOnlyAndCheckedByS3(t *testing.T) {
	s := serve(t, always(reply(written, "")))
	err := New(client(s.URL), Config{Bucket: "b", ExpectedOwner: "111122223333", SSE: "aws:kms", KMSKey: "key", StorageClass: "STANDARD_IA"}).
		Put(t.Context(), "k", []byte("hello"), object.Attributes{}, object.Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.last()
	if r.Method != http.MethodPut || r.body != "hello" || r.ContentLength != 5 || len(r.TransferEncoding) > 0 {
		t.Errorf("%s %q, length %d, %v", r.Method, r.body, r.ContentLength, r.TransferEncoding)
	}
	for name, want := range map[string]string{
		"If-None-Match": "*", "X-Amz-Checksum-Crc64nvme": checksum(crc64nvme.Checksum([]byte("hello"))), "Content-Encoding": "",
		"X-Amz-Expected-Bucket-Owner": "111122223333", "X-Amz-Server-Side-Encryption": "aws:kms",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key", "X-Amz-Storage-Class": "STANDARD_IA",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(r.UserAgent(), " app/objectferry") {
		t.Errorf("user agent %q", r.UserAgent())
	}
	signed := r.Header.Get("Authorization")
	for _, name := range []string{"if-none-match", "x-amz-checksum-crc64nvme", "x-amz-server-side-encryption", "content-length"} {
		if !strings.Contains(signed, name+";") && !strings.Contains(signed, ";"+name) {
			t.Errorf("%s is not signed: %s", name, signed)
		}
	}
}

var writeAnswers = []struct {
	name, answer string
	put          object.Class // a write that commits
	begin        object.Class // one that nobody sees
}{
	{"exists", coded(412, "PreconditionFailed", "m"), object.Exists, object.Exists},
	{"a race", coded(409, "ConditionalRequestConflict", "m"), object.Ambiguous, object.Ambiguous},
	{"denied", coded(403, "AccessDenied", "m"), object.Denied, object.Denied},
	{"no such bucket", coded(404, "NoSuchBucket", "m"), object.Refused, object.Refused},
	{"another region", coded(301, "PermanentRedirect", "m"), object.Refused, object.Refused},
	{"a bad signature", coded(403, "SignatureDoesNotMatch", "m"), object.Refused, object.Refused},
	{"a revoked key", coded(403, "InvalidAccessKeyId", "m"), object.Refused, object.Refused},
	{"an old token", coded(400, "ExpiredToken", "m"), object.Refused, object.Refused},
	{"a disabled KMS key", coded(400, "KMS.DisabledException", "m"), object.Refused, object.Refused},
	{"KMS is throttled", coded(503, "KMS.ThrottlingException", "m"), object.Throttled, object.Throttled},
	{"slow down", coded(503, "SlowDown", "m"), object.Throttled, object.Throttled},
	{"429", coded(429, "TooManyRequests", "m"), object.Throttled, object.Throttled},
	{"429 of a proxy", page(429), object.Throttled, object.Throttled},
	{"a wrong digest", coded(400, "BadDigest", "m"), object.Corrupt, object.Corrupt},
	{"a wrong checksum", coded(400, "XAmzContentChecksumMismatch", "m"), object.Corrupt, object.Corrupt},
	{"too large", coded(400, "EntityTooLarge", "m"), object.Unfit, object.Unfit},
	{"too much metadata", coded(400, "MetadataTooLarge", "m"), object.Unfit, object.Unfit},
	{"too long a key", coded(400, "KeyTooLongError", "m"), object.Unfit, object.Unfit},
	{"the body did not arrive", coded(400, "RequestTimeout", "m"), object.Unavailable, object.Unavailable},
	{"unforeseen", coded(400, "SomethingNew", "m"), object.Unknown, object.Unknown},
	{"an internal error", coded(500, "InternalError", "m"), object.Ambiguous, object.Unavailable},
	{"unavailable", coded(503, "ServiceUnavailable", "m"), object.Ambiguous, object.Unavailable},
	{"a bad gateway", page(502), object.Ambiguous, object.Unavailable},
	{"412 of a proxy", page(412), object.Ambiguous, object.Unavailable},
	{"403 of a proxy", page(403), object.Ambiguous, object.Unavailable},
	{"404 of a proxy", page(404), object.Ambiguous, object.Unavailable},
	{"a redirect", reply("302 Found\nLocation: http://127.0.0.1:1/\nContent-Length: 0", ""), object.Ambiguous, object.Unavailable},
	{"no ETag", reply("200 OK\nx-amz-request-id: R\nContent-Length: 0", ""), object.Ambiguous, object.Unavailable},
	{"a page", page(200), object.Ambiguous, object.Unavailable},
	{"a page with an ETag", reply("200 OK\nx-amz-request-id: R\nETag: \"e\"\nContent-Length: 27", "<html><p>Welcome!</p></html"[:27]), object.Ambiguous, object.Unavailable},
	{"a proxy's 200 with an ETag", reply("200 OK\nETag: \"e\"\nContent-Length: 0", ""), object.Ambiguous, object.Unavailable},
	{"no answer", "", object.Ambiguous, object.Unavailable},
	{"half an answer", "HTTP/1.1 200 OK\r\nETag: ", object.Ambiguous, object.Unavailable},
}

func TestClassOfEachAnswerToAWrite(t *testing.T) {
	for _, tt := range writeAnswers {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.answer))
			err := store(s).Put(t.Context(), "k", []byte("hello"), object.Attributes{}, object.Provenance{})
			if got := object.ClassOf(err); got != tt.put {
				t.Errorf("PutObject: class %q, want %q: %v", got, tt.put, err)
			}
			_, err = store(s).Begin(t.Context(), "k", object.Attributes{}, object.Provenance{})
			if got := object.ClassOf(err); got != tt.begin {
				t.Errorf("CreateMultipartUpload: class %q, want %q: %v", got, tt.begin, err)
			}
			if n := len(s.asked()); n != 2 {
				t.Errorf("%d requests, want 2: no retry, no redirect", n)
			}
		})
	}
}

func TestKMSRefusalSaysWhatToCheck(t *testing.T) {
	s := serve(t, always(coded(403, "AccessDenied", "not authorized to perform: kms:GenerateDataKey")))
	err := store(s).Put(t.Context(), "k", nil, object.Attributes{}, object.Provenance{})
	if e, ok := err.(*object.Error); !ok || e.Class != object.Denied || e.Hint != hintKMS {
		t.Errorf("got %v", err)
	}
}

func TestWriteThatWasNeverSentIsNotAmbiguous(t *testing.T) {
	s := serve(t, always(reply(written, "")))
	s.Close()
	err := store(s).Put(t.Context(), "k", nil, object.Attributes{}, object.Provenance{})
	if got := object.ClassOf(err); got != object.Unavailable {
		t.Errorf("class %q, want unavailable: %v", got, err)
	}
}

func TestClassOfAWriteThatIsInterrupted(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(request) string { <-hold; return "" })
	defer close(hold)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := store(s).Put(ctx, "k", nil, object.Attributes{}, object.Provenance{})
	if got := object.ClassOf(err); got != object.Ambiguous {
		t.Errorf("a deadline: class %q, want ambiguous: %v", got, err)
	}
	ctx, drain := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, drain)
	err = store(s).Put(ctx, "k", nil, object.Attributes{}, object.Provenance{})
	if got := object.ClassOf(err); got != object.Canceled {
		t.Errorf("a drain: class %q, want canceled: %v", got, err)
	}
}

// What was stored is visible then, so it is no Corrupt, which is tried again.
func TestObjectThatS3StoredWronglyIsMangled(t *testing.T) {
	s := serve(t, always(reply("200 OK\nx-amz-request-id: R\nETag: \"e\"\nx-amz-checksum-crc64nvme: AAAAAAAAAAA=\nContent-Length: 0", "")))
	err := store(s).Put(t.Context(), "k", []byte("hello"), object.Attributes{}, object.Provenance{})
	if got := object.ClassOf(err); got != object.Mangled || !strings.Contains(err.Error(), "delete") {
		t.Errorf("class %q, want mangled and what to do: %v", got, err)
	}
}

// multipart answers the calls of an upload; complete is the answer to Complete.
func multipart(complete string) func(request) string {
	return func(r request) string {
		switch q := r.URL.Query(); {
		case r.Method == http.MethodPost && q.Has("uploads"):
			return xmlReply(initiated)
		case r.Method == http.MethodPut:
			return reply("200 OK\nx-amz-request-id: R\nETag: \"p"+q.Get("partNumber")+"\"\nContent-Length: 0", "")
		case r.Method == http.MethodDelete:
			return reply("204 No Content\nx-amz-request-id: R", "")
		}
		return complete
	}
}

func TestCompleteSendsTheWholesChecksumAndSize(t *testing.T) {
	s := serve(t, multipart(xmlReply(completed)))
	up, err := store(s).Begin(t.Context(), "k", object.Attributes{ContentType: "image/jpeg"}, object.Provenance{CopyID: "id"})
	if err != nil {
		t.Fatal(err)
	}
	first := s.last()
	for name, want := range map[string]string{"X-Amz-Checksum-Algorithm": "CRC64NVME", "X-Amz-Checksum-Type": "FULL_OBJECT", "Content-Type": "image/jpeg", "X-Amz-Meta-Ferry-Copy": "id"} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s of CreateMultipartUpload: %q, want %q", name, got, want)
		}
	}
	parts := []string{strings.Repeat("a", 70_000), strings.Repeat("b", 70_001), "c"}
	for _, n := range []int{3, 1, 2, 2} { // in any order, one again
		if err := up.Part(t.Context(), n, []byte(parts[n-1])); err != nil {
			t.Fatal(err)
		}
		r := s.last()
		if got, want := r.Header.Get("X-Amz-Checksum-Crc64nvme"), checksum(crc64nvme.Checksum([]byte(parts[n-1]))); got != want || r.body != parts[n-1] {
			t.Errorf("part %d: checksum %s, want %s", n, got, want)
		}
	}
	if err := up.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := s.last()
	for name, want := range map[string]string{
		"If-None-Match": "*", "X-Amz-Mp-Object-Size": "140002", "X-Amz-Checksum-Type": "FULL_OBJECT",
		"X-Amz-Checksum-Crc64nvme": checksum(crc64nvme.Checksum([]byte(strings.Join(parts, "")))),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s of Complete: %q, want %q", name, got, want)
		}
	}
	if a, b, c := strings.Index(r.body, "p1"), strings.Index(r.body, "p2"), strings.Index(r.body, "p3"); a < 0 || a > b || b > c {
		t.Errorf("parts out of order: %s", r.body)
	}
}

func TestClassOfEachAnswerToComplete(t *testing.T) {
	tests := []struct {
		name, answer string
		want         object.Class
	}{
		{"good", xmlReply(completed), ""},
		{"exists", coded(412, "PreconditionFailed", "m"), object.Exists},
		{"a race", coded(409, "ConditionalRequestConflict", "m"), object.Ambiguous},
		{"the upload is gone", coded(404, "NoSuchUpload", "m"), object.Ambiguous},
		{"a wrong checksum", coded(400, "BadDigest", "m"), object.Corrupt},
		{"a part is missing", coded(400, "InvalidPart", "m"), object.Corrupt},
		{"an error in a 200", xmlReply("<Error><Code>InternalError</Code><Message>m</Message></Error>"), object.Ambiguous},
		{"exists in a 200", xmlReply("<Error><Code>PreconditionFailed</Code><Message>m</Message></Error>"), object.Exists},
		{"slow down in a 200", xmlReply("<Error><Code>SlowDown</Code><Message>m</Message></Error>"), object.Throttled},
		{"empty", reply(written, ""), object.Ambiguous},
		{"a page", page(200), object.Ambiguous},
		{"no ETag", xmlReply("<CompleteMultipartUploadResult/>"), object.Ambiguous},
		{"cut", reply("200 OK\nx-amz-request-id: R\nContent-Length: 500", completed[:60]), object.Ambiguous},
		{"another checksum", xmlReply(strings.Replace(completed, "</ETag>", "</ETag><ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME>", 1)), object.Mangled},
		{"a proxy's 200", reply(fmt.Sprintf("200 OK\nContent-Length: %d", len(completed)), completed), object.Ambiguous},
		{"no answer", "", object.Ambiguous},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, multipart(tt.answer))
			up, err := store(s).Begin(t.Context(), "k", object.Attributes{}, object.Provenance{})
			if err != nil {
				t.Fatal(err)
			}
			if err := up.Part(t.Context(), 1, []byte("hello")); err != nil {
				t.Fatal(err)
			}
			err = up.Complete(t.Context())
			if got := object.ClassOf(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func TestUploadWithAGapIsNotCompleted(t *testing.T) {
	s := serve(t, multipart(xmlReply(completed)))
	up, err := store(s).Begin(t.Context(), "k", object.Attributes{}, object.Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3} {
		if err := up.Part(t.Context(), n, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	n := len(s.asked())
	if err := up.Complete(t.Context()); err == nil || len(s.asked()) != n {
		t.Errorf("completed without part 2: %v, %d more requests", err, len(s.asked())-n)
	}
}

func TestWriteReferenceLeavesNothing(t *testing.T) {
	s := serve(t, multipart(""))
	if err := store(s).WriteReference(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if r := s.last(); len(s.asked()) != 2 || r.Method != http.MethodDelete || r.URL.Query().Get("uploadId") != "U" {
		t.Errorf("%d requests, the last %s %s", len(s.asked()), r.Method, r.RequestURI)
	}
	refused := serve(t, always(coded(403, "AccessDenied", "m")))
	if err := store(refused).WriteReference(t.Context(), "k"); object.ClassOf(err) != object.Denied {
		t.Errorf("got %v, want denied", err)
	}
}

func TestAbortOfAnUploadThatIsGoneIsNoError(t *testing.T) {
	for answer, want := range map[string]object.Class{
		coded(404, "NoSuchUpload", "m"): "", coded(404, "NoSuchBucket", "m"): object.Refused, coded(403, "AccessDenied", "m"): object.Denied,
	} {
		s := serve(t, always(answer))
		up := &upload{store: store(s), key: "k", id: "U"}
		if err := up.Abort(t.Context()); object.ClassOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestKeyThatS3CannotHoldIsUnfitWithoutAsking(t *testing.T) {
	s := serve(t, always(reply(written, "")))
	for _, key := range []string{"", strings.Repeat("k", 1025)} {
		_, head := store(s).Head(t.Context(), key)
		put := store(s).Put(t.Context(), key, nil, object.Attributes{}, object.Provenance{})
		_, begin := store(s).Begin(t.Context(), key, object.Attributes{}, object.Provenance{})
		for _, err := range []error{head, put, begin} {
			if object.ClassOf(err) != object.Unfit {
				t.Errorf("key of %d bytes: %v, want unfit", len(key), err)
			}
		}
	}
	if len(s.asked()) != 0 {
		t.Error("S3 was asked")
	}
}
