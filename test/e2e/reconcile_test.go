package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// compared is what `objectferry reconcile --json` printed.
type compared struct {
	rows   map[string]string // class by key
	totals totals
	stderr string
	code   int
}

type totals struct {
	Keys      int
	Classes   map[string]int
	Requested int
}

// reconcile runs the command on the site.
func reconcile(t *testing.T, s *localcloud.Site, config string, args ...string) compared {
	t.Helper()
	cmd := exec.Command(ferry.Binary(t), append([]string{"reconcile", "--config", config, "--bucket", localcloud.Bucket, "--json"}, args...)...)
	cmd.Env = ferry.Environ(s, nil)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	c := compared{rows: map[string]string{}, stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(stdout.String()) {
		var row struct {
			Class, Key string
			totals
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if row.Class == "" {
			c.totals = row.totals
			continue
		}
		key, err := syncrequest.UnescapeKey(row.Key)
		if err != nil {
			t.Fatal(err)
		}
		if before := c.rows[key]; before != "" {
			t.Errorf("key %q is told twice, as %s and %s", key, before, row.Class)
		}
		c.rows[key] = row.Class
	}
	return c
}

// requested are the keys that wait on the sync queue, sorted.
func requested(t *testing.T, s *localcloud.Site) []string {
	t.Helper()
	var keys []string
	for _, m := range s.Cloud.Messages(localcloud.SyncQueue) {
		r, err := syncrequest.Decode(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return keys
}

// signed is a cloud with a private source, and a configuration that reads it
// signed and carries img/** but img/private/**.
func signed(t *testing.T) (*localcloud.Site, string) {
	t.Helper()
	c := localcloud.Config{}
	c.COS.Principals = []cosd.Principal{{ID: "AKID", Key: "SECRET"}}
	s := site(t, c)
	s.COS.Change(func(b *cosd.Behaviour) { b.PublicRead = false })
	credentials := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(credentials, []byte(`{"id": "AKID", "key": "SECRET"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	route := localcloud.Route{Lines: []string{"  read: signed", "  credentials_file: " + credentials, `include: ["img/**"]`, `exclude: ["img/private/**"]`}}
	return s, s.YAML([]localcloud.Route{route}, "retry: {wait: 1s}", "copy: {max_size: 32MiB}")
}

// TestReconcileFindsEachClassAndHealsTheMissing compares, requests what is missing,
// has the service carry it, and compares again.
func TestReconcileFindsEachClassAndHealsTheMissing(t *testing.T) {
	s, yaml := signed(t)
	config := ferry.Config(t, yaml)
	missing := []string{"img/a", "img//b", "img/c d+e%25", "img/测试", "img/\x01\x1b[31m\n", "img/z/"}
	for _, key := range missing {
		s.COS.Put(key, []byte("body of "+key), cosd.Attributes{})
	}
	overseas := func(key, body string) {
		if err := s.Cloud.PutObject(localcloud.Bucket, key, []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.COS.Put("img/same", []byte("same"), cosd.Attributes{})
	overseas("img/same", "same")
	s.COS.Put("img/longer", []byte("longer"), cosd.Attributes{})
	overseas("img/longer", "long")
	s.COS.Put("img/parts", []byte("parts"), cosd.Attributes{ETag: `"0123456789abcdef0123456789abcdef-2"`})
	overseas("img/parts", "parts")
	overseas("img/theirs", "theirs")
	s.COS.Put("img/archived", []byte("x"), cosd.Attributes{StorageClass: "ARCHIVE"})
	s.COS.Put("img/restored", []byte("x"), cosd.Attributes{StorageClass: "DEEP_ARCHIVE", Restored: true})
	s.COS.Put("img/denied", []byte("x"), cosd.Attributes{})
	s.COS.Revoke("img/denied")
	s.COS.PutSynthetic("img/large", 33<<20, 1, cosd.Attributes{})
	s.COS.Put("img/private/a", []byte("x"), cosd.Attributes{})
	s.COS.Put("other/a", []byte("x"), cosd.Attributes{})

	listed := map[string]string{"img/longer": "different", "img/parts": "unsure", "img/theirs": "overseas",
		"img/archived": "archived", "img/restored": "archived", "img/denied": "missing", "img/large": "unfit"}
	for _, key := range missing {
		listed[key] = "missing"
	}
	got := reconcile(t, s, config)
	if diff := cmp.Diff(listed, got.rows); diff != "" || got.code != 0 {
		t.Errorf("by the listings: exit %d, %s (-want +got):\n%s", got.code, got.stderr, diff)
	}
	want := totals{Keys: 16, Classes: map[string]int{"same": 1, "missing": 7, "different": 1, "unsure": 1, "overseas": 1, "archived": 2, "unfit": 1, "filtered": 2}}
	if diff := cmp.Diff(want, got.totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}

	deep := maps.Clone(listed)
	deep["img/restored"], deep["img/denied"] = "missing", "denied"
	missing = append(missing, "img/restored")
	got = reconcile(t, s, config, "--deep", "--request")
	if diff := cmp.Diff(deep, got.rows); diff != "" || got.code != 0 || got.totals.Requested != len(missing) {
		t.Errorf("asked: exit %d, %d requested, %s (-want +got):\n%s", got.code, got.totals.Requested, got.stderr, diff)
	}
	slices.Sort(missing)
	if diff := cmp.Diff(missing, requested(t, s)); diff != "" {
		t.Errorf("requested (-missing +requested):\n%s", diff)
	}

	p := ferry.Start(t, s, ferry.Options{YAML: yaml})
	for _, key := range missing {
		ferry.Until(t, 30*time.Second, fmt.Sprintf("%q is overseas", key), func() bool {
			o, ok := s.Cloud.Object(localcloud.Bucket, key)
			return ok && (string(o.Body) == "body of "+key || key == "img/restored")
		})
		delete(deep, key)
	}
	if err := p.Stop(30 * time.Second); err != nil {
		t.Errorf("drain: %v", err)
	}
	if got = reconcile(t, s, config, "--deep"); got.totals.Classes["missing"] != 0 || got.totals.Classes["same"] != 1+len(missing) {
		t.Errorf("afterwards: %+v", got.totals)
	}
	if diff := cmp.Diff(deep, got.rows); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}
