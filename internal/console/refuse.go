package console

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// policy lets a page load what this server gives, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm is how large a request's body may be, in bytes.
const maxForm = 16 << 10

// refuse stands before every page. A browser that runs a stranger's page can send
// requests here too: under a name of the stranger's that resolves to this machine
// (so the host must be one of ours), or by a form (so the origin must be ours,
// and the form must hold the token, which a foreign page cannot read).
func (c *Console) refuse(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		// Not no-referrer: a form would then be sent with the origin "null".
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		refused := func(why string) {
			c.deps.Log.Warn().Str("why", why).Str("method", r.Method).Str("path", r.URL.Path).Str("host", r.Host).
				Str("origin", r.Header.Get("Origin")).Str("remote", r.RemoteAddr).Msg("request refused")
			http.Error(w, "refused: "+why, http.StatusForbidden)
		}
		if !c.known(r.Host) {
			refused("this host name is not one of the console's; see --host")
			return
		}
		if err := sameOrigin.Check(r); err != nil {
			refused("the request comes from another origin")
			return
		}
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(c.token)) != 1 {
				refused("the form is not of this console, or of one that was started before; load the page again")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// known reports whether host, with or without a port, is a name of ours. The port
// does not matter: it may be forwarded.
func (c *Console) known(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(c.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}
