package cosd

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// access knows whose signatures are good and what the policy denies them.
type access struct {
	mu         sync.RWMutex
	principals map[string]Principal
	denied     []string // key prefixes that signed requests are refused; "" is everything
}

// SetPrincipals replaces everybody whose signature is accepted.
func (s *Server) SetPrincipals(ps ...Principal) {
	m := make(map[string]Principal, len(ps))
	for _, p := range ps {
		m[p.ID] = p
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	s.access.principals = m
}

// Revoke makes the bucket's policy deny signed reads of keys under each prefix
// with 403 AccessDenied, whatever the ACL says and whether the key exists or
// not; the prefix "" denies everything. It replaces what was revoked before.
func (s *Server) Revoke(prefixes ...string) {
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	s.access.denied = slices.Clone(prefixes)
}

// Restore gives back what Revoke took.
func (s *Server) Restore() { s.Revoke() }

// verify checks the signature of a signed request, as laid down in COS's
// "Request signature" page (product/436/7778), and then the policy. A request
// without an Authorization header passes: what a stranger may read, the ACL says.
func (x *access) verify(q *Request) *refusal {
	if !q.Signed {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	f, ok := fields(q.http.Header.Get("Authorization"))
	if !ok || f["q-sign-algorithm"] != "sha1" {
		return errSignature
	}
	p, ok := x.principals[f["q-ak"]]
	if !ok || p.Token != q.http.Header.Get("x-cos-security-token") {
		return errInvalidKeyID
	}
	if !hmac.Equal([]byte(signature(p.Key, q, f)), []byte(f["q-signature"])) {
		return errSignature
	}
	if now := time.Now().Unix(); !within(f["q-sign-time"], now) || !within(f["q-key-time"], now) {
		return errExpired
	}
	for _, prefix := range x.denied {
		if strings.HasPrefix(q.Key, prefix) {
			return errAccessDenied
		}
	}
	return nil
}

// fields splits an Authorization header and reports whether all seven are there.
func fields(authorization string) (map[string]string, bool) {
	f := map[string]string{}
	for pair := range strings.SplitSeq(authorization, "&") {
		name, value, _ := strings.Cut(pair, "=")
		f[name] = value
	}
	for _, name := range []string{"q-sign-algorithm", "q-ak", "q-sign-time", "q-key-time",
		"q-header-list", "q-url-param-list", "q-signature"} {
		if _, ok := f[name]; !ok {
			return nil, false
		}
	}
	return f, true
}

// signature is what the holder of secret would have sent for q with the header
// and parameter lists of f.
func signature(secret string, q *Request, f map[string]string) string {
	header := q.http.Header.Clone()
	header.Set("Host", q.http.Host) // net/http keeps these two elsewhere
	if n := q.http.ContentLength; n > 0 {
		header.Set("Content-Length", strconv.FormatInt(n, 10))
	}
	headers := canonical(f["q-header-list"], lowered(header))
	params := canonical(f["q-url-param-list"], lowered(q.http.URL.Query()))
	text := fmt.Sprintf("%s\n/%s\n%s\n%s\n", strings.ToLower(q.Method), q.Key, params, headers)
	sum := sha1.Sum([]byte(text))
	signKey := hmacHex(secret, f["q-key-time"])
	return hmacHex(signKey, fmt.Sprintf("sha1\n%s\n%x\n", f["q-key-time"], sum))
}

// canonical is "name=value&…" of the listed names with their encoded values. A
// name is listed once for each of its values.
func canonical(list string, values map[string][]string) string {
	var pairs []string
	for _, name := range slices.Compact(strings.Split(list, ";")) {
		for _, v := range values[name] {
			pairs = append(pairs, name+"="+encode(v))
		}
	}
	return strings.Join(pairs, "&")
}

// lowered maps encoded lower-case names to their sorted values.
func lowered[M http.Header | url.Values](in M) map[string][]string {
	out := make(map[string][]string, len(in))
	for name, values := range in {
		name = strings.ToLower(encode(name))
		out[name] = append(out[name], values...)
		slices.Sort(out[name])
	}
	return out
}

// encode percent-encodes all but RFC 3986's unreserved characters.
func encode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func hmacHex(key, text string) string {
	h := hmac.New(sha1.New, []byte(key))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// within reports whether now lies in "start;end", in seconds since 1970. COS lets
// the start be a little ahead of its clock.
func within(span string, now int64) bool {
	const skew = 300
	from, to, _ := strings.Cut(span, ";")
	start, err1 := strconv.ParseInt(from, 10, 64)
	end, err2 := strconv.ParseInt(to, 10, 64)
	return err1 == nil && err2 == nil && start-skew <= now && now <= end
}
