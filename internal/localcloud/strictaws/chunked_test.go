package strictaws

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// The signatures below are those of AWS's documentation, "Signature calculations
// for chunked uploads" and its sibling with trailing headers: 66,560 bytes of "a"
// in two chunks.
func docSigner(seed string) *chunkSigner {
	const scope = "20130524/us-east-1/s3/aws4_request"
	key := []byte("AWS4" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
	for part := range strings.SplitSeq(scope, "/") {
		key = hmacSHA256(key, part)
	}
	return &chunkSigner{key: key, at: "20130524T000000Z", scope: scope, previous: seed}
}

func signedBody(signatures [3]string, trailer string) string {
	a := strings.Repeat("a", 65536)
	return fmt.Sprintf("10000;chunk-signature=%s\r\n%s\r\n400;chunk-signature=%s\r\n%s\r\n0;chunk-signature=%s\r\n%s\r\n",
		signatures[0], a, signatures[1], a[:1024], signatures[2], trailer)
}

func TestChunkSignaturesAreVerified(t *testing.T) {
	plainSeed := "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
	plain := signedBody([3]string{
		"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}, "")
	trailedSeed := "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
	trailed := signedBody([3]string{
		"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"},
		"x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n")
	for _, c := range []struct{ name, kind, seed, body, want string }{
		{"as documented", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", plainSeed, plain, ""},
		{"a byte of a chunk differs", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", plainSeed, strings.Replace(plain, "aaaa\r\n400", "aaab\r\n400", 1), "SignatureDoesNotMatch"},
		{"another request's chunks", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", trailedSeed, plain, "SignatureDoesNotMatch"},
		{"the last chunk is missing", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", plainSeed, plain[:strings.Index(plain, "\r\n0;")+2], "unexpected EOF"},
		{"no signature", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", plainSeed, "1\r\na\r\n0\r\n\r\n", "InvalidChunkSizeError"},
		{"trailer as documented", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", trailedSeed, trailed, ""},
		{"trailer differs", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", trailedSeed, strings.Replace(trailed, "sOO8", "sOO9", 1), "SignatureDoesNotMatch"},
	} {
		in := newChunked(strings.NewReader(c.body), c.kind, docSigner(c.seed))
		got, err := io.ReadAll(in)
		switch {
		case c.want == "" && (err != nil || !bytes.Equal(got, bytes.Repeat([]byte("a"), 66560))):
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestSignedTrailerMustBeSigned(t *testing.T) {
	seed := "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
	body := signedBody([3]string{
		"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"}, "x-amz-checksum-crc32c:AAAAAA==\r\n")
	_, err := io.ReadAll(newChunked(strings.NewReader(body), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", docSigner(seed)))
	var refused *apiError
	if !errors.As(err, &refused) || refused.Code != "SignatureDoesNotMatch" {
		t.Errorf("trailer without a signature: %v", err)
	}
}

func TestTrailingChecksumIsVerifiedBeforeAnythingIsStored(t *testing.T) {
	const unsigned, right = "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "NhCmhg==" // CRC32 of hello
	for _, c := range []struct{ name, body, trailer, length, want string }{
		{"right", "3\r\nhel\r\n2\r\nlo\r\n0\r\nx-amz-checksum-crc32:" + right + "\r\n\r\n", "x-amz-checksum-crc32", "5", "200"},
		{"wrong", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "x-amz-checksum-crc32", "5", "BadDigest"},
		{"announced and missing", "5\r\nhello\r\n0\r\n\r\n", "x-amz-checksum-crc32", "5", "MalformedTrailerError"},
		{"no checksum at all", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:x\r\n\r\n", "x-amz-checksum-crc32", "5", "InvalidRequest"},
		{"longer than said", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:" + right + "\r\n\r\n", "x-amz-checksum-crc32", "4", "IncompleteBody"},
		{"shorter than said", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:" + right + "\r\n\r\n", "x-amz-checksum-crc32", "6", "IncompleteBody"},
		{"cut in the framing", "5\r\nhello\r\n", "x-amz-checksum-crc32", "5", "IncompleteBody"},
		{"not framed", "hello\n", "x-amz-checksum-crc32", "5", "InvalidChunkSizeError"},
	} {
		cloud := New(Config{})
		cloud.CreateBucket("media", Bucket{})
		req := httptest.NewRequest("PUT", "/media/k", strings.NewReader(c.body))
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260101/us-west-2/s3/aws4_request, SignedHeaders=host, Signature=00")
		req.Header.Set("X-Amz-Content-Sha256", unsigned)
		req.Header.Set("X-Amz-Decoded-Content-Length", c.length)
		req.Header.Set("X-Amz-Trailer", c.trailer)
		req.Header.Set("Content-Encoding", "aws-chunked,gzip")
		w := httptest.NewRecorder()
		cloud.S3().ServeHTTP(w, req)
		o, stored := cloud.Object("media", "k")
		if c.want == "200" {
			if w.Code != 200 || string(o.Body) != "hello" || o.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s: %d %s, stored %q %v", c.name, w.Code, w.Body, o.Body, o.Header)
			}
			continue
		}
		if !strings.Contains(w.Body.String(), "<Code>"+c.want+"</Code>") || stored {
			t.Errorf("%s: %d %s, want %s; stored: %v", c.name, w.Code, w.Body, c.want, stored)
		}
	}
}
