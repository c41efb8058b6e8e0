//go:build bench

package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) { ferry.Main(m) }

// cloud starts a site and a copier on it.
func cloud(t *testing.T, c localcloud.Config, yaml ...string) (*localcloud.Site, *ferry.Process) {
	t.Helper()
	c.AWS.LogInterval = time.Hour
	c.COS.Behaviour.PublicRead = true
	s, err := localcloud.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	p := ferry.Start(t, s, ferry.Options{Args: []string{"--role", "copy"}, YAML: s.YAML([]localcloud.Route{{}}, yaml...)})
	ferry.Until(t, 10*time.Second, "ready", func() bool {
		status, _, err := p.Get(t.Context(), "/readyz")
		return err == nil && status == 200
	})
	return s, p
}

func request(t *testing.T, key string) string {
	t.Helper()
	text, err := syncrequest.Encode(syncrequest.Request{Bucket: localcloud.Bucket, Key: key, Seen: time.Now(), Cause: "NoSuchKey"})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func send(t *testing.T, s *localcloud.Site, bodies []string) {
	t.Helper()
	for _, b := range bodies {
		if err := s.Cloud.Send(localcloud.SyncQueue, b, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for the queue to hold no more than n and returns when it did.
func until(t *testing.T, s *localcloud.Site, n int) time.Time {
	t.Helper()
	ferry.Until(t, 5*time.Minute, fmt.Sprintf("no more than %d messages are left", n), func() bool { return s.Cloud.Depth(localcloud.SyncQueue).Total() <= n })
	return time.Now()
}

// cpu is the processor time that a process has used.
func cpu(t *testing.T, p *ferry.Process) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// noDead checks that the run settled everything well.
func noDead(t *testing.T, s *localcloud.Site) {
	t.Helper()
	if n := len(s.Cloud.Messages(localcloud.SyncQueue + localcloud.DeadSuffix)); n > 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestSmallObjects: 2,000 objects of 64 KiB, source round trip uniform in 100 to
// 300 ms, 64 source reads at once, plain http. The limit is 64/0.2 s.
func TestSmallObjects(t *testing.T) {
	const n, limit = 2000, 64 / .2
	s, p := cloud(t, localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 100 * time.Millisecond, LatencyMax: 300 * time.Millisecond}}})
	body := make([]byte, 64<<10)
	var shares, costs []float64
	for run := range 4 {
		bodies := make([]string, n)
		for i := range bodies {
			key := fmt.Sprintf("small/%d/%04d", run, i)
			copy(body, key)
			s.COS.Put(key, slices.Clone(body), cosd.Attributes{})
			bodies[i] = request(t, key)
		}
		used, start := cpu(t, p), time.Now()
		send(t, s, bodies)
		took := until(t, s, 0).Sub(start)
		if run == 0 {
			continue // connections and buffers are warm from here on
		}
		shares = append(shares, n/took.Seconds()/limit)
		costs = append(costs, (cpu(t, p)-used).Seconds()*1e3/n)
	}
	slices.Sort(shares)
	slices.Sort(costs)
	t.Logf("small: %.2f of the limit of %.0f objects/s (of %.2f); %.2f ms CPU an object (of %.2f)", shares[1], float64(limit), shares, costs[1], costs)
	if shares[1] < .85 {
		t.Errorf("%.2f of the limit, want 0.85", shares[1])
	}
	if costs[1] > 2 {
		t.Errorf("%.2f ms CPU an object, want 2", costs[1])
	}
	if got := len(s.Cloud.Keys(localcloud.Bucket)); got != 4*n {
		t.Errorf("%d objects in S3, want %d", got, 4*n)
	}
	noDead(t, s)
}

// TestLargeObject: 1 GiB over exactly 8 connections of 10 MB/s each.
func TestLargeObject(t *testing.T) {
	const size, budget, limit = 1 << 30, 256 << 20, 80e6
	s, p := cloud(t, localcloud.Config{AWS: strictaws.Config{DiscardOver: 1 << 20},
		COS: cosd.Config{Behaviour: cosd.Behaviour{BytesPerSecond: 10e6, MaxConns: 8}}}, "copy: {concurrency: 8, memory: 256MiB}")
	var shares []float64
	for run := range 3 {
		key := fmt.Sprintf("large/%d", run)
		s.COS.PutSynthetic(key, size, uint64(run), cosd.Attributes{})
		if _, ok := s.COS.CRC64(key); !ok { // computed now, not within the measured time
			t.Fatal("the synthetic object has no CRC")
		}
		start := time.Now()
		send(t, s, []string{request(t, key)})
		took := until(t, s, 0).Sub(start)
		shares = append(shares, size/took.Seconds()/limit)
		if o, ok := s.Cloud.Object(localcloud.Bucket, key); !ok || o.Size != size {
			t.Fatalf("in S3 stands %+v, %v", o.Size, ok)
		}
	}
	peak, err := p.PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(shares)
	t.Logf("large: %.2f of 80 MB/s (of %.2f); peak memory %d MiB with a budget of %d MiB; at most %d connections", shares[1], shares, peak>>20, budget>>20, s.COS.Counts().MaxConns)
	if shares[1] < .85 {
		t.Errorf("%.2f of 80 MB/s, want 0.85", shares[1])
	}
	if peak > budget+64<<20 {
		t.Errorf("peak memory %d MiB, want at most the budget + 64 MiB", peak>>20)
	}
	noDead(t, s)
}

// TestCallsPerMessage: all SQS calls over 10,000 messages, counted at the server,
// heartbeats and empty receives included.
func TestCallsPerMessage(t *testing.T) {
	const n = 10_000
	s, _ := cloud(t, localcloud.Config{Visibility: 60 * time.Second, COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 20 * time.Millisecond, LatencyMax: 60 * time.Millisecond}}})
	bodies := make([]string, n)
	for i := range bodies {
		key := fmt.Sprintf("calls/%05d", i)
		s.COS.Put(key, []byte(key), cosd.Attributes{})
		bodies[i] = request(t, key)
	}
	s.Cloud.ResetCounts()
	send(t, s, bodies)
	until(t, s, 0)
	calls := s.Cloud.Count(strictaws.ServiceSQS, "", localcloud.SyncQueue).Calls
	for _, action := range []string{"ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "GetQueueAttributes"} {
		t.Logf("%-30s %d", action, s.Cloud.Count(strictaws.ServiceSQS, action, localcloud.SyncQueue).Calls)
	}
	t.Logf("calls: %.3f a message", float64(calls)/n)
	if calls == 0 || float64(calls)/n > .35 {
		t.Errorf("%.3f calls a message, want at most 0.35 (and some)", float64(calls)/n)
	}
	noDead(t, s)
}

// TestBacklog: throughput with 100,000 messages waiting against 2,000.
func TestBacklog(t *testing.T) {
	const few, many, measured = 2000, 100_000, 1800
	var ratios []float64
	for pair := range 5 {
		run := func(waiting int) float64 {
			s, _ := cloud(t, localcloud.Config{})
			defer s.Close()
			bodies := make([]string, waiting)
			for i := range bodies {
				key := fmt.Sprintf("backlog/%06d", i)
				if i < few {
					s.COS.Put(key, []byte(key), cosd.Attributes{})
				}
				bodies[i] = request(t, key)
			}
			// They come all at once, when the queue is given back its permission.
			s.Cloud.Deny("*", "sqs:ReceiveMessage", localcloud.SyncQueue)
			send(t, s, bodies)
			s.Cloud.Allow("*", "sqs:ReceiveMessage", localcloud.SyncQueue)
			start := until(t, s, waiting-few/10)
			return float64(measured) / until(t, s, waiting-few/10-measured).Sub(start).Seconds()
		}
		a, b := run(few), run(many)
		t.Logf("pair %d: %.0f messages/s with %d waiting, %.0f with %d", pair, a, few, b, many)
		ratios = append(ratios, b/a)
	}
	slices.Sort(ratios)
	t.Logf("backlog: %.2f (median of %.2f)", ratios[2], ratios)
	if ratios[2] < .9 {
		t.Errorf("with %d waiting the throughput is %.2f of that with %d, want 0.9", many, ratios[2], few)
	}
}
