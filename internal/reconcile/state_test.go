package reconcile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
)

// TestRunThatWasCutAnywhereGoesOn: whatever call a run does not survive, the next
// one ends with the totals of a run that was not cut, and has requested each
// missing key at least once.
func TestRunThatWasCutAnywhereGoesOn(t *testing.T) {
	for name, c := range map[string]Config{
		"listed": {Request: true}, "asked": {Request: true, Deep: true}, "held": {Request: true, AtMost: 5000}, "named": {Request: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "img/**")
			w.src.size, w.dst.size = 400, 300
			missing := w.many(2*pageSize+7, func(i int) bool { return i%3 > 0 })
			w.dst.put("img/\xff", 1, "e")
			if name == "named" {
				keys := slices.Sorted(func(yield func(string) bool) {
					for key := range w.src.objects {
						if !yield(key) {
							return
						}
					}
				})
				c.Keys, c.KeysID = list(keys...), "keys"
			}
			calls := 0
			w.before = func(string) error { calls++; return nil }
			want, err := w.run(c)
			if err != nil {
				t.Fatal(err)
			}
			all := calls
			for cut := 1; cut <= all; cut += 1 + all/15 {
				c.State = filepath.Join(t.TempDir(), "state")
				w.requested, calls = nil, 0
				w.before = func(string) error {
					if calls++; calls >= cut && calls <= cut+20 { // a process that is killed calls nothing more
						return errKilled
					}
					return nil
				}
				if _, err := w.run(c); !errors.Is(err, errKilled) {
					t.Fatalf("cut at call %d: %v", cut, err)
				}
				w.before = nil
				got, err := w.run(c)
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(w.requested)
				if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(missing, slices.Compact(w.requested)) {
					t.Errorf("cut at call %d: %d of %d requested (-want +got):\n%s", cut, len(slices.Compact(w.requested)), len(missing), diff)
				}
				if _, err := os.Stat(c.State); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("cut at call %d: the state file is left: %v", cut, err)
				}
			}
		})
	}
}

// TestResumedRunDoesNotBeginAnew: what is done is neither listed nor asked nor
// told once more.
func TestResumedRunDoesNotBeginAnew(t *testing.T) {
	w := newWorld(t, "img/**")
	w.src.size = 100
	w.many(3*pageSize, func(int) bool { return false })
	c := Config{State: filepath.Join(t.TempDir(), "state")}
	pages := 0
	w.before = func(name string) error {
		if name == "report" {
			if pages++; pages == 3 {
				return errKilled
			}
		}
		return nil
	}
	if _, err := w.run(c); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.told, w.before = nil, nil
	totals, err := w.run(c)
	if err != nil || totals.Keys != 3*pageSize || len(w.told) != pageSize {
		t.Errorf("%+v, %v, %d rows told", totals, err, len(w.told))
	}
}

func TestStateOfAnotherComparisonIsRefused(t *testing.T) {
	w := newWorld(t, "img/**")
	w.many(pageSize+50, func(int) bool { return false })
	c := Config{Prefix: "img/", State: filepath.Join(t.TempDir(), "state")}
	w.before = func(name string) error {
		if name == "list source" && len(w.told) == 0 {
			return nil
		}
		if name == "list source" {
			return errKilled
		}
		return nil
	}
	if _, err := w.run(c); err == nil {
		t.Fatal("it was not cut")
	}
	written, err := os.ReadFile(c.State)
	if err != nil {
		t.Fatal(err)
	}
	other, err := route.New([]config.Route{{Bucket: "media", Source: config.Source{Read: config.ReadAnonymous}, Include: []string{"img/**"}, Exclude: []string{"**/private/**"}}})
	if err != nil {
		t.Fatal(err)
	}
	bucket := w.route.Route
	bucket.Bucket = "models"
	models, err := route.New([]config.Route{bucket})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		route  *route.Route
		change func(*Config)
	}{
		"prefix":  {w.route, func(c *Config) { c.Prefix = "img/0" }},
		"deep":    {w.route, func(c *Config) { c.Deep = true }},
		"request": {w.route, func(c *Config) { c.Request = true }},
		"limit":   {w.route, func(c *Config) { c.AtMost = 100 }},
		"size":    {w.route, func(c *Config) { c.MaxSize++ }},
		"keys":    {w.route, func(c *Config) { c.Keys, c.KeysID = list("a"), "id" }},
		"bucket":  {models.Routes()[0], func(*Config) {}},
		"route":   {other.Routes()[0], func(*Config) {}},
	} {
		c := c
		c.MaxSize = 1000
		tt.change(&c)
		if _, err := New(Deps{Route: tt.route}, c); !errors.Is(err, errForeignState) || !strings.Contains(err.Error(), c.State) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"cut": string(written[:len(written)/2]), "empty": "", "another version": strings.Replace(string(written), `"v":1`, `"v":2`, 1)} {
		if err := os.WriteFile(c.State, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Deps{Route: w.route}, c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMoreThanAtMostAreNone(t *testing.T) {
	for _, n := range []int{99, 100, 101, 3 * pageSize} {
		w := newWorld(t, "img/**")
		w.many(n, func(int) bool { return false })
		totals, err := w.run(Config{Request: true, AtMost: 100})
		if n <= 100 && (err != nil || len(w.requested) != n || totals.Requested != int64(n)) {
			t.Errorf("%d missing: %v, %d requested", n, err, len(w.requested))
		}
		if n > 100 && (!errors.Is(err, ErrTooMany) || len(w.requested) > 0 || totals.Classes[Missing] != int64(n)) {
			t.Errorf("%d missing: %v, %d requested, %+v", n, err, len(w.requested), totals)
		}
	}
}

func TestRequestsKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "img/**")
		w.many(2*pageSize, func(int) bool { return false })
		start := time.Now()
		if _, err := w.run(Config{Request: true, Rate: 50}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 19*time.Second || d > 25*time.Second {
			t.Errorf("%d requests at 50 a second took %s", len(w.requested), d)
		}
	})
}

func TestOnlyTheMissingAreRequested(t *testing.T) {
	w := newWorld(t, "img/**")
	fill(w)
	if _, err := w.run(Config{Request: true, Deep: true}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.requested)
	if diff := cmp.Diff([]string{"img/missing", "img/restored", "img/\xff\n"}, w.requested); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	w.before = func(name string) error {
		if name == "send" {
			return failure(object.Queue, object.Unavailable)
		}
		return nil
	}
	if _, err := w.run(Config{Request: true, Deep: true}); object.ClassOf(err) != object.Unavailable {
		t.Errorf("a queue that takes nothing: %v", err)
	}
}
