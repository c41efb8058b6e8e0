package edge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Distribution is what an edge does with a request, in CloudFront's terms.
type Distribution struct {
	Root       string                // key that "/" stands for; "" passes "/" on
	Behaviours []Behaviour           // the first one whose Pattern matches; the last one matches everything
	ErrorTTL   map[int]time.Duration // for how long a final error is kept at least; other statuses are not kept
}

// Behaviour is what is done with the paths that a pattern matches.
type Behaviour struct {
	Pattern  string   // * is any text, slashes too, ? one character; a slash at its beginning may be left out
	Methods  []string // the edge itself refuses others
	Origins  []Origin // one, or a primary and a secondary
	Failover []int    // the primary's statuses on which the secondary is asked; no answer at all is one, too
	// Headers are those of the visitor's that reach an origin beside ranges and
	// conditions; AllHeaders is all but Host. With Host an origin gets the
	// visitor's instead of its own.
	Headers   []string
	Encodings []string // of Accept-Encoding that reach an origin
	Query     bool     // whether the query string reaches an origin, and tells answers apart
	TTL       TTL
	Answer    Answer
}

// AllHeaders in Behaviour.Headers passes every header on.
const AllHeaders = "*"

// Origin is where requests go.
type Origin struct {
	Name   string // of the X-Origin header: S3 or COS
	URL    string // its path, as of a path-style bucket, is put before the visitor's
	Signed bool   // by Config.Sign: the origin lets nobody else in
}

// TTL is for how long whole 200 answers are kept. The origin's Cache-Control and
// Expires decide between Min and Max; without them it is Default.
type TTL struct{ Min, Default, Max time.Duration }

// Answer is what the edge sets in answers, whoever gave them.
type Answer struct {
	Header http.Header
	CORS   *CORS // nil leaves these headers to the origins
}

// CORS is who may use the answers from scripts.
type CORS struct {
	Origins, Methods, Headers, Expose []string
	MaxAge                            string // seconds
}

// Fallback is a distribution that passes everything on and keeps nothing: S3
// first, COS on 403 and 404.
func Fallback(s3, cos string) Distribution {
	return Distribution{Behaviours: []Behaviour{{
		Pattern: "*",
		Methods: []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete},
		Origins: []Origin{{Name: S3, URL: s3}, {Name: COS, URL: cos}}, Failover: []int{http.StatusForbidden, http.StatusNotFound},
		Headers: []string{AllHeaders}, Query: true,
	}}}
}

// matches compares with the normalised path, as CloudFront does: what is sent on
// is the path as it came, but dots and escapes lead nobody around a pattern.
func (b *Behaviour) matches(path string) bool {
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	path = (&url.URL{Scheme: "http", Host: "edge", Path: "/"}).ResolveReference(&url.URL{Path: path}).Path
	return glob(strings.TrimPrefix(b.Pattern, "/"), strings.TrimPrefix(path, "/"))
}

// glob matches s bytewise.
func glob(pattern, s string) bool {
	for len(pattern) > 0 {
		switch {
		case pattern[0] == '*':
			rest := strings.TrimLeft(pattern, "*")
			for i := range len(s) + 1 {
				if glob(rest, s[i:]) {
					return true
				}
			}
			return false
		case s == "" || pattern[0] != '?' && pattern[0] != s[0]:
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// set writes the headers of a into h.
func (a *Answer) set(h http.Header, r *http.Request) {
	for name, values := range a.Header {
		h[name] = values
	}
	origin := r.Header.Get("Origin")
	if a.CORS == nil || origin == "" {
		return
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
	list := func(name string, values []string) { h.Set("Access-Control-"+name, strings.Join(values, ", ")) }
	switch {
	case slices.Contains(a.CORS.Origins, "*"):
		list("Allow-Origin", []string{"*"})
	case slices.Contains(a.CORS.Origins, origin):
		list("Allow-Origin", []string{origin})
	default:
		return
	}
	list("Expose-Headers", a.CORS.Expose)
	if r.Method == http.MethodOptions {
		list("Allow-Methods", a.CORS.Methods)
		list("Allow-Headers", a.CORS.Headers)
		list("Max-Age", []string{a.CORS.MaxAge})
	}
}
