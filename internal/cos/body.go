package cos

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/objectferry/objectferry/internal/object"
)

// body yields exactly left bytes. The last of them are handed out only once the
// end was seen behind them, so that even a reader that stops at the length it
// expects notices a body that is longer.
type body struct {
	ctx  context.Context
	key  string
	rc   io.ReadCloser
	left int64
	err  error
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == nil && b.left == 0 {
		err = b.end()
		if err != io.EOF {
			n = 0
		}
	}
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.left == 0:
		b.err = io.EOF
	case object.ClassOf(err) == object.Corrupt:
		b.err = err
	default:
		b.err = b.cut(err)
	}
	return n, b.err
}

// end reads on behind the last byte and returns io.EOF when nothing is there.
func (b *body) end() error {
	var one [1]byte
	for {
		n, err := b.rc.Read(one[:])
		if n > 0 {
			return &object.Error{Side: object.Source, Op: op, Key: b.key, Class: object.Corrupt, Err: errors.New("the body is longer than its range")}
		}
		if err != nil {
			return err
		}
	}
}

func (b *body) cut(err error) error {
	class, interrupted := object.Interrupted(b.ctx)
	if !interrupted {
		class = object.Unavailable
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &object.Error{Side: object.Source, Op: op, Key: b.key, Class: class, Err: err}
}

func (b *body) Close() error { return b.rc.Close() }

// maxErrorBody bounds what is read of an answer that is not an object: the SDK
// reads it whole.
const maxErrorBody = 64 << 10

// bounded cuts the bodies of error answers.
type bounded struct{ next http.RoundTripper }

func (t bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode/100 != 2 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, err
}
