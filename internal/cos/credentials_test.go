package cos

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// due makes the next request look at the file.
func due(c *credentials) { c.checked = time.Now().Add(-checkEvery) }

func TestSignedRequestCarriesTheCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cos.json")
	write(t, path, `{"id": "AKID", "key": "SECRET", "token": "TOKEN"}`)
	s := serve(t, always(reply(five, "hello")))
	source, err := New(Config{URL: s.URL, Signed: true, CredentialsFile: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(source, "k", object.Range{Length: 5}, `"e"`); err != nil {
		t.Fatal(err)
	}
	h := s.asked()[0].Header
	auth := h.Get("Authorization")
	if !strings.Contains(auth, "q-ak=AKID&") || !strings.Contains(auth, "q-header-list=host;if-match;range;x-cos-security-token") {
		t.Errorf("Authorization %q", auth)
	}
	if h.Get("X-Cos-Security-Token") != "TOKEN" || strings.Contains(auth, "SECRET") {
		t.Errorf("token %q, Authorization %q", h.Get("X-Cos-Security-Token"), auth)
	}
}

func TestChangedCredentialsAreTakenUp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cos.json")
	write(t, path, `{"id": "ONE", "key": "k"}`)
	c, err := openCredentials(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.current().ID; got != "ONE" {
		t.Fatalf("id %s, want ONE", got)
	}
	write(t, path+".new", `{"id": "TWO", "key": "k"}`) // the same size
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if got := c.current().ID; got != "ONE" {
		t.Errorf("id %s before the file was due, want ONE", got)
	}
	due(c)
	if got := c.current().ID; got != "TWO" {
		t.Errorf("id %s after a rename, want TWO", got)
	}
}

// A Kubernetes secret is a link to ..data/cos.json, where ..data is a link that
// is swapped.
func TestSwappedLinksAreSeen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ONE", "TWO"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "cos.json"), `{"id": "`+name+`", "key": "k"}`)
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, "tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("ONE", "..data")
	link("..data/cos.json", "cos.json")
	c, err := openCredentials(filepath.Join(dir, "cos.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	link("TWO", "..data")
	due(c)
	if got := c.current().ID; got != "TWO" {
		t.Errorf("id %s after the links were swapped, want TWO", got)
	}
}

func TestBadNewCredentialsAreReportedOnceAndTheOldOnesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cos.json")
	write(t, path, `{"id": "ONE", "key": "HUSH"}`)
	var reports []string
	c, err := openCredentials(path, func(err error) { reports = append(reports, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"id": "TWO", "key": "HUSH`, `{"id": "TWO"}`, `["HUSH"]`, "{\"id\": \"HUSH\\nX: y\", \"key\": \"HUSH\"}"} {
		write(t, path, bad)
		reports = nil
		for range 3 {
			due(c)
			if got := c.current().ID; got != "ONE" {
				t.Errorf("%s: id %s, want ONE", bad, got)
			}
		}
		if len(reports) != 1 || strings.Contains(reports[0], "HUSH") {
			t.Errorf("%s: reports %q, want one without the secret", bad, reports)
		}
	}
	os.Remove(path)
	due(c)
	if got := c.current().ID; got != "ONE" {
		t.Errorf("id %s after the file went, want ONE", got)
	}
	write(t, path, `{"id": "TWO", "key": "HUSH"}`)
	due(c)
	if got := c.current().ID; got != "TWO" {
		t.Errorf("id %s after a good file came, want TWO", got)
	}
}

func TestHalfAConfigurationIsRefused(t *testing.T) {
	good := filepath.Join(t.TempDir(), "cos.json")
	write(t, good, `{"id": "ONE", "key": "k"}`)
	bad := filepath.Join(t.TempDir(), "cos.json")
	write(t, bad, `{"id": "ONE"}`)
	const own = "https://media-1250000000.cos.ap-shanghai.myqcloud.com"
	tests := []struct {
		name string
		cfg  Config
		ok   bool
	}{
		{"anonymous", Config{URL: own}, true},
		{"a trailing slash", Config{URL: own + "/"}, true},
		{"signed", Config{URL: own, Signed: true, CredentialsFile: good}, true},
		{"accelerated", Config{URL: "https://media-1250000000.cos.accelerate.myqcloud.com"}, true},
		{"internal, new domain", Config{URL: "https://media-1250000000.cos-internal.ap-shanghai.tencentcos.cn"}, true},
		{"custom", Config{URL: "https://assets.example.com", CustomDomain: true}, true},
		{"this machine", Config{URL: "http://127.0.0.1:9000"}, true},
		{"signed without a file", Config{URL: own, Signed: true}, false},
		{"signed with half a file", Config{URL: own, Signed: true, CredentialsFile: bad}, false},
		{"signed with no such file", Config{URL: own, Signed: true, CredentialsFile: bad + "x"}, false},
		{"anonymous with a file", Config{URL: own, CredentialsFile: good}, false},
		{"plain http", Config{URL: "http://media-1250000000.cos.ap-shanghai.myqcloud.com"}, false},
		{"plain http to a custom domain", Config{URL: "http://assets.example.com", CustomDomain: true}, false},
		{"another host", Config{URL: "https://assets.example.com"}, false},
		{"a look-alike", Config{URL: "https://media-1250000000.cos.ap-shanghai.myqcloud.com.example.com"}, false},
		{"a path", Config{URL: own + "/dir"}, false},
		{"a query", Config{URL: own + "?x=1"}, false},
		{"a password", Config{URL: "https://u:HUSH@media-1250000000.cos.ap-shanghai.myqcloud.com"}, false},
		{"an unreadable one with a password", Config{URL: "https://u:HUSH@%zz"}, false},
		{"nothing", Config{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg, http.DefaultTransport)
			if (err == nil) != tt.ok {
				t.Errorf("got %v, want ok %v", err, tt.ok)
			}
			if err != nil && strings.Contains(err.Error(), "HUSH") {
				t.Errorf("a secret in %q", err)
			}
		})
	}
}
