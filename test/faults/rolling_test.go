package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// deploying are the lines of a configuration for a rolling deploy. With a back-off
// from 5 ms, in whole seconds as SQS counts, a request that nobody can route dies
// 19 s after its first receive or later; with the default of 5 s, after 2 h 50 min.
// deployFor is the scaled length of a deploy.
var deploying = []string{
	"retry: {min: 5ms, max: 2s, wait: 1s, receives: 3}",
	"guard: {probe_min: 100ms, probe_max: 1s, timeout: 2s}",
	"drain: 10s",
}

const deployFor = 5500 * time.Millisecond

// TestRollingDeployOfARoute: an old process and a new one, whose configuration has
// a route more, consume one queue. Requests for the new route that the old one gets
// are handed back until the new one has them: none is lost, none is dead-lettered,
// and those for the old route do not wait.
func TestRollingDeployOfARoute(t *testing.T) {
	t.Parallel()
	const added = "added-media"
	s := calmSite(t, localcloud.Config{})
	cos, err := s.AddCOS(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.AddBucket(added, strictaws.Bucket{})
	start := func(routes ...localcloud.Route) *ferry.Process {
		return ferry.Start(t, s, ferry.Options{YAML: s.YAML(routes, deploying...)})
	}
	n := size(100, 20)
	now, later := put(s.COS, "now", n), put(cos, "later", n)

	old := start(localcloud.Route{})
	began := time.Now()
	ask(t, s, localcloud.SyncQueue, added, later)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, now)
	ferry.Until(t, deployFor/2, "the old route is served", func() bool { return len(s.Cloud.Keys(localcloud.Bucket)) == n })
	time.Sleep(deployFor/2 - time.Since(began)) // all is with the old process, for half of the deploy
	if left := s.Cloud.Depth(localcloud.SyncQueue).Total(); left != n {
		t.Errorf("with the old process alone %d requests are left, want %d", left, n)
	}

	start(localcloud.Route{}, localcloud.Route{Bucket: added, COS: cos.URL()})
	more := put(cos, "more", n)
	ask(t, s, localcloud.SyncQueue, added, more)
	logs(t, s, put(s.COS, "logged", n)) // a log, too, may come to either
	time.Sleep(deployFor - time.Since(began))
	if err := old.Stop(20 * time.Second); err != nil {
		t.Errorf("stop the old process: %v\n%s", err, old.Log())
	}

	settled(t, s, localcloud.LogsQueue, time.Minute)
	settled(t, s, localcloud.SyncQueue, time.Minute)
	copied(t, s, localcloud.Bucket, now)
	copied(t, s, localcloud.Bucket, put(s.COS, "logged", n))
	copied(t, s, added, append(later, more...))
	noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
}

// TestRollingDeployOfAMessageVersion: requests of a version that is yet to come lie
// among those of today. No program reads them now, so for the length of a deploy
// they must only be there, whole, for one that will: handed back with growing
// delay, not dead, in nobody's way, and visible again when the old process is
// gone. When none ever comes they are dead letters that a redrive can heal.
func TestRollingDeployOfAMessageVersion(t *testing.T) {
	t.Parallel()
	s := calmSite(t, localcloud.Config{})
	newer := map[string]bool{}
	sendNewer := func(n int) {
		for range n {
			text := fmt.Sprintf(`{"v":2,"bucket":%q,"keys":["a%d","b"],"until":"2027-01-01T00:00:00Z"}`, localcloud.Bucket, len(newer))
			newer[text] = true
			if err := s.Cloud.Send(localcloud.SyncQueue, text, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := func(queue string) []strictaws.Message {
		t.Helper()
		messages := s.Cloud.Messages(queue)
		bodies := map[string]bool{}
		for _, m := range messages {
			bodies[m.Body] = true
			if !newer[m.Body] {
				t.Errorf("in %s is %q", queue, m.Body)
			}
		}
		if len(bodies) != len(newer) || len(messages) != len(newer) {
			t.Errorf("in %s are %d messages of %d, want each of %d once", queue, len(messages), len(bodies), len(newer))
		}
		return messages
	}

	n := size(100, 20)
	sendNewer(n)
	today := put(s.COS, "today", 2*n)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, today[:n])
	sendNewer(n)
	old := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, deploying...)})
	began := time.Now()
	ferry.Until(t, deployFor/2, "the requests of today are done", func() bool { return len(s.Cloud.Keys(localcloud.Bucket)) == n })
	time.Sleep(deployFor/2 - time.Since(began))
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, today[n:]) // now that the others are suspects, soon
	ferry.Until(t, deployFor, "the requests that came later are done", func() bool { return len(s.Cloud.Keys(localcloud.Bucket)) == 2*n })
	time.Sleep(deployFor - time.Since(began))
	if err := old.Stop(20 * time.Second); err != nil {
		t.Errorf("stop: %v\n%s", err, old.Log())
	}
	noDeadLetters(t, s, localcloud.SyncQueue)
	for _, m := range whole(localcloud.SyncQueue) {
		if wait := time.Until(m.Visible); wait > 6*time.Second {
			t.Errorf("a newer process would have to wait %s for a request", wait)
		}
	}
	copied(t, s, localcloud.Bucket, today)

	serve(t, s, "copy", "retry: {min: 1ms, max: 2s, wait: 1s, receives: 3}") // 1 ms: to see the end of it
	settled(t, s, localcloud.SyncQueue, 2*time.Minute)
	for _, m := range whole(localcloud.SyncQueue + localcloud.DeadSuffix) {
		if m.Attributes["end"] != "failed" || m.Attributes["detail"] != "unrouted" {
			t.Errorf("a dead letter says end %q, detail %q", m.Attributes["end"], m.Attributes["detail"])
		}
	}
}
