package s3store

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
)

// Our own metadata: where an object came from. The names are reserved; an object
// that brings them along loses them.
const (
	metaCopy     = "ferry-copy"
	metaETag     = "ferry-etag"
	metaCRC64    = "ferry-crc64"
	metaModified = "ferry-modified"
)

const (
	maxMetadata = 2 << 10 // bytes of all names and values
	maxPut      = 5 << 30 // bytes of one PutObject or part
)

// headers are what an object carries besides its bytes, as one set for PutObject
// and CreateMultipartUpload: texts go as the source sent them, where the SDK's
// fields would parse and print them anew. The error says why the object cannot
// exist in S3.
//
// S3 takes ASCII only. Metadata values that are not go as RFC 2047 words, a
// Content-Disposition in the form of RFC 6266; for any other header there is no
// such form, and none that works is ever not ASCII.
func (s *Store) headers(a object.Attributes, p object.Provenance) (http.Header, error) {
	h := http.Header{}
	for _, field := range []struct{ name, value string }{
		{"Content-Type", a.ContentType},
		{"Content-Encoding", a.ContentEncoding},
		{"Content-Language", a.ContentLanguage},
		{"Content-Disposition", disposition(a.ContentDisposition)},
		{"Cache-Control", a.CacheControl},
		{"Expires", a.Expires},
		{"X-Amz-Server-Side-Encryption", s.cfg.SSE},
		{"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", s.cfg.KMSKey},
		{"X-Amz-Storage-Class", s.cfg.StorageClass},
	} {
		if !printable(field.value) {
			return nil, fmt.Errorf("header %s is not ASCII: %q", field.name, field.value)
		}
		if field.value != "" {
			h.Set(field.name, field.value)
		}
	}
	meta, err := metadata(a.Metadata, p)
	if err != nil {
		return nil, err
	}
	for name, value := range meta {
		h.Set("X-Amz-Meta-"+name, value)
	}
	return h, nil
}

// metadata joins theirs and ours. Ours gives way when both together exceed 2 KB:
// first the source's last-modified, then its CRC, its ETag, and the copy's id
// last, without which an ambiguous write cannot be told to be ours.
func metadata(theirs map[string]string, p object.Provenance) (map[string]string, error) {
	all, size := make(map[string]string, len(theirs)+4), 0
	for name, value := range theirs {
		if reserved(name) {
			continue
		}
		if !token(name) {
			return nil, fmt.Errorf("metadata name %q cannot stand in a header", name)
		}
		value = mime.BEncoding.Encode("UTF-8", value)
		all[name] = value
		size += len(name) + len(value)
	}
	if size > maxMetadata {
		return nil, fmt.Errorf("metadata of %d bytes exceeds S3's %d", size, maxMetadata)
	}
	for _, ours := range []struct{ name, value string }{
		{metaCopy, p.CopyID}, {metaETag, p.ETag}, {metaCRC64, p.CRC64}, {metaModified, p.LastModified},
	} {
		if ours.value == "" {
			continue
		}
		if size += len(ours.name) + len(ours.value); size > maxMetadata {
			break
		}
		all[ours.name] = ours.value
	}
	return all, nil
}

func reserved(name string) bool {
	return slices.Contains([]string{metaCopy, metaETag, metaCRC64, metaModified}, strings.ToLower(name))
}

// disposition rewrites a raw UTF-8 file name to filename*, which is ASCII and
// means the same; what it cannot read it leaves alone.
func disposition(value string) string {
	if printable(value) {
		return value
	}
	kind, parameters, err := mime.ParseMediaType(value)
	if err != nil {
		return value
	}
	return mime.FormatMediaType(kind, parameters)
}

// printable reports whether a header may hold s.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' && r != '\t') || r >= 0x7f })
}

// token reports whether s may be part of a header's name.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		alphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// carrying puts h on a request before it is signed.
func carrying(h http.Header) func(*s3.Options) {
	set := middleware.BuildMiddlewareFunc("ObjectHeaders", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (
		middleware.BuildOutput, middleware.Metadata, error,
	) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.BuildOutput{}, middleware.Metadata{}, errors.New("set object headers: not an HTTP request")
		}
		for name, values := range h {
			req.Header[name] = values
		}
		return next.HandleBuild(ctx, in)
	})
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error { return stack.Build.Add(set, middleware.After) })
	}
}
