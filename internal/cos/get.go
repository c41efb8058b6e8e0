package cos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/tencentyun/cos-go-sdk-v5"

	"github.com/objectferry/objectferry/internal/object"
)

const op = "GetObject"

// Get opens one ranged read; see copier.Source. r.Length must be positive.
//
// An answer without a strong ETag cannot be pinned, so it is accepted only where
// there is nothing to pin: the range is the whole object, and its CRC is there to
// verify it. Anything else without one is Corrupt.
func (s *Source) Get(ctx context.Context, key string, r object.Range, pin string) (*object.Read, error) {
	fail := func(class object.Class, code, format string, args ...any) error {
		return &object.Error{Side: object.Source, Op: op, Key: key, Class: class, Code: code, Err: fmt.Errorf(format, args...)}
	}
	if r.Offset < 0 || r.Length < 1 {
		return nil, fail(object.Unknown, "", "range of %d bytes from %d is not one", r.Length, r.Offset)
	}
	if !holdable(key) {
		return nil, fail(object.Absent, "", "COS cannot hold this key")
	}
	resp, err := s.do(ctx, key, r.Header(), pin)
	if resp.is(http.StatusRequestedRangeNotSatisfiable) {
		if r.Offset > 0 {
			return nil, fail(object.Changed, "InvalidRange", "the object ends before byte %d", r.Offset)
		}
		return s.empty(ctx, key, pin)
	}
	if err != nil {
		return nil, err
	}
	read, err := ranged(resp.Response, r)
	if err != nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK && r.Offset == 0 && resp.ContentLength == 0 {
			return s.empty(ctx, key, pin) // a range of nothing may be ignored
		}
		var e *object.Error
		errors.As(err, &e)
		e.Key = key
		return nil, e
	}
	if pin != "" && read.ETag != pin {
		resp.Body.Close()
		return nil, fail(object.Changed, "", "asked for ETag %s, got %q", pin, read.ETag)
	}
	read.SetBody(ctx, resp.Body, object.Error{Side: object.Source, Op: op, Key: key})
	return read, nil
}

// empty settles that an object without a satisfiable range is empty: a plain GET
// must say so.
func (s *Source) empty(ctx context.Context, key, pin string) (*object.Read, error) {
	resp, err := s.do(ctx, key, "", pin)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	e := &object.Error{Side: object.Source, Op: op, Key: key, Class: object.Changed, Err: errors.New("the object was empty a moment ago")}
	switch {
	case resp.StatusCode != http.StatusOK:
		e.Class, e.Code, e.Err = object.Corrupt, status(resp.StatusCode), errors.New("not the answer to a plain read")
		return nil, e
	case resp.ContentLength < 0:
		e.Class, e.Err = object.Corrupt, errors.New("the answer has no Content-Length")
		return nil, e
	case resp.ContentLength > 0:
		return nil, e
	}
	read := &object.Read{Attributes: attributes(resp.Header), Body: http.NoBody}
	if read.ETag == "" && !read.HasCRC64 {
		e.Class, e.Err = object.Unavailable, errors.New("an empty answer with neither ETag nor CRC is not an object's")
		return nil, e
	}
	if pin != "" && read.ETag != pin {
		return nil, e
	}
	return read, nil
}

// answer is a response, nil where none came.
type answer struct{ *http.Response }

// is reports whether an authentic answer has the given status.
func (a answer) is(code int) bool {
	return a.Response != nil && a.StatusCode == code && authentic(a.Header)
}

// do sends one GET. An error is already an *object.Error; the answer may be there
// beside it.
func (s *Source) do(ctx context.Context, key, byteRange, pin string) (answer, error) {
	// Spelled out, so that no transport on the way unpacks a body by itself.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if pin != "" {
		header.Set("If-Match", pin)
	}
	resp, err := s.client.Object.Get(ctx, key, &sdk.ObjectGetOptions{Range: byteRange, XOptionHeader: &header})
	var a answer
	if resp != nil {
		a.Response = resp.Response
	}
	if err != nil {
		return a, classify(ctx, op, key, a.Response, err)
	}
	if !authentic(resp.Header) {
		resp.Body.Close()
		return a, notCOS(op, key, resp.Response)
	}
	if resp.Uncompressed {
		resp.Body.Close()
		return a, &object.Error{Side: object.Source, Op: op, Key: key, Class: object.Corrupt, Err: errors.New("the body was unpacked on the way")}
	}
	return a, nil
}

// authentic reports whether COS itself answered. Interception pages, proxies and
// load balancers do not send the header.
func authentic(h http.Header) bool { return h.Get("X-Cos-Request-Id") != "" }

// ranged checks that an answer is the range that was asked for, all of it, and
// says what it is a range of. The errors lack the key.
func ranged(resp *http.Response, r object.Range) (*object.Read, error) {
	wrong := func(class object.Class, format string, args ...any) error {
		return &object.Error{Side: object.Source, Op: op, Class: class, Code: status(resp.StatusCode), Err: fmt.Errorf(format, args...)}
	}
	if resp.StatusCode != http.StatusPartialContent {
		if resp.Header.Get("Etag") == "" { // a listing, most likely
			return nil, wrong(object.Unavailable, "asked for %s, got something that is not an object", r.Header())
		}
		return nil, wrong(object.Corrupt, "asked for %s, got the answer to something else", r.Header())
	}
	got, size, err := r.Answered(resp.Header.Get("Content-Range"), resp.ContentLength)
	if err != nil {
		return nil, wrong(object.Corrupt, "%w", err)
	}
	read := &object.Read{Attributes: attributes(resp.Header), Range: got}
	read.Size = size
	if whole := read.Range.Length == size; read.ETag == "" && !(whole && read.HasCRC64) {
		return nil, wrong(object.Corrupt, "the answer has no strong ETag, so the version cannot be pinned")
	}
	return read, nil
}
