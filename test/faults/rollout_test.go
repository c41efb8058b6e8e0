package faults

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// replica is one process of a fleet behind its own receipts.
type replica struct {
	name     string
	process  *ferry.Process
	receipts *receipts
}

func startReplica(t *testing.T, s *localcloud.Site, name string) *replica {
	t.Helper()
	r := newReceipts(t, s, 60)
	yaml := s.YAML([]localcloud.Route{{}},
		"retry: {min: 200ms, max: 2s, wait: 1s, receives: 8}",
		"guard: {probe_min: 100ms, probe_max: 1s, timeout: 5s}",
		"copy: {concurrency: 8, memory: 64MiB}",
		"drain: 20s")
	p := ferry.Start(t, s, ferry.Options{YAML: yaml, Env: map[string]string{"AWS_ENDPOINT_URL_SQS": r.server.URL}})
	return &replica{name, p, r}
}

// stop ends the process as a rollout does, and checks that nothing is stranded
// and nothing went wrong. It returns how many messages were in hand at SIGTERM.
func (r *replica) stop(t *testing.T) (inHand int) {
	t.Helper()
	inHand = r.receipts.held()
	if err := r.process.Stop(time.Minute); err != nil {
		t.Errorf("stop %s: %v\n%s", r.name, err, r.process.Log())
	}
	r.receipts.settled(t, r.name)
	r.receipts.close()
	for line := range strings.Lines(r.process.Log()) {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"fatal"`) || !strings.HasPrefix(line, "{") {
			t.Errorf("%s says %s", r.name, line)
		}
	}
	return inHand
}

// load misses objects until it is stopped: half of them are asked for, half are
// in logs.
type load struct {
	end  chan struct{}
	done sync.WaitGroup
	keys []string // once stopped
}

func startLoad(t *testing.T, s *localcloud.Site, each int, every time.Duration) *load {
	t.Helper()
	l := &load{end: make(chan struct{})}
	l.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			asked, logged := put(s.COS, fmt.Sprintf("asked/%d", n), each), put(s.COS, fmt.Sprintf("logged/%d", n), each)
			ask(t, s, localcloud.SyncQueue, localcloud.Bucket, asked)
			rows := make([]string, each)
			for i, key := range logged {
				rows[i] = missOf(key)
			}
			putLog(t, s, fmt.Sprintf("load-%04d", n), rows...)
			l.keys = append(append(l.keys, asked...), logged...)
			select {
			case <-l.end:
				return
			case <-tick.C:
			}
		}
	})
	return l
}

func (l *load) stop() []string {
	close(l.end)
	l.done.Wait()
	return l.keys
}

// TestRolloutStrandsNothing: three processes under load are restarted one after
// the other, three times over. What each received it has deleted or handed back
// when it is gone, nothing is dead-lettered, nothing is logged as an error, and
// every object is carried.
func TestRolloutStrandsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, localcloud.Config{Visibility: time.Minute,
		COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true, LatencyMin: 50 * time.Millisecond, LatencyMax: 400 * time.Millisecond}}})
	fleet := make([]*replica, 3)
	for i := range fleet {
		fleet[i] = startReplica(t, s, fmt.Sprintf("replica %d", i))
	}
	traffic := startLoad(t, s, size(10, 4), 100*time.Millisecond)
	inHand, returned := 0, 0
	for round := range size(3, 1) {
		for i := range fleet {
			ferry.Until(t, time.Minute, "the process has work in hand", func() bool { return fleet[i].receipts.held() > 0 })
			inHand += fleet[i].stop(t)
			returned += fleet[i].receipts.returned
			fleet[i] = startReplica(t, s, fmt.Sprintf("replica %d of round %d", i, round+1))
		}
	}
	keys := traffic.stop()
	settled(t, s, localcloud.LogsQueue, 2*time.Minute)
	settled(t, s, localcloud.SyncQueue, 2*time.Minute)
	for _, r := range fleet {
		r.stop(t)
	}
	copied(t, s, localcloud.Bucket, keys)
	noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
	if inHand == 0 {
		t.Error("no process had anything in hand when it was told to stop: that shows nothing")
	}
	t.Logf("%d objects carried; at the restarts %d messages were in hand; %d were handed back; most receives of a message: %d",
		len(keys), inHand, returned, s.Cloud.MaxReceives(localcloud.SyncQueue))
}
