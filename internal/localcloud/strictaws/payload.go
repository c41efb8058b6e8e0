package strictaws

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	maxPut      = 5 << 30 // bytes of one PutObject or UploadPart
	readAtATime = 128 << 10
)

// payload is a request's body on its way in, with everything it must be checked
// against. Nothing is stored before receive has returned without a refusal.
type payload struct {
	in        io.Reader
	size      int64
	chunks    *chunked // nil when the body is not framed
	sha       string   // hex, "" when the client did not say
	md5       []byte   // of Content-MD5, nil when there was none
	sent      checksum // value "" until the trailer was read
	trailer   bool     // the checksum comes in the trailer
	discarded bool
}

// received is a body that passed every check.
type received struct {
	blob
	md5  []byte // nil when the body was discarded
	sum  checksum
	raw  uint64 // the sum's value when it is a CRC
	crc  uint64 // CRC64NVME of a discarded body, which stands in for its MD5
	sent bool   // the client sent sum itself
}

// payload prepares the body of q and refuses what its headers already tell.
func (q *s3Request) payload(fallback algorithm) (*payload, *apiError) {
	h := q.r.Header
	p := &payload{in: q.r.Body, size: q.r.ContentLength}
	if err := p.framing(q); err != nil {
		return nil, err
	}
	if p.size < 0 {
		return nil, refuse(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if p.size > maxPut {
		return nil, badRequest("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
	}
	if v := h.Get("Content-Md5"); v != "" {
		sum, err := base64.StdEncoding.DecodeString(v)
		if err != nil || len(sum) != md5.Size {
			return nil, badRequest("InvalidDigest", "The Content-MD5 you specified was invalid.")
		}
		p.md5 = sum
	}
	if err := p.checksum(h, fallback); err != nil {
		return nil, err
	}
	p.discarded = q.c.cfg.DiscardOver > 0 && p.size > q.c.cfg.DiscardOver
	if e, _, ok := strike[FlipByte](q.c.faults, q.call, nil); ok {
		p.in = &flipper{p.in, e.Offset}
	}
	return p, nil
}

// framing reads what x-amz-content-sha256 says of the body.
func (p *payload) framing(q *s3Request) *apiError {
	v := q.r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case strings.HasPrefix(v, "STREAMING-"):
		decoded := q.r.Header.Get("X-Amz-Decoded-Content-Length")
		size, err := strconv.ParseInt(decoded, 10, 64)
		if err != nil || size < 0 {
			return refuse(http.StatusLengthRequired, "MissingContentLength", "You must provide the X-Amz-Decoded-Content-Length HTTP header.")
		}
		p.chunks = newChunked(p.in, v, q.signer)
		p.in, p.size = p.chunks, size
	case v == "UNSIGNED-PAYLOAD" || v == "":
	case len(v) == 2*sha256.Size && v == strings.ToLower(v):
		p.sha = v
	default:
		return badRequest("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- value, or a valid sha256 value.")
	}
	return nil
}

func (p *payload) checksum(h http.Header, fallback algorithm) (err *apiError) {
	if p.sent, err = sentChecksum(h); err != nil {
		return err
	}
	if p.sent.value != "" {
		return p.sent.wellFormed()
	}
	for _, a := range algorithms() {
		if strings.EqualFold(h.Get("X-Amz-Trailer"), a.header()) {
			if p.chunks == nil || !p.chunks.trailed {
				return badRequest("InvalidRequest", "A trailer was announced, but the body has none.")
			}
			p.sent, p.trailer = checksum{alg: a, kind: fullObject}, true
			return nil
		}
	}
	if h.Get("X-Amz-Sdk-Checksum-Algorithm") != "" {
		return badRequest("InvalidRequest", "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
	}
	p.sent = checksum{alg: fallback, kind: fullObject}
	return nil
}

// receive reads the whole body, once and into its final place, and verifies it.
func (p *payload) receive() (received, *apiError) {
	sum := p.sent.alg.new()
	hashes := []hash.Hash{sum}
	var md, sha, stand hash.Hash
	if !p.discarded || p.md5 != nil {
		md = md5.New()
		hashes = append(hashes, md)
	} else if p.sent.alg != algCRC64NVME {
		stand = algCRC64NVME.new()
		hashes = append(hashes, stand)
	}
	if p.sha != "" && !p.discarded {
		sha = sha256.New()
		hashes = append(hashes, sha)
	}
	body, err := p.read(hashes)
	if err != nil {
		return received{}, err
	}
	if sha != nil && hex.EncodeToString(sha.Sum(nil)) != p.sha {
		return received{}, badRequest("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	if p.md5 != nil && !bytes.Equal(md.Sum(nil), p.md5) {
		return received{}, badRequest("BadDigest", "The Content-MD5 you specified did not match what we received.")
	}
	if p.trailer {
		if p.sent.value = p.chunks.trailer.Get(p.sent.alg.header()); p.sent.value == "" {
			return received{}, badRequest("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
		if err := p.sent.wellFormed(); err != nil {
			return received{}, err
		}
	}
	got := sum.Sum(nil)
	out := received{blob: body, sum: p.sent, sent: p.sent.value != "", raw: bigEndian(got)}
	if out.sent && out.sum.value != encodeSum(got) {
		return received{}, badRequest("BadDigest", "The "+string(p.sent.alg)+" you specified did not match the calculated checksum.")
	}
	out.sum.value = encodeSum(got)
	switch {
	case md != nil && !p.discarded:
		out.md5 = md.Sum(nil)
	case stand != nil:
		out.crc = bigEndian(stand.Sum(nil))
	default:
		out.crc = out.raw
	}
	return out, nil
}

func (p *payload) read(hashes []hash.Hash) (blob, *apiError) {
	b := blob{size: p.size, gone: p.discarded}
	var dst []byte
	if p.discarded {
		dst = make([]byte, readAtATime)
	} else {
		dst = make([]byte, p.size)
		b.parts = [][]byte{dst}
	}
	for left := p.size; left > 0; {
		piece := dst[:min(left, int64(len(dst)), readAtATime)]
		n, err := io.ReadFull(p.in, piece)
		for _, h := range hashes {
			h.Write(piece[:n])
		}
		if err != nil {
			return b, incomplete(err)
		}
		left -= int64(n)
		if !p.discarded {
			dst = dst[n:]
		}
	}
	// The end must be here: a framed body's trailer is read on the way to it.
	if n, err := io.ReadFull(p.in, make([]byte, 1)); n != 0 || err != io.EOF {
		return b, incomplete(err)
	}
	return b, nil
}

func incomplete(err error) *apiError {
	var refused *apiError
	if errors.As(err, &refused) {
		return refused
	}
	return badRequest("IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header")
}

func bigEndian(b []byte) (v uint64) {
	if len(b) > 8 {
		return 0
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// blob is an object's bytes, in the pieces they came in.
type blob struct {
	parts [][]byte
	size  int64
	gone  bool // only the length was kept
}

// writeRange writes n bytes from off on.
func (b blob) writeRange(w io.Writer, off, n int64) {
	for _, p := range b.parts {
		if off >= int64(len(p)) {
			off -= int64(len(p))
			continue
		}
		piece := p[off:min(int64(len(p)), off+n)]
		if _, err := w.Write(piece); err != nil {
			return
		}
		off, n = 0, n-int64(len(piece))
		if n == 0 {
			return
		}
	}
}

func (b blob) bytes() []byte {
	if len(b.parts) == 1 {
		return b.parts[0]
	}
	return bytes.Join(b.parts, nil)
}
