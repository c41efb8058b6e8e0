package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// outageFor is longer than own limit × visibility, 3 × 2 s.
const outageFor = 7 * time.Second

// TestOutageIsNoFailureOfTheMessages is rule 5, for each way in which a source
// can be gone: while it is, the gate is closed, the source is probed, and no
// message is received more than twice or dies; afterwards all is copied within
// twice the undisturbed time.
func TestOutageIsNoFailureOfTheMessages(t *testing.T) {
	outages := []struct {
		name  string
		begin func(*localcloud.Site)
		end   func(*testing.T, *localcloud.Site)
	}{
		{"refused", func(s *localcloud.Site) { s.COS.Down() }, func(t *testing.T, s *localcloud.Site) {
			if err := s.COS.Up(); err != nil {
				t.Fatal(err)
			}
		}},
		{"503", func(s *localcloud.Site) { s.COS.Lie(cosd.When{}, cosd.Refuse(503, "ServiceUnavailable")) }, heal},
		{"hanging", func(s *localcloud.Site) { s.COS.Lie(cosd.When{}, cosd.Hang()) }, heal},
		{"200 with HTML", func(s *localcloud.Site) { s.COS.Lie(cosd.When{}, cosd.Page(200)) }, heal},
	}
	for _, outage := range outages {
		for _, waiting := range []int{size(500, 60), 1} {
			t.Run(fmt.Sprintf("%s/%d waiting", outage.name, waiting), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 50 * time.Millisecond, LatencyMax: 150 * time.Millisecond}}})
				p := ferry.Start(t, s, ferry.Options{Args: []string{"--role", "copy"}, YAML: s.YAML([]localcloud.Route{{}}, append(slices.Clone(scaled), "copy: {concurrency: 8}")...)})

				calm := put(s.COS, "calm", waiting)
				ask(t, s, localcloud.SyncQueue, localcloud.Bucket, calm)
				undisturbed := settled(t, s, localcloud.SyncQueue, time.Minute)

				outage.begin(s)
				keys := put(s.COS, "storm", waiting)
				before := metric(t, p, "objectferry_guard_probes_total")
				ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
				time.Sleep(outageFor) // the length of the outage is what is tested
				if n := metric(t, p, "objectferry_guard_probes_total") - before; n < 2 {
					t.Errorf("the source was probed %v times during the outage", n)
				}
				if d := s.Cloud.Depth(localcloud.SyncQueue); d.Total() != waiting {
					t.Errorf("during the outage %d of %d messages are left", d.Total(), waiting)
				}
				outage.end(t, s)

				// A probe may have just failed, and a message that was handed back waits out
				// its back-off; both belong to the undisturbed time of a single message.
				bound := 2 * (undisturbed + 2*time.Second)
				if took := settled(t, s, localcloud.SyncQueue, time.Minute); took > bound {
					t.Errorf("after the return %d messages took %s; undisturbed %s", waiting, took, undisturbed)
				}
				if most := s.Cloud.MaxReceives(localcloud.SyncQueue); most > 2 {
					t.Errorf("a message was received %d times", most)
				}
				copied(t, s, localcloud.Bucket, keys)
				noDeadLetters(t, s, localcloud.SyncQueue)
			})
		}
	}
}

func heal(_ *testing.T, s *localcloud.Site) { s.COS.Heal() }

// TestOutageOfTheSyncQueue: while the sync queue refuses all, receives of log
// notifications stop and their counts do not climb; it heals by itself.
func TestOutageOfTheSyncQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, localcloud.Config{})
	keys := put(s.COS, "img", size(200, 40))
	logs(t, s, keys)
	fault := s.Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "SendMessageBatch", Target: localcloud.SyncQueue, Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, scaled...)})
	ferry.Until(t, 20*time.Second, "the sync queue's gate is closed", func() bool {
		return metric(t, p, "objectferry_guard_state", "queue objectferry-sync", `state="closed"`) == 1
	})
	time.Sleep(outageFor)
	fault.Remove()
	settled(t, s, localcloud.LogsQueue, time.Minute)
	settled(t, s, localcloud.SyncQueue, time.Minute)
	if most := s.Cloud.MaxReceives(localcloud.LogsQueue); most > 2 {
		t.Errorf("a notification was received %d times", most)
	}
	copied(t, s, localcloud.Bucket, keys)
	noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
}

// TestOneHangingSourceDoesNotHoldUpAnother: two sources with a queue each; while
// one hangs, the other keeps at least 90 % of its throughput.
func TestOneHangingSourceDoesNotHoldUpAnother(t *testing.T) {
	const other = "other-media"
	s := newSite(t, localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 20 * time.Millisecond, LatencyMax: 60 * time.Millisecond}}})
	sick, err := s.AddCOS(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddQueue("other-sync"); err != nil {
		t.Fatal(err)
	}
	s.AddBucket(other, strictaws.Bucket{})
	ferry.Start(t, s, ferry.Options{Args: []string{"--role", "copy"}, YAML: s.YAML(
		[]localcloud.Route{{}, {Bucket: other, COS: sick.URL(), Queue: "other-sync"}}, append(slices.Clone(scaled), "copy: {concurrency: 8}")...)})

	n := size(400, 120)
	var ratios []float64
	for pair := range 5 {
		run := func(name string) time.Duration {
			keys := put(s.COS, fmt.Sprintf("%s-%d", name, pair), n)
			ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
			return settled(t, s, localcloud.SyncQueue, time.Minute)
		}
		alone := run("alone")
		hang := sick.Lie(cosd.When{}, cosd.Hang())
		stuck := put(sick, fmt.Sprintf("stuck-%d", pair), 100)
		ask(t, s, "other-sync", other, stuck)
		ferry.Until(t, 10*time.Second, "the sick source is asked", func() bool { return sick.Counts().Running > 0 })
		beside := run("beside")
		hang.Heal()
		settled(t, s, "other-sync", time.Minute)
		copied(t, s, other, stuck)
		ratios = append(ratios, alone.Seconds()/beside.Seconds())
	}
	slices.Sort(ratios)
	t.Logf("throughput beside a hanging source: %.2f of that alone (median of %v)", ratios[2], ratios)
	if ratios[2] < .9 {
		t.Errorf("beside a hanging source the other kept %.2f of its throughput, want 0.9", ratios[2])
	}
	noDeadLetters(t, s, localcloud.SyncQueue, "other-sync")
}

// TestFleetDoesNotStormASourceThatIsBack: four processes on one source that
// limits requests per second; a while after its return fewer than 5 % of its
// answers are 429. The minute of the claim is scaled with the probe interval's
// floor to a few seconds, unless the full form is run.
func TestFleetDoesNotStormASourceThatIsBack(t *testing.T) {
	const perSecond = 100
	after, watched := time.Duration(size(60, 6))*time.Second, time.Duration(size(20, 5))*time.Second
	s := newSite(t, localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 30 * time.Millisecond, LatencyMax: 70 * time.Millisecond,
		RequestsPerSecond: perSecond, LimitStatus: 429}}})
	keys := put(s.COS, "img", int((after+watched).Seconds())*perSecond*11/10)
	s.COS.Down()
	for range 4 {
		ferry.Start(t, s, ferry.Options{Args: []string{"--role", "copy"}, YAML: s.YAML([]localcloud.Route{{}}, scaled...)})
	}
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
	time.Sleep(outageFor)
	if err := s.COS.Up(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	s.COS.ResetCounts()
	time.Sleep(watched)
	c := s.COS.Counts()
	share := float64(c.Throttled) / float64(max(c.Answers, 1))
	used := float64(c.Answers-c.Throttled) / (watched.Seconds() * perSecond)
	t.Logf("%s after the return: %d answers, %.1f %% of them 429; %.0f %% of the limit is used", after, c.Answers, 100*share, 100*used)
	if share >= .05 {
		t.Errorf("%.1f %% of the answers are 429, want fewer than 5 %%", 100*share)
	}
	if used < .5 {
		t.Errorf("only %.0f %% of the source's limit is used", 100*used)
	}
	noDeadLetters(t, s, localcloud.SyncQueue)
}
