package strictaws

import (
	"bufio"
	"crypto/sha256"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// chunked takes the aws-chunked framing off a body, verifies the signature of
// each chunk where there is one, and leaves the trailer's fields in trailer. Its
// errors are *apiError or those of the connection.
type chunked struct {
	in      *bufio.Reader
	signer  *chunkSigner // nil: chunks are not verified
	signed  bool         // chunks carry signatures
	trailed bool         // a trailer follows
	trailer http.Header

	left int64
	want string // signature of the current chunk
	sum  hash.Hash
	done bool
}

func newChunked(body io.Reader, kind string, signer *chunkSigner) *chunked {
	c := &chunked{
		in:      bufio.NewReader(body),
		signed:  strings.HasPrefix(kind, "STREAMING-"+sigAlgorithm),
		trailed: strings.HasSuffix(kind, "-TRAILER"),
		trailer: http.Header{},
		sum:     sha256.New(),
	}
	if c.signed {
		c.signer = signer
	}
	return c
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.left == 0 && !c.done {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if c.done {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	if c.signer != nil {
		c.sum.Write(p[:n])
	}
	if c.left -= int64(n); c.left == 0 {
		if err := c.end(); err != nil {
			return n, err
		}
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads a chunk's head: size in hex[;chunk-signature=…].
func (c *chunked) next() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	size, ext, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(size, 16, 64)
	if err != nil || n < 0 {
		return badChunk()
	}
	c.want = strings.TrimPrefix(ext, "chunk-signature=")
	if c.signed && len(c.want) != 64 {
		return badChunk()
	}
	c.left = n
	if n > 0 {
		return nil
	}
	c.done = true
	if err := c.checkChunk(); err != nil {
		return err
	}
	return c.readTrailer()
}

// end checks a chunk that was read to its end.
func (c *chunked) end() error {
	if line, err := c.line(); err != nil || line != "" {
		return badChunk()
	}
	return c.checkChunk()
}

func (c *chunked) checkChunk() error {
	if c.signer != nil && !c.signer.chunk(c.sum.Sum(nil), c.want) {
		return signatureDoesNotMatch()
	}
	c.sum.Reset()
	return nil
}

func (c *chunked) readTrailer() error {
	var canonical strings.Builder
	unsigned := c.trailed && c.signer != nil
	for {
		line, err := c.line()
		if err == io.ErrUnexpectedEOF && !c.trailed {
			return nil // the last empty line may be missing
		}
		if err != nil {
			return err
		}
		if line == "" {
			if unsigned {
				return signatureDoesNotMatch()
			}
			return nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if strings.EqualFold(name, "x-amz-trailer-signature") {
			if c.signer != nil && !c.signer.trailer(canonical.String(), value) {
				return signatureDoesNotMatch()
			}
			unsigned = false
			continue
		}
		canonical.WriteString(strings.ToLower(name) + ":" + value + "\n")
		c.trailer.Set(name, value)
	}
}

func (c *chunked) line() (string, error) {
	b, err := c.in.ReadSlice('\n')
	if err == io.EOF {
		return "", io.ErrUnexpectedEOF
	}
	if err == bufio.ErrBufferFull {
		return "", badChunk()
	}
	return strings.TrimRight(string(b), "\r\n"), err
}

func badChunk() *apiError {
	return badRequest("InvalidChunkSizeError", "The aws-chunked framing of the body is not valid.")
}
