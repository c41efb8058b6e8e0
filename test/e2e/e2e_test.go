// Package e2e runs the real binary on the embedded cloud, from a visitor's
// request to the healed object.
package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) { ferry.Main(m) }

// site starts a cloud whose COS lets everybody read.
func site(t *testing.T, c localcloud.Config) *localcloud.Site {
	t.Helper()
	c.COS.Behaviour.PublicRead = true
	c.AWS.LogInterval = time.Hour // logs come when a test says so
	s, err := localcloud.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// visit asks the edge for a path, as a visitor would, and returns who served it.
func visit(t *testing.T, s *localcloud.Site, path string) (origin string, status int) {
	t.Helper()
	resp, err := http.Get(s.EdgeURL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("X-Origin"), resp.StatusCode
}

func TestMissBecomesObject(t *testing.T) {
	s := site(t, localcloud.Config{})
	s.COS.Put("img/münchen a.jpg", []byte("picture"), cosd.Attributes{ContentType: "image/jpeg", CacheControl: "max-age=60", Meta: map[string]string{"title": "über"}})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}")})

	if origin, status := visit(t, s, "/img/m%C3%BCnchen%20a.jpg"); origin != "cos" || status != 200 {
		t.Fatalf("the first visitor was served %d by %q, want 200 by cos", status, origin)
	}
	s.Cloud.FlushLogs()
	ferry.Until(t, 20*time.Second, "the object is in S3", func() bool {
		_, ok := s.Cloud.Object(localcloud.Bucket, "img/münchen a.jpg")
		return ok
	})
	if origin, status := visit(t, s, "/img/m%C3%BCnchen%20a.jpg"); origin != "s3" || status != 200 {
		t.Errorf("the second visitor was served %d by %q, want 200 by s3", status, origin)
	}
	o, _ := s.Cloud.Object(localcloud.Bucket, "img/münchen a.jpg")
	if string(o.Body) != "picture" || o.Header.Get("Content-Type") != "image/jpeg" || o.Header.Get("Cache-Control") != "max-age=60" {
		t.Errorf("in S3 stands %q with %v", o.Body, o.Header)
	}
	if err := p.Stop(20 * time.Second); err != nil {
		t.Errorf("drain: %v\n%s", err, p.Log())
	}
	for _, q := range []string{localcloud.LogsQueue, localcloud.SyncQueue} {
		if d := s.Cloud.Depth(q); d.Total() != 0 {
			t.Errorf("after the drain %s holds %+v", q, d)
		}
	}
}

// TestItDoesNotFeedItself is rule 8: the service's own HEAD of a missing key is
// logged by S3 as a miss of that key.
func TestItDoesNotFeedItself(t *testing.T) {
	s := site(t, localcloud.Config{})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}", "parse: {recent: 1ms}")})
	visit(t, s, "/nowhere.jpg") // COS does not have it either
	for range 3 {
		s.Cloud.FlushLogs()
		ferry.Until(t, 20*time.Second, "the queues are empty", func() bool {
			return s.Cloud.Depth(localcloud.LogsQueue).Total()+s.Cloud.Depth(localcloud.SyncQueue).Total() == 0
		})
	}
	if n := s.Cloud.Count(strictaws.ServiceSQS, "SendMessageBatch", localcloud.SyncQueue).Entries; n != 1 {
		t.Errorf("one miss made %d requests, want 1", n)
	}
	_, metrics, err := p.Get(context.Background(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if want := `objectferry_rows_total{bucket="overseas-media",verdict="skip",why="own"}`; !strings.Contains(metrics, want) {
		t.Errorf("metrics have no %s", want)
	}
}

func TestAdminPages(t *testing.T) {
	s := site(t, localcloud.Config{})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}")})
	ferry.Until(t, 10*time.Second, "ready", func() bool {
		status, _, err := p.Get(context.Background(), "/readyz")
		return err == nil && status == 200
	})
	for path, want := range map[string]string{
		"/healthz": "ok",
		"/statusz": fmt.Sprintf(`"name": "source %s"`, strings.TrimPrefix(s.COS.URL(), "http://")),
		"/metrics": "objectferry_guard_state",
	} {
		status, body, err := p.Get(context.Background(), path)
		if err != nil || status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %v, status %d, want %q in\n%s", path, err, status, want, body)
		}
	}
}
