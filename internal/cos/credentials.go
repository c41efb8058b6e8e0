package cos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	sdk "github.com/tencentyun/cos-go-sdk-v5"
)

// checkEvery is how often a credentials file is looked at, at most.
const checkEvery = 2 * time.Second

// signatureLife is how long a signature holds; it must outlast a slow request.
const signatureLife = time.Hour

// secret is one version of the credentials. It is never printed.
type secret struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	Token string `json:"token"`
}

// credentials follow a file: it is read again when what it names has changed.
// os.Stat follows links, so both an atomic rename and the swapped links of a
// Kubernetes secret are seen. A new file that cannot be used is reported once,
// and the secret before it stays in use. Safe for concurrent use.
type credentials struct {
	path   string
	report func(error)

	mu      sync.Mutex
	secret  secret
	seen    os.FileInfo
	checked time.Time
	broken  string // what was reported last, so as not to repeat it
}

func openCredentials(path string, report func(error)) (*credentials, error) {
	if report == nil {
		report = func(error) {}
	}
	c := &credentials{path: path, report: report, checked: time.Now()}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// current returns the secret to sign with. A reader may wait for another's look
// at the file, which is local.
func (c *credentials) current() secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= checkEvery {
		c.checked = now
		err := c.load()
		if err != nil && err.Error() != c.broken {
			c.report(err)
		}
		c.broken = ""
		if err != nil {
			c.broken = err.Error()
		}
	}
	return c.secret
}

// load reads the file if it is not the one seen last. It remembers a file only
// once it could be used, so that one caught half-written is read again.
func (c *credentials) load() error {
	info, err := os.Stat(c.path)
	if err != nil {
		return fmt.Errorf("read COS credentials: %w", err)
	}
	if c.seen != nil && os.SameFile(info, c.seen) && info.Size() == c.seen.Size() && info.ModTime().Equal(c.seen.ModTime()) {
		return nil
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		return fmt.Errorf("read COS credentials: %w", err)
	}
	var s secret
	if json.Unmarshal(data, &s) != nil { // its error could quote the secret
		return fmt.Errorf("read COS credentials %s: not JSON of the form {\"id\", \"key\", \"token\"}", c.path)
	}
	if s.ID == "" || s.Key == "" {
		return fmt.Errorf("read COS credentials %s: id and key must both be set", c.path)
	}
	if !headerSafe(s.ID) || !headerSafe(s.Token) {
		return fmt.Errorf("read COS credentials %s: id or token holds characters that no credential has", c.path)
	}
	c.secret, c.seen = s, info
	return nil
}

// headerSafe reports whether s can stand in a header, whose error would quote it.
func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// signing signs each request. The SDK's own transport takes id, key and token in
// three steps, which a change in between would mix up.
type signing struct {
	credentials *credentials
	next        http.RoundTripper
}

func (t signing) RoundTrip(req *http.Request) (*http.Response, error) {
	s := t.credentials.current()
	req = req.Clone(req.Context())
	sdk.AddAuthorizationHeader(s.ID, s.Key, s.Token, req, sdk.NewAuthTime(signatureLife))
	return t.next.RoundTrip(req)
}
