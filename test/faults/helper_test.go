// Package faults breaks what the service depends on, or the service itself, and
// checks that nothing is lost, nothing is wrong and nothing is dead-lettered that
// an outage is to blame for.
//
// Times are scaled: probes every 100 ms to 1 s (5 s to 5 min in production),
// back-off 200 ms to 2 s (5 s to 15 min), own limit 3 receives (8), visibility 1 s
// (60 s). OBJECTFERRY_LONG=1 runs the sizes that are claimed in the docs; without
// it each test is a sample of the same code with smaller numbers.
package faults

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestMain lets many tests run side by side: they wait for timeouts far more than
// they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	ferry.Main(m)
}

// long is whether the full sizes are run.
var long = os.Getenv("OBJECTFERRY_LONG") != ""

// size is n in full, or the sample.
func size(full, sample int) int {
	if long {
		return full
	}
	return sample
}

// scaled are the lines of a configuration with all times scaled.
var scaled = []string{
	"retry: {min: 200ms, max: 2s, wait: 1s, receives: 3}",
	"guard: {probe_min: 100ms, probe_max: 1s, timeout: 1s}",
	"drain: 10s",
}

// newSite starts a cloud with a visibility timeout of 2 s, unless c says otherwise:
// with 1 s a busy machine loses leases by itself. Everybody may read its COS unless
// c names principals.
func newSite(t *testing.T, c localcloud.Config) *localcloud.Site {
	t.Helper()
	if c.Visibility == 0 {
		c.Visibility = 2 * time.Second
	}
	if len(c.COS.Principals) == 0 {
		c.COS.Behaviour.PublicRead = true
	}
	c.AWS.LogInterval = time.Hour
	s, err := localcloud.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// body is the content that a test's object has.
func body(key string) []byte { return bytes.Repeat([]byte(key+"\n"), 64) }

// put stores n objects in cos and returns their keys.
func put(cos *cosd.Server, prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%04d.bin", prefix, i)
		cos.Put(keys[i], body(keys[i]), cosd.Attributes{})
	}
	return keys
}

// ask puts a sync request for each key into a queue.
func ask(t *testing.T, s *localcloud.Site, queue, bucket string, keys []string) {
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

// settled waits until a queue holds nothing, and returns how long that took.
func settled(t *testing.T, s *localcloud.Site, queue string, within time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	ferry.Until(t, within, "queue "+queue+" is empty", func() bool { return s.Cloud.Depth(queue).Total() == 0 })
	return time.Since(start)
}

// copied checks that every key is in the bucket with its bytes.
func copied(t *testing.T, s *localcloud.Site, bucket string, keys []string) {
	t.Helper()
	missing := 0
	for _, key := range keys {
		o, ok := s.Cloud.Object(bucket, key)
		switch {
		case !ok:
			missing++
		case !bytes.Equal(o.Body, body(key)):
			t.Errorf("key %q has other bytes than its source", key)
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d objects are not there", missing, len(keys))
	}
}

// noDeadLetters checks that nothing died in any of the queues.
func noDeadLetters(t *testing.T, s *localcloud.Site, queues ...string) {
	t.Helper()
	for _, q := range queues {
		for _, m := range s.Cloud.Messages(q + localcloud.DeadSuffix) {
			t.Errorf("dead letter of %s: end %q, detail %q, receives %q", q, m.Attributes["end"], m.Attributes["detail"], m.Attributes["receives"])
		}
	}
}

// metric sums the samples of one metric whose labels contain all of labels.
func metric(t *testing.T, p *ferry.Process, name string, labels ...string) (sum float64) {
	t.Helper()
	status, page, err := p.Get(t.Context(), "/metrics")
	if err != nil || status != 200 {
		t.Fatalf("get metrics: status %d, %v", status, err)
	}
lines:
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue lines
			}
		}
		var v float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err == nil {
			sum += v
		}
	}
	return sum
}
