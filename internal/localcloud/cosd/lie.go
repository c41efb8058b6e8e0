package cosd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// Lie is one way in which an answer is not the honest one. A lie alters either
// what the bucket takes the request for or the answer that it then gives.
type Lie struct {
	hang    bool
	request func(*Server, *Request)
	answer  func(*Server, *Request, *answer)
}

// Refuse answers with a genuine COS error, such as 404 "NoSuchBucket" or
// 500 "InternalError".
func Refuse(status int, code string) Lie {
	return Lie{answer: func(s *Server, q *Request, a *answer) {
		*a = *s.refuse(q, &refusal{status, code, "told to"})
	}}
}

// Page answers with an HTML page that is not COS's and so has none of its
// headers: an interception page, a gateway's 503, a 404 of something in between.
func Page(status int) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		*a = *page(status)
	}}
}

func page(status int) *answer {
	a := newAnswer(status)
	a.header.Set("Server", "nginx")
	a.header.Set("Content-Type", "text/html; charset=utf-8")
	a.set(fmt.Appendf(nil, "<html><head><title>%d</title></head><body>Please log in.</body></html>\n", status))
	return a
}

// Redirect sends the client elsewhere with 301 or 302.
func Redirect(status int, location string) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		*a = *page(status)
		a.header.Set("Location", location)
	}}
}

// Hang accepts the request and does not answer until the lie is healed or the
// client goes.
func Hang() Lie { return Lie{hang: true} }

// Reset ends the connection without an answer.
func Reset() Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		a.reset, a.status = true, 0
	}}
}

// Cut ends the connection after n bytes of the body; Content-Length promises
// all of it.
func Cut(n int64) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) { a.cut = n }}
}

// CutUnframed ends the body after n bytes in an answer that states no length in
// any way, so that the end looks regular.
func CutUnframed(n int64) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		a.cut, a.unframed = n, true
	}}
}

// Unframed sends the whole body without stating its length in any way.
func Unframed() Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) { a.unframed = true }}
}

// Flip inverts a bit of the object's byte at offset, where the answer holds it.
func Flip(offset int64) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		if a.body != nil {
			a.body = &flipper{Reader: a.body, left: offset - a.offset}
		}
	}}
}

type flipper struct {
	io.Reader
	left int64 // bytes before the one to flip; negative when it is past
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.left >= 0 && f.left < int64(n) {
		p[f.left] ^= 1
	}
	f.left -= int64(n)
	return n, err
}

// IgnoreRange answers 200 with the whole object to a ranged request.
func IgnoreRange() Lie {
	return Lie{request: func(_ *Server, q *Request) { q.Range = "" }}
}

// IgnoreIfMatch answers as if the request had no If-Match.
func IgnoreIfMatch() Lie {
	return Lie{request: func(_ *Server, q *Request) { q.ifMatch = "" }}
}

// WrongContentRange states value as the Content-Range of the same bytes.
func WrongContentRange(value string) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		if a.status == http.StatusPartialContent {
			a.header.Set("Content-Range", value)
		}
	}}
}

// Resize makes the body more bytes longer, or shorter when negative, with a
// Content-Length that fits it; the other headers stay.
func Resize(more int64) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		if a.body == nil || a.length+more < 0 {
			return
		}
		a.length += more
		a.body = io.LimitReader(io.MultiReader(a.body, zeros{}), a.length)
	}}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Become replaces the object under the request's key before it is answered, as
// if somebody had uploaded another one. With When{After: k, Times: 1} it changes
// between two parts of a copy; with Attributes.ETag it keeps its old ETag.
func Become(body []byte, at Attributes) Lie {
	return Lie{request: func(s *Server, q *Request) { s.Put(q.Key, body, at) }}
}

// Recompress is a proxy in between that gzips what it passes on, asked or not, in
// chunks. It holds the body in memory.
func Recompress() Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		if a.body == nil || a.header.Get("Content-Encoding") != "" {
			return
		}
		a.header.Set("Content-Encoding", "gzip")
		a.header.Set("Vary", "Accept-Encoding")
		a.header.Set("Via", "1.1 proxy")
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.Copy(z, a.body) // from memory to memory: cannot fail
		z.Close()
		a.body, a.length, a.offset = &packed, -1, 0
	}}
}

// List answers with the bucket's listing in place of the object.
func List() Lie {
	return Lie{answer: func(s *Server, q *Request, a *answer) { *a = *s.listing(q) }}
}

// Without leaves headers out of the answer, such as "ETag",
// "x-cos-hash-crc64ecma" or "x-cos-request-id".
func Without(headers ...string) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) {
		for _, name := range headers {
			a.header.Del(name)
		}
	}}
}

// With sets a header of the answer, honest or not.
func With(name, value string) Lie {
	return Lie{answer: func(_ *Server, _ *Request, a *answer) { a.header.Set(name, value) }}
}
