package object

import (
	"context"
	"errors"
	"io"
)

// SetBody sets where r's bytes come from: Body then yields exactly
// r.Range.Length bytes of rc. A body that is cut ends as Unavailable (or as ctx
// ended), one that is longer as Corrupt. The last bytes are handed out only once
// the end was seen behind them, so that even a reader who stops at the length it
// expects notices a body that is longer. In e are Side, Op and Key of an error.
func (r *Read) SetBody(ctx context.Context, rc io.ReadCloser, e Error) {
	r.Body = &body{ctx: ctx, rc: rc, left: r.Range.Length, origin: e}
}

type body struct {
	ctx    context.Context
	rc     io.ReadCloser
	left   int64
	origin Error
	err    error // what every further Read returns
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == nil && b.left == 0 {
		if err = b.end(); err != io.EOF {
			n = 0
		}
	}
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.left == 0:
		b.err = io.EOF
	case errors.Is(err, errLonger):
		b.err = b.fail(Corrupt, err)
	default:
		b.err = b.cut(err)
	}
	return n, b.err
}

var errLonger = errors.New("the body is longer than its range")

// end reads on behind the last byte and returns io.EOF when nothing is there.
func (b *body) end() error {
	var one [1]byte
	for {
		n, err := b.rc.Read(one[:])
		if n > 0 {
			return errLonger
		}
		if err != nil {
			return err
		}
	}
}

func (b *body) cut(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if class, interrupted := Interrupted(b.ctx); interrupted {
		return b.fail(class, err)
	}
	return b.fail(Unavailable, err)
}

func (b *body) fail(class Class, err error) error {
	e := b.origin
	e.Class, e.Err = class, err
	return &e
}

func (b *body) Close() error { return b.rc.Close() }
