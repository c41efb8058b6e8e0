package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestAStopStrandsNothing: however the process ends, all misses are requested in
// the end; and what SIGTERM interrupts comes back at once, far sooner than its
// visibility timeout of 60 s, and is not held against the message.
func TestAStopStrandsNothing(t *testing.T) {
	sideBySide(t, []report{
		{"half-read logs are finished within the grace", func(t *testing.T) { // elastic/beats PR 43369
			s := quietSite(t, 60)
			keys, halfRead := halfReadLogs(t, s, 5, strictaws.Delay{For: 2 * time.Second})
			p := serve(t, s, "parse", slowReads)
			ferry.Until(t, 20*time.Second, "all are half read", halfRead)
			if err := p.Stop(20 * time.Second); err != nil {
				t.Errorf("stop: %v\n%s", err, p.Log())
			}
			if d := s.Cloud.Depth(localcloud.LogsQueue); d.Total() != 0 {
				t.Errorf("at the exit the queue holds %+v, want nothing", d)
			}
			requestedOnce(t, s, keys...)
		}},
		{"half-read logs that take longer than the grace are handed back", func(t *testing.T) { // elastic/beats PR 43369
			s := quietSite(t, 60)
			keys, halfRead := halfReadLogs(t, s, 5, strictaws.Hang{})
			p := serve(t, s, "parse", slowReads, "drain: 1s")
			ferry.Until(t, 20*time.Second, "all are half read", halfRead)
			if err := p.Stop(20 * time.Second); err != nil {
				t.Errorf("stop: %v\n%s", err, p.Log())
			}
			handedBack(t, s, 5)
			s.Cloud.Faults().Clear()
			serve(t, s, "parse")
			settled(t, s, localcloud.LogsQueue, 30*time.Second)
			requestedOnce(t, s, keys...)
		}},
		{"three stops in mid-log make no dead letter", func(t *testing.T) { // kedacore/keda#1663, #5948
			s := quietSite(t, 60)
			keys, halfRead := halfReadLogs(t, s, 1, strictaws.Hang{})
			for stop := range 3 {
				p := serve(t, s, "parse", slowReads, "drain: 1s")
				ferry.Until(t, 20*time.Second, "the log is half read", func() bool {
					return halfRead() && s.Cloud.MaxReceives(localcloud.LogsQueue) == stop+1 && s.Cloud.Depth(localcloud.LogsQueue).InFlight == 1
				})
				if err := p.Stop(20 * time.Second); err != nil {
					t.Errorf("stop %d: %v\n%s", stop+1, err, p.Log())
				}
				handedBack(t, s, 1)
			}
			s.Cloud.Faults().Clear()
			serve(t, s, "parse")
			settled(t, s, localcloud.LogsQueue, 30*time.Second)
			requestedOnce(t, s, keys...)
			noDeadLetters(t, s, localcloud.LogsQueue)
		}},
		{"kill -9 between parse and send loses no miss", func(t *testing.T) { // data-prepper#6998
			s := quietSite(t, 2)
			hang := s.Cloud.Faults().Add(onSQS("SendMessageBatch", localcloud.SyncQueue, strictaws.Hang{}))
			keys := putLogs(t, s, "log", 5)
			p := serve(t, s, "parse")
			ferry.Until(t, 20*time.Second, "a batch is being sent", func() bool { return hang.Hits() > 0 })
			time.Sleep(500 * time.Millisecond) // in which a delete that does not wait for the send would come
			p.Kill()
			hang.Remove()
			if d := s.Cloud.Depth(localcloud.LogsQueue); d.Total() != 5 {
				t.Errorf("after the kill the queue holds %+v, want 5 notifications", d)
			}
			serve(t, s, "parse")
			settled(t, s, localcloud.LogsQueue, 30*time.Second)
			requestedOnce(t, s, keys...)
		}},
	})
}

// halfReadLogs puts n logs that are read in two chunks, with a miss in each, and
// lets a fault strike every second chunk. halfRead tells whether it has.
func halfReadLogs(t *testing.T, s *localcloud.Site, n int, second strictaws.Effect) (keys []string, halfRead func() bool) {
	t.Helper()
	row := hitOf("hit")
	hits := strings.Repeat(row, 5<<20/len(row))
	var faults []*strictaws.Active
	for i := range n {
		name := fmt.Sprint("long", i)
		half := onLog(name, second)
		half.After = 1
		faults = append(faults, s.Cloud.Faults().Add(half))
		keys = append(keys, name+"-first", name+"-last")
		putLog(t, s, name, missOf(name+"-first"), hits, missOf(name+"-last"))
	}
	return keys, func() bool {
		for _, f := range faults {
			if f.Hits() == 0 {
				return false
			}
		}
		return true
	}
}

// handedBack checks, at the exit of a process, that its n messages are there and
// visible again after the shortest back-off, which is a second.
func handedBack(t *testing.T, s *localcloud.Site, n int) {
	t.Helper()
	exit := time.Now()
	messages := s.Cloud.Messages(localcloud.LogsQueue)
	if len(messages) != n {
		t.Errorf("at the exit %d messages are there, want %d", len(messages), n)
	}
	for _, m := range messages {
		if m.InFlight && m.Visible.After(exit.Add(time.Second)) {
			t.Errorf("at the exit a message is left in flight for %s", m.Visible.Sub(exit))
		}
	}
}
