package strictaws

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// target is what a request's line and Host header point at. The path is taken
// from the raw request-target and never cleaned: a key is bytes.
type target struct {
	bucket, key string
	path        string // decoded
	query       url.Values
}

func parseTarget(requestURI, host string) (target, *apiError) {
	path, rawQuery, _ := strings.Cut(requestURI, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok && !strings.HasPrefix(path, "/") {
		// absolute form, as a client behind a proxy sends it
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			rest, slash = rest+"/", len(rest)
		}
		path = rest[slash:]
	}
	decoded, ok := unescapePath(path)
	if !ok {
		return target{}, badRequest("InvalidURI", "Couldn't parse the specified URI.")
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return target{}, badRequest("InvalidURI", "Couldn't parse the query of the specified URI.")
	}
	t := target{path: decoded, query: query}
	if bucket := virtualHost(host); bucket != "" {
		t.bucket, t.key = bucket, strings.TrimPrefix(decoded, "/")
		return t, nil
	}
	t.bucket, t.key, _ = strings.Cut(strings.TrimPrefix(decoded, "/"), "/")
	return t, nil
}

// virtualHost returns the bucket that the Host header names, "" when it names
// none and the request is path-style: bucket.s3.region.amazonaws.com,
// bucket.s3-region.…, bucket.localhost.
func virtualHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		return ""
	}
	host = strings.ToLower(host)
	for _, base := range []string{".s3.", ".s3-"} {
		if i := strings.LastIndex(host, base); i > 0 {
			return host[:i]
		}
	}
	bucket, _ := strings.CutSuffix(host, ".localhost")
	if bucket == host {
		return ""
	}
	return bucket
}

func unescapePath(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			return "", false
		}
		out = append(out, unhex(s[i+1])<<4|unhex(s[i+2]))
		i += 2
	}
	return string(out), true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// escape percent-encodes all but RFC 3986's unreserved bytes and those of keep.
func escape(s, keep string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' ||
			strings.IndexByte("-._~", c) >= 0 || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
