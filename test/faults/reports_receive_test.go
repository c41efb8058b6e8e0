package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestReceivingHoldsBackAndResumes: whatever fails, receiving neither stops for
// good nor burns receives, and it resumes by itself.
func TestReceivingHoldsBackAndResumes(t *testing.T) {
	sideBySide(t, []report{
		// elastic/beats#24601: messages in flight flipped back for ever. Five minutes
		// are scaled to a few seconds. (Other ways: TestOutageOfTheSyncQueue,
		// TestRefusalSettlesNothing.)
		{"nothing is received while the sync queue throttles every send", syncQueueDown(strictaws.Fail{Status: 400, Code: "RequestThrottled"})},
		{"nothing is received while the sync queue answers no send", syncQueueDown(strictaws.Hang{})},
		// vectordotdev/vector#22947: a hot loop.
		{"refused receives are few and resume", receivesFail(60, 5, strictaws.Fail{Status: 403, Code: "AccessDenied"})},
		// vectordotdev/vector#17075: a silent stop.
		{"receives that are reset resume", receivesFail(20, 5, strictaws.Reset{})},
		{"receives that hang have a deadline, and errors after them are no end", hangThenFail}, // awslabs/amazon-s3-data-replication-hub-plugin#41
		{"one sick key backs off and fails alone", oneSickKey},                                 // redpanda-data/connect#697
	})
}

// syncQueueDown is a sync queue that takes nothing for a while.
func syncQueueDown(how strictaws.Effect) func(*testing.T) {
	return func(t *testing.T) {
		s := quietSite(t, 2)
		fault := s.Cloud.Faults().Add(onSQS("SendMessageBatch", localcloud.SyncQueue, how))
		keys := putLogs(t, s, "log", 30)
		p := serve(t, s, "parse")
		ferry.Until(t, 20*time.Second, "the gate is closed", func() bool {
			return metric(t, p, "objectferry_guard_state", "queue objectferry-sync", `state="open"`) == 0
		})
		received := func() int {
			return s.Cloud.Count(strictaws.ServiceSQS, "ReceiveMessage", localcloud.LogsQueue).Entries
		}
		time.Sleep(time.Second) // for a receive that was in flight
		before := received()
		time.Sleep(time.Duration(size(60, 4)) * time.Second) // the length of the outage is what is tested
		if n := received() - before; n > 0 {
			t.Errorf("%d notifications were received while the gate was closed", n)
		}
		fault.Remove()
		settled(t, s, localcloud.LogsQueue, 30*time.Second)
		if most := s.Cloud.MaxReceives(localcloud.LogsQueue); most > 2 {
			t.Errorf("a notification was received %d times", most)
		}
		requestedOnce(t, s, keys...)
		noDeadLetters(t, s, localcloud.LogsQueue)
	}
}

// lastReceive is when the logs queue last answered well, in Unix seconds.
func lastReceive(t *testing.T, p *ferry.Process) float64 {
	return metric(t, p, "objectferry_last_receive_timestamp_seconds", `queue="logs"`)
}

// receivesFail lets every receive fail for a while: full seconds, or the sample.
func receivesFail(full, sample int, how strictaws.Effect) func(*testing.T) {
	return func(t *testing.T) {
		s := quietSite(t, 2)
		p := serve(t, s, "parse")
		fault := s.Cloud.Faults().Add(onSQS("ReceiveMessage", localcloud.LogsQueue, how))
		ferry.Until(t, 10*time.Second, "a receive fails", func() bool { return fault.Hits() > 0 })
		before := lastReceive(t, p)
		keys := putLogs(t, s, "log", 3)
		time.Sleep(time.Duration(size(full, sample)) * time.Second) // its length is what is tested
		if n := fault.Hits(); n > size(12, 4) {
			t.Errorf("%d receives were tried within %d s, want a back-off", n, size(full, sample))
		}
		resumes(t, s, p, fault, before, keys)
	}
}

// resumes ends a fault of receives and checks that all goes on by itself.
func resumes(t *testing.T, s *localcloud.Site, p *ferry.Process, fault *strictaws.Active, before float64, keys []string) {
	t.Helper()
	if now := lastReceive(t, p); now != before {
		t.Errorf("the time of the last receive moved by %v s while all receives failed", now-before)
	}
	fault.Remove()
	parsedOnce(t, s, time.Minute)
	requestedOnce(t, s, keys...)
	if lastReceive(t, p) <= before {
		t.Error("the time of the last receive has not moved")
	}
	if n := strings.Count(p.Log(), "receives fail"); n != 1 {
		t.Errorf("the failure was logged %d times, want once", n)
	}
}

// hangThenFail lets receives hang until two have met their own deadline, of 10 s
// beyond the long poll, and then fail.
func hangThenFail(t *testing.T) {
	s := quietSite(t, 2)
	p := serve(t, s, "parse")
	hang := s.Cloud.Faults().Add(onSQS("ReceiveMessage", localcloud.LogsQueue, strictaws.Hang{}))
	ferry.Until(t, 10*time.Second, "a receive hangs", func() bool { return hang.Hits() > 0 })
	before := lastReceive(t, p)
	keys := putLogs(t, s, "log", 3)
	ferry.Until(t, time.Minute, "a second receive hangs", func() bool { return hang.Hits() > 1 })
	fail := s.Cloud.Faults().Add(onSQS("ReceiveMessage", localcloud.LogsQueue, strictaws.Fail{Status: 500, Code: "InternalError"}))
	hang.Remove() // resets what hangs
	time.Sleep(time.Duration(size(60, 3)) * time.Second)
	if fail.Hits() == 0 {
		t.Error("no receive was tried after those that hung")
	}
	resumes(t, s, p, fail, before, keys)
}

// oneSickKey has a source that answers 503 for one key for ever. The back-off is
// scaled to 1 s at least, since SQS counts in seconds.
func oneSickKey(t *testing.T) {
	s := quietSite(t, 2)
	keys := put(s.COS, "img", 20)
	sick := put(s.COS, "sick", 1)
	s.COS.Lie(cosd.When{Key: sick[0]}, cosd.Refuse(503, "ServiceUnavailable"))
	p := serve(t, s, "copy", "retry: {min: 1s, max: 20s, wait: 1s, receives: 3}")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, slices.Concat(sick, keys))

	var id string
	var came []time.Time // of the sick one
	ferry.Until(t, time.Minute, "only a dead letter is left", func() bool {
		if id == "" {
			id = s.Cloud.Messages(localcloud.SyncQueue)[0].ID
		}
		if s.Cloud.Receives(localcloud.SyncQueue)[id] > len(came) {
			came = append(came, time.Now())
		}
		return s.Cloud.Depth(localcloud.SyncQueue).Total() == 0
	})
	m := deadLettersOf(t, s, localcloud.SyncQueue, 1)[0]
	if m.Attributes["end"] != "failed" || m.Attributes["detail"] != "unavailable" || m.Attributes["receives"] != "3" {
		t.Errorf("the dead letter says %v, want failed, unavailable after 3 receives", m.Attributes)
	}
	if len(came) != 3 {
		t.Fatalf("the sick one was received %d times, want 3", len(came))
	}
	first, second := came[1].Sub(came[0]), came[2].Sub(came[1])
	t.Logf("the sick one came again after %s and %s", first, second)
	if first < time.Second || second <= first {
		t.Errorf("the sick one came again after %s and %s, want growing intervals", first, second)
	}
	copied(t, s, localcloud.Bucket, keys)
	for id, n := range s.Cloud.Receives(localcloud.SyncQueue) {
		if n != 1 && id != m.ID && n != 3 {
			t.Errorf("one of the others was received %d times", n)
		}
	}
	if strings.Contains(p.Log(), "gate changed") {
		t.Errorf("the gate did not stay open:\n%s", p.Log())
	}
	if n := metric(t, p, "objectferry_guard_probes_total", `result="alive"`); n == 0 {
		t.Error("nobody asked the source whether it lives")
	}
}
