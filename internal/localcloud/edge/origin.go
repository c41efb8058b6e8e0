package edge

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// userAgent is what CloudFront calls itself toward its origins.
const userAgent = "Amazon CloudFront"

// route is a behaviour with its origins made ready.
type route struct {
	*Behaviour
	origins []origin
}

type origin struct {
	Origin
	base *url.URL
}

func routes(c Config) ([]route, error) {
	if len(c.Behaviours) == 0 || c.Behaviours[len(c.Behaviours)-1].Pattern != "*" {
		return nil, errors.New("the last behaviour must match everything")
	}
	var all []route
	for i := range c.Behaviours {
		b := &c.Behaviours[i]
		if len(b.Origins) < 1 || len(b.Origins) > 2 {
			return nil, fmt.Errorf("behaviour %q has %d origins, must have one or two", b.Pattern, len(b.Origins))
		}
		to := route{Behaviour: b}
		for _, o := range b.Origins {
			u, err := url.Parse(o.URL)
			if err != nil || u.Host == "" {
				return nil, fmt.Errorf("parse %s origin %q: it must be a URL with a host", o.Name, o.URL)
			}
			if o.Signed && c.Sign == nil {
				return nil, fmt.Errorf("%s origin: its requests must be signed, and there is no Sign", o.Name)
			}
			to.origins = append(to.origins, origin{o, u})
		}
		all = append(all, to)
	}
	return all, nil
}

// rooted is r, or r for the root object.
func (e *Edge) rooted(r *http.Request) *http.Request {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if path != "/" || e.dist.Root == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.RequestURI = "/" + e.dist.Root
	if query != "" {
		r.RequestURI += "?" + query
	}
	return r
}

// route is the first whose behaviour matches; the last one does.
func (e *Edge) route(r *http.Request) *route {
	path := pathOf(r)
	i := slices.IndexFunc(e.routes, func(to route) bool { return to.matches(path) })
	return &e.routes[i]
}

// pathOf is the visitor's path as it came.
func pathOf(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // the absolute form
		path = r.URL.EscapedPath()
	}
	return path
}

// ask passes r on to one origin.
func (e *Edge) ask(r *http.Request, to *route, o origin) (*http.Response, error) {
	req := r.Clone(r.Context())
	req.RequestURI, req.Close = "", false
	req.Host = o.base.Host
	if slices.Contains(to.Headers, "Host") {
		req.Host = r.Host
	}
	req.URL = o.target(r, to.Query)
	for name := range req.Header {
		if hopByHop(name) || !to.passes(name) {
			delete(req.Header, name)
		}
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept-Encoding", to.accepted(r))
	if o.Signed {
		if err := e.sign(req); err != nil {
			return nil, fmt.Errorf("sign for %s: %w", o.Name, err)
		}
	}
	return e.client.Do(req)
}

// passes reports whether a header reaches an origin.
func (b *Behaviour) passes(name string) bool {
	switch name {
	case "Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Content-Type", "Content-Length":
		return true
	}
	return slices.Contains(b.Headers, AllHeaders) ||
		slices.ContainsFunc(b.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// accepted is the Accept-Encoding that reaches an origin. It is never empty, or
// net/http would ask for gzip on its own and unpack it on the way.
func (b *Behaviour) accepted(r *http.Request) string {
	wanted := r.Header.Get("Accept-Encoding")
	if slices.Contains(b.Headers, AllHeaders) && wanted != "" {
		return wanted
	}
	wanted = strings.ToLower(wanted)
	passed := slices.DeleteFunc(slices.Clone(b.Encodings), func(name string) bool { return !strings.Contains(wanted, name) })
	if len(passed) == 0 {
		return "identity"
	}
	return strings.Join(passed, ",")
}

// target is the visitor's path at the origin, exactly as it came. Opaque is the
// one form that net/url does not touch; but one that begins with "//" it takes
// for a host, and there Path and RawPath keep the text.
func (o origin) target(r *http.Request, withQuery bool) *url.URL {
	path := strings.TrimSuffix(o.base.EscapedPath(), "/") + pathOf(r)
	u := &url.URL{Scheme: o.base.Scheme, Host: o.base.Host, Opaque: path}
	if withQuery {
		_, u.RawQuery, _ = strings.Cut(r.RequestURI, "?")
	}
	if decoded, err := url.PathUnescape(path); strings.HasPrefix(path, "//") && err == nil {
		u.Opaque, u.Path, u.RawPath = "", decoded, path
	}
	return u
}
