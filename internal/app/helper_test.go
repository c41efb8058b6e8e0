package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// scaled are times of a configuration: probes every 100 ms instead of 5 s, long
// polls of 1 s instead of 20 s.
const scaled = `
retry: {min: 1s, max: 2s, wait: 1s}
guard: {probe_min: 100ms, probe_max: 1s, timeout: 1s}
`

// newSite starts a cloud and points the SDK at it. It is closed at the end of the
// test.
func newSite(t *testing.T, c cosd.Config) *localcloud.Site {
	t.Helper()
	c.Behaviour.PublicRead = len(c.Principals) == 0
	s, err := localcloud.Start(localcloud.Config{AWS: strictaws.Config{LogInterval: -1}, COS: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for name, value := range s.Environ() {
		t.Setenv(name, value)
	}
	return s
}

// load reads a configuration as the process does.
func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objectferry.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// newApp wires a process with a role; the admin server is off unless yaml has one.
func newApp(t *testing.T, role Role, yaml string, queues ...string) *App {
	t.Helper()
	cfg := load(t, yaml+scaled)
	if cfg.Admin.Listen == config.Default().Admin.Listen {
		cfg.Admin.Listen = ""
	}
	a, err := New(t.Context(), cfg, Options{Role: role, Version: "test", Queues: queues}, telemetry.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// startApp starts a process; it is stopped, without waiting for work, at the end
// of the test.
func startApp(t *testing.T, role Role, yaml string, queues ...string) *App {
	t.Helper()
	a := newApp(t, role, yaml, queues...)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		if err := a.Stop(now); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return a
}

// ask puts a sync request into a queue.
func ask(t *testing.T, s *localcloud.Site, queue, bucket, key string) {
	t.Helper()
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: bucket, Key: key, Seen: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cloud.Send(queue, body, nil); err != nil {
		t.Fatal(err)
	}
}

func inS3(s *localcloud.Site, bucket, key string) func() bool {
	return func() bool { _, ok := s.Cloud.Object(bucket, key); return ok }
}

// get asks the admin server's handler for a page.
func get(a *App, path string) (status int, body string) {
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
