package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// visit asks the edge for a key, as a visitor would.
func visit(t *testing.T, s *localcloud.Site, key string) (status int) {
	t.Helper()
	target := url.URL{Path: "/" + key}
	resp, err := http.Get(s.EdgeURL + target.EscapedPath())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// signed makes a configuration read the site's COS with a signature.
func signed(t *testing.T, s *localcloud.Site, yaml string) string {
	t.Helper()
	s.COS.SetPrincipals(cosd.Principal{ID: "AKIDlocal", Key: "cos-secret"})
	file := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(file, []byte(`{"id":"AKIDlocal","key":"cos-secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(yaml, "read: anonymous", "read: signed\n      credentials_file: "+file, 1)
}

// TestPrivateObjectsStayPrivate is rule 4: visitors ask for objects that strangers
// may not read in COS, so that S3 logs misses of them. They never appear in S3,
// also when nothing was asked for before, and what is public is copied.
func TestPrivateObjectsStayPrivate(t *testing.T) {
	const each = 12
	for _, test := range []struct {
		name            string
		bucket          bool // strangers may read what has no ACL of its own
		private, public cosd.ACL
		signed          bool
		lines           []string // of the route
		end             string   // of a request for a private object
		logged          bool     // whether a visit makes one
	}{
		{name: "private objects of a public bucket", bucket: true, private: cosd.Private, end: "denied", logged: true},
		{name: "public objects of a private bucket", public: cosd.PublicRead, lines: []string{"  reference: img/0000"}, end: "denied", logged: true},
		{name: "read with a signature, but not included", signed: true, lines: []string{`include: ["img/**"]`}, end: "filtered"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := calmSite(t, localcloud.Config{})
			s.COS.Change(func(b *cosd.Behaviour) { b.PublicRead = test.bucket })
			right := map[string][]version{} // of the public ones
			var private []string
			for i := range each {
				key := fmt.Sprintf("private/%04d", i)
				private = append(private, key)
				s.COS.Put(key, body(key), cosd.Attributes{ACL: test.private})
				key = fmt.Sprintf("img/%04d", i)
				right[key] = []version{{body(key), cosd.Attributes{ContentType: "image/jpeg", ACL: test.public}}}
				s.COS.Put(key, body(key), right[key][0].at)
			}
			public := slices.Sorted(maps.Keys(right))
			w := watch(t, s, right)
			yaml := s.YAML([]localcloud.Route{{Lines: test.lines}}, append(slices.Clone(scaled), "parse: {recent: 1ms}")...)
			if test.signed {
				yaml = signed(t, s, yaml)
			}
			p := ferry.Start(t, s, ferry.Options{YAML: yaml})

			visitPrivate := func() {
				for _, key := range private {
					if status := visit(t, s, key); status != http.StatusForbidden {
						t.Errorf("a visitor of %q is answered %d", key, status)
					}
				}
			}
			visitPrivate()
			s.Cloud.FlushLogs()
			settled(t, s, localcloud.LogsQueue, time.Minute)
			want := map[string]int{}
			if test.logged {
				want[test.end] += each
			}
			ended(t, p, localcloud.SyncQueue, nil, want)

			visitPrivate()
			for _, key := range public {
				visit(t, s, key)
			}
			s.Cloud.FlushLogs()
			ask(t, s, localcloud.SyncQueue, localcloud.Bucket, private) // by hand, past the parser's filter
			settled(t, s, localcloud.LogsQueue, time.Minute)
			want[test.end] += each + want[test.end]
			want[copiedEnd] = each
			ended(t, p, localcloud.SyncQueue, nil, want)

			if seen := slices.Sorted(maps.Keys(w.saw(t))); !slices.Equal(seen, public) {
				t.Errorf("in S3 stand %q", seen)
			}
			for _, e := range s.COS.Entries() {
				if e.Signed && strings.HasPrefix(e.Key, "private/") {
					t.Errorf("%q was read with our signature", e.Key)
				}
			}
			noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
		})
	}
}

// TestSignedSourceNamesWhatMayBecomePublic is the other half of rule 4: neither the
// service nor check takes a signed source that does not say which keys may be read,
// or says all of them without saying so. The exit code is 2, and the line is named.
func TestSignedSourceNamesWhatMayBecomePublic(t *testing.T) {
	t.Parallel()
	s := calmSite(t, localcloud.Config{})
	for name, test := range map[string]struct {
		lines []string
		at    string // the text of the line that is named; "" when the configuration is good
	}{
		"no include":              {nil, "  - bucket: "},
		"empty include":           {[]string{"include: []"}, "    include: []"},
		"everything":              {[]string{`include: ["**"]`}, `    include: ["**"]`},
		"everything, in a list":   {[]string{`include: ["img/**", "**/*"]`}, `    include: [`},
		"everything, in braces":   {[]string{`include: ["{img/*,**}"]`}, `    include: [`},
		"everything but a little": {[]string{`include: ["**"]`, `exclude: ["tmp/**"]`}, `    include: [`},
		"everything, said so":     {[]string{"  all_public: true", `include: ["**"]`}, ""},
		"some":                    {[]string{`include: ["img/**"]`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			yaml := signed(t, s, s.YAML([]localcloud.Route{{Lines: test.lines}}, scaled...))
			if test.at == "" {
				out, err := objectferry(t, s, "check", yaml)
				if err != nil {
					t.Errorf("check: %v\n%s", err, out)
				}
				return
			}
			line := strings.Count(yaml[:strings.Index(yaml, test.at)], "\n") + 1
			for _, command := range []string{"run", "check"} {
				out, err := objectferry(t, s, command, yaml)
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 2 {
					t.Errorf("%s: %v, want exit code 2", command, err)
				}
				if want := fmt.Sprintf("objectferry.yaml:%d: routes[0].include: ", line); !strings.Contains(out, want) {
					t.Errorf("%s does not name %q:\n%s", command, want, out)
				}
			}
		})
	}
	if n := s.COS.Counts().Requests; n > 0 {
		t.Errorf("%d requests were made to the source", n)
	}
}

// objectferry runs a command of the binary to its end, which must come by itself.
func objectferry(t *testing.T, s *localcloud.Site, command, yaml string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, ferry.Binary(t), command, "--config", ferry.Config(t, yaml))
	c.Env = ferry.Environ(s, nil)
	out, err := c.CombinedOutput()
	return string(out), err
}
