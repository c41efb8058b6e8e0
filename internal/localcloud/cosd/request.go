package cosd

import (
	"net/http"
	"net/url"
	"strings"
)

// Request is one request as a lie's predicate sees it.
type Request struct {
	Method string
	Key    string // decoded; "" is the bucket itself
	Range  string // the Range header
	Signed bool   // it carries an Authorization header

	ifMatch, ifNoneMatch string
	http                 *http.Request
}

func newRequest(r *http.Request) *Request {
	return &Request{
		Method:      r.Method,
		Key:         keyOf(r),
		Range:       r.Header.Get("Range"),
		Signed:      r.Header.Get("Authorization") != "",
		ifMatch:     r.Header.Get("If-Match"),
		ifNoneMatch: r.Header.Get("If-None-Match"),
		http:        r,
	}
}

// keyOf decodes the request target as it came over the wire. What frameworks make
// of a path on the way (cleaned, "%2F" taken for a separator) would hide what a
// client really asked for.
func keyOf(r *http.Request) string {
	target, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") {
		_, rest, _ = strings.Cut(rest, "/") // the absolute form names the host first
		target = "/" + rest
	}
	key, err := url.PathUnescape(strings.TrimPrefix(target, "/"))
	if err != nil { // net/http has refused such a target already
		return strings.TrimPrefix(r.URL.Path, "/")
	}
	return key
}
