package route

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
)

const sharedQueue = "https://sqs.us-west-2.amazonaws.com/111122223333/sync"

func signed(bucket string, include ...string) config.Route {
	return config.Route{
		Bucket:  bucket,
		Mode:    config.ModeCopy,
		Source:  config.Source{Read: config.ReadSigned},
		Include: include,
	}
}

func only(t *testing.T, c config.Route) *Route {
	t.Helper()
	table, err := New([]config.Route{c})
	if err != nil {
		t.Fatal(err)
	}
	return table.Routes()[0]
}

func TestLookup(t *testing.T) {
	table, err := New([]config.Route{signed("media", "a/**"), signed("models", "b/**")})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := table.Lookup("models"); !ok || r.Bucket != "models" {
		t.Errorf("Lookup(models) = %v, %t", r, ok)
	}
	if r, ok := table.Lookup("Models"); ok {
		t.Errorf("Lookup(Models) = %v, want none", r)
	}
	var order []string
	for _, r := range table.Routes() {
		order = append(order, r.Bucket)
	}
	if diff := cmp.Diff([]string{"media", "models"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestNewRefuses(t *testing.T) {
	withExclude := signed("media", "a/**")
	withExclude.Exclude = []string{"b/[c"}
	for name, tt := range map[string]struct {
		routes []config.Route
		says   string
	}{
		"two routes for a bucket": {[]config.Route{signed("media", "a/**"), signed("media", "b/**")}, "has a route already"},
		"malformed include":       {[]config.Route{signed("media", "a/{b")}, `include: glob "a/{b"`},
		"malformed exclude":       {[]config.Route{withExclude}, `exclude: glob "b/[c"`},
	} {
		if _, err := New(tt.routes); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, tt.says)
		}
	}
}

func TestExcludeWins(t *testing.T) {
	c := signed("media", "model/**", "img/**")
	c.Exclude = []string{"model/tmp/**", "**/*.secret"}
	r := only(t, c)
	for key, want := range map[string]bool{
		"model/a.glb":       true,
		"img/\xff\n.jpg":    true,
		"img//a":            true,
		"model/tmp/a.glb":   false,
		"model/tmp":         false,
		"img/a.secret":      false,
		"other/a.glb":       false,
		"":                  false,
		"/model/a.glb":      false,
		"model/tmpfile.glb": true,
	} {
		if got := r.Carries(key); got != want {
			t.Errorf("Carries(%q) = %t, want %t", key, got, want)
		}
	}
}

// Rule 4: without include only what a stranger may read anyway is carried.
func TestNoIncludeCarriesAllOfAnAnonymousSourceOnly(t *testing.T) {
	c := config.Route{Bucket: "media", Source: config.Source{Read: config.ReadAnonymous}, Exclude: []string{"tmp/**"}}
	for key, want := range map[string]bool{"a": true, "\xff/\n": true, "tmp/a": false} {
		if got := only(t, c).Carries(key); got != want {
			t.Errorf("anonymous: Carries(%q) = %t, want %t", key, got, want)
		}
	}
	for _, read := range []string{config.ReadSigned, ""} {
		c.Source.Read = read
		if only(t, c).Carries("a") {
			t.Errorf("read %q without include carries a key", read)
		}
	}
}

// Rule 4: a path that a server resolves must not lead out of include or into
// exclude.
func TestDotSegmentsDoNotLeaveTheInclude(t *testing.T) {
	c := signed("media", "model/**", "top/*")
	c.Exclude = []string{"model/tmp/**"}
	r := only(t, c)
	for key, want := range map[string]bool{
		"model/../private/a":     false,
		"model/a/../../private":  false,
		"model/./tmp/a":          false,
		"model/x/../tmp/a":       false,
		"model/..":               false,
		"model/../../../private": false,
		"model/a/../b":           false,
		"model/./b":              false,
		"model/q/..//private":    false,
		"model/..b/c":            true,
		"model/a..":              true,
		"model/...":              true,
	} {
		if got := r.Carries(key); got != want {
			t.Errorf("Carries(%q) = %t, want %t", key, got, want)
		}
	}
}

func TestProbeKey(t *testing.T) {
	for want, include := range map[string][]string{
		"model/.objectferry-probe": {"model/**", "img/**"},
		"img/.objectferry-probe":   {"{img,model}/*.jpg"},
		".objectferry-probe":       nil,
		"favicon.ico":              {"favicon.ico"},
		"a/b-.objectferry-probe":   {"a/b-*.jpg"},
	} {
		if got := only(t, signed("media", include...)).ProbeKey(); got != want {
			t.Errorf("ProbeKey() of %q = %q, want %q", include, got, want)
		}
	}
}

func TestQueueAndMode(t *testing.T) {
	c := signed("media", "a/**")
	if r := only(t, c); r.QueueURL(sharedQueue) != sharedQueue || r.Observe() {
		t.Errorf("queue %q, observe %t", r.QueueURL(sharedQueue), r.Observe())
	}
	c.Source.Queue, c.Mode = sharedQueue+"-media", config.ModeObserve
	if r := only(t, c); r.QueueURL(sharedQueue) != sharedQueue+"-media" || !r.Observe() {
		t.Errorf("queue %q, observe %t", r.QueueURL(sharedQueue), r.Observe())
	}
}

func BenchmarkCarries(b *testing.B) {
	c := signed("media", "model/**", "img/**")
	c.Exclude = []string{"model/tmp/**"}
	table, err := New([]config.Route{c})
	if err != nil {
		b.Fatal(err)
	}
	r := table.Routes()[0]
	b.ReportAllocs()
	for b.Loop() {
		r.Carries("img/2026/09/04/a-rather-usual-name-of-an-asset.webp")
	}
}

// On call one asks which glob it was.
func TestDecideNamesWhatDecided(t *testing.T) {
	open, filtered := config.Route{Source: config.Source{Read: config.ReadAnonymous}}, signed("media", "model/**", "img/{a,b}/*")
	filtered.Exclude = []string{"model/tmp/**"}
	for _, tt := range []struct {
		route config.Route
		key   string
		want  Decision
	}{
		{open, "any", Decision{Carries: true, By: ByNoFilter}},
		{filtered, "img/b/x", Decision{Carries: true, By: ByInclude, Glob: "img/{a,b}/*"}},
		{filtered, "model/tmp/x", Decision{By: ByExclude, Glob: "model/tmp/**"}},
		{filtered, "private", Decision{By: ByNoMatch}},
		{filtered, "model/../private", Decision{By: ByDots}},
		{signed("media"), "any", Decision{By: ByNoFilter}},
	} {
		if diff := cmp.Diff(tt.want, only(t, tt.route).Decide(tt.key)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tt.key, diff)
		}
	}
}
