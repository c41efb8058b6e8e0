// Package console drives the console's pages in a headless Chromium, over the real
// `objectferry console` and `objectferry run` on the embedded cloud.
package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// The second bucket, with a source and a queue of its own.
const (
	docsBucket = "overseas-docs"
	docsQueue  = "objectferry-sync-docs"
)

const deadSync = localcloud.SyncQueue + localcloud.DeadSuffix

// newSite starts a cloud with two buckets that visitors read.
func newSite(t testing.TB) *localcloud.Site {
	t.Helper()
	var c localcloud.Config
	c.COS.Behaviour.PublicRead = true
	c.AWS.LogInterval = time.Hour // logs come when a test says so
	s, err := localcloud.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.AddQueue(docsQueue); err != nil {
		t.Fatal(err)
	}
	s.AddBucket(docsBucket, strictaws.Bucket{})
	return s
}

// yaml is the configuration for a site; docs is the source of the second bucket.
func yaml(s *localcloud.Site, docs string) string {
	return s.YAML([]localcloud.Route{{}, {Bucket: docsBucket, COS: docs, Queue: docsQueue}},
		"retry: {min: 200ms, max: 1s, wait: 1s, receives: 3}", "guard: {probe_min: 100ms, probe_max: 1s}")
}

// console is a running `objectferry console`.
type console struct {
	URL string
	Dir string // where it runs, and saves what is dropped

	mu  sync.Mutex
	log bytes.Buffer
}

// startConsole starts the console and waits until it serves.
func startConsole(t testing.TB, s *localcloud.Site, config string, args ...string) *console {
	t.Helper()
	c := &console{Dir: t.TempDir()}
	cmd := exec.Command(ferry.Binary(t), append([]string{"console", "--config", ferry.Config(t, config), "--listen", "127.0.0.1:0", "--as", "night-shift"}, args...)...)
	cmd.Dir, cmd.Env = c.Dir, ferry.Environ(s, nil)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		c.read(stderr, started)
		_ = cmd.Wait() // killed at the end of the test
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	select {
	case c.URL = <-started:
	case <-done:
		t.Fatalf("the console has ended:\n%s", c.Log())
	case <-time.After(30 * time.Second):
		t.Fatalf("the console has not said that it started:\n%s", c.Log())
	}
	return c
}

func (c *console) read(r io.Reader, started chan<- string) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		c.mu.Lock()
		c.log.Write(line)
		c.mu.Unlock()
		var l struct{ Message, Console string }
		if json.Unmarshal(line, &l) == nil && l.Message == "started" {
			started <- l.Console
		}
		if err != nil {
			return
		}
	}
}

// Log is what it has logged so far.
func (c *console) Log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// bury puts n dead letters for one bucket and reason into the dead letters of queue.
func bury(t testing.TB, s *localcloud.Site, queue, bucket, end, detail string, keys ...string) {
	t.Helper()
	for i, key := range keys {
		text, err := syncrequest.Encode(syncrequest.Request{Bucket: bucket, Key: key, Seen: time.Now().Add(-3 * time.Hour), Cause: "NoSuchKey"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cloud.Send(queue+localcloud.DeadSuffix, text, map[string]string{"end": end, "detail": detail, "receives": "8",
			"dead_at":     time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
			"traceparent": fmt.Sprintf("00-0af7651916cd43dd8448eb211c8031%02x-b7ad6b7169203331-01", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
}

// ask puts a sync request for each key into a queue.
func ask(t testing.TB, s *localcloud.Site, queue, bucket string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		text, err := syncrequest.Encode(syncrequest.Request{Bucket: bucket, Key: key, Seen: time.Now(), Cause: "NoSuchKey"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cloud.Send(queue, text, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// traced is the environment of a process that sends its spans to a collector.
func traced(t testing.TB) map[string]string {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(collector.Close)
	return map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
}

// visits is a log object with so many answers of S3 in one hour.
func visits(bucket string, hour time.Time, hits, misses int) string {
	var b strings.Builder
	row := func(key, answer string, i int) {
		at := hour.Add(time.Duration(i) * time.Second).UTC().Format("[02/Jan/2006:15:04:05 -0700]")
		fmt.Fprintf(&b, "owner %s %s 203.0.113.9 - REQ%013d REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" %s 287 - 11 - \"-\" \"visitor\" -\n", bucket, at, i, key, key, answer)
	}
	for i := range hits {
		row("img/there.jpg", "200 -", i)
	}
	for i := range misses {
		row(fmt.Sprintf("gone/%d-%d.jpg", hour.Unix(), i), "404 NoSuchKey", hits+i)
	}
	return b.String()
}

// deliver has S3 deliver one log object.
func deliver(t testing.TB, s *localcloud.Site, name, rows string) {
	t.Helper()
	if err := s.Cloud.PutObject(localcloud.LogBucket, localcloud.LogPrefix+name, []byte(rows), http.Header{}); err != nil {
		t.Fatal(err)
	}
}

// page fetches a page as a program does.
func page(t testing.TB, address string) string {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// host is the part of a URL that says whom it asks.
func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host
}

// TestMain lets the tests run side by side: they wait for the page and for SQS's
// long polls far more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	ferry.Main(m, closeBrowser)
}
