package deploy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// front stands before moto and mends its one mistake that is in the way: moto
// takes the escapes of a query apart before it looks at the signature, so that no
// list of a prefix with a slash in it is let in. Such a request is signed again,
// as moto reads it, with the secret that belongs to its key. All else passes as
// it is.
type front struct {
	mu      sync.Mutex
	secrets map[string]string // by access key
}

// serve returns where the front serves; it does for as long as this process runs.
func (f *front) serve(moto *url.URL) string {
	return httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(moto)
		r.Out.Host = r.In.Host // it is signed
		if strings.Contains(r.In.URL.RawQuery, "%2F") {
			f.sign(r.Out)
		}
	}}).URL
}

// know makes a secret known.
func (f *front) know(key, secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secrets[key] = secret
}

// sign replaces the signature of r. A wrong one is replaced by a right one: who
// asks is judged, how well they sign is not what is tested here.
func (f *front) sign(r *http.Request) {
	authorization := r.Header.Get("Authorization")
	credential := between(authorization, "Credential=", ",")
	scope := strings.Split(credential, "/") // key, date, region, service, aws4_request
	signed := between(authorization, "SignedHeaders=", ",")
	if len(scope) != 5 {
		return
	}
	query := strings.ReplaceAll(r.URL.RawQuery, "%2F", "/")
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + query + "\n"
	for name := range strings.SplitSeq(signed, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + strings.TrimSpace(value) + "\n"
	}
	canonical += "\n" + signed + "\n" + r.Header.Get("X-Amz-Content-Sha256")
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])

	f.mu.Lock()
	key := []byte("AWS4" + f.secrets[scope[0]])
	f.mu.Unlock()
	for _, part := range append(scope[1:], text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	at := strings.Index(authorization, "Signature=")
	r.Header.Set("Authorization", authorization[:at]+"Signature="+hex.EncodeToString(key))
}

// between is what stands in text after a word and before another.
func between(text, after, before string) string {
	_, rest, _ := strings.Cut(text, after)
	found, _, _ := strings.Cut(rest, before)
	return found
}
