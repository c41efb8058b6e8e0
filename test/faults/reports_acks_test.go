package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestDeletedOnceItsEffectIsDurable: a message is deleted when all that it asks
// for was done, and then it is; what SQS says of single entries of a batch counts.
func TestDeletedOnceItsEffectIsDurable(t *testing.T) {
	sideBySide(t, []report{
		{"a log settles only once all of its misses were accepted", func(t *testing.T) { // elastic/beats#38961
			s := quietSite(t, 5)
			rows := make([]string, 0, 1200)
			var first []string // fills its batches
			for i := range 100 {
				first = append(first, "a"+string(rune('a'+i/10))+string(rune('a'+i%10)))
				rows = append(rows, missOf(first[i]))
			}
			for range 1000 {
				rows = append(rows, hitOf("hit"))
			}
			putLog(t, s, "log", append(rows, missOf("b"))...)
			refused := s.Cloud.Faults().Add(onSQS("SendMessageBatch", localcloud.SyncQueue, failing("b")))
			serve(t, s, "parse", "retry: {min: 200ms, max: 1s, wait: 1s, receives: 100}")
			ferry.Until(t, 30*time.Second, "the notification came again", func() bool { return s.Cloud.MaxReceives(localcloud.LogsQueue) > 1 })
			if d := s.Cloud.Depth(localcloud.LogsQueue); d.Total() != 1 || deletes(s, localcloud.LogsQueue) != 0 {
				t.Errorf("while the last miss is refused: %+v, %d deletes; want the notification there", d, deletes(s, localcloud.LogsQueue))
			}
			requestedOnce(t, s, first...)
			refused.Remove()
			settled(t, s, localcloud.LogsQueue, 30*time.Second)
			requestedOnce(t, s, append(first, "b")...)
			if n := deletes(s, localcloud.LogsQueue); n != 1 {
				t.Errorf("%d deletes, want 1", n)
			}
		}},
		{"each message of a receive is deleted, not just the last", func(t *testing.T) { // vectordotdev/vector#11911
			s := quietSite(t, 5)
			keys := putLogs(t, s, "log", 10)
			serve(t, s, "parse")
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, keys...)
			if n := deletes(s, localcloud.LogsQueue); n != 10 {
				t.Errorf("%d deletes, want 10", n)
			}
		}},
		// vectordotdev/vector#11945: acknowledged although the send failed. Once with
		// the recent table, which spares the others the later attempts, and once without.
		{"an entry that fails for ever ends as a dead letter and repeats no other", failsForEver(1)},
		{"an entry that fails for ever costs the others one send an attempt", failsForEver(3, "parse: {recent: 0s}")},
		{"failed entries of a batch are sent again, and only those", func(t *testing.T) { // data-transfer-hub-cli
			s := quietSite(t, 5)
			failed := onSQS("SendMessageBatch", localcloud.SyncQueue, strictaws.FailEntry{Indexes: []int{2, 7}})
			failed.Times = 2
			s.Cloud.Faults().Add(failed)
			keys := strings.Fields("k0 k1 k2 k3 k4 k5 k6 k7 k8 k9")
			putLog(t, s, "log", rowsOf(keys)...)
			serve(t, s, "parse")
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, keys...)
			if n := s.Cloud.Count(strictaws.ServiceSQS, "SendMessageBatch", localcloud.SyncQueue); n.Calls != 2 || n.Entries != 10 {
				t.Errorf("%d calls for %d accepted entries, want 2 for 10", n.Calls, n.Entries)
			}
		}},
		// vector's deferred queue: the original was deleted although the forward failed.
		{"the original stays while the dead-letter queue fails", originalStays(func(s *localcloud.Site, dead string) (heal func()) {
			return s.Cloud.Faults().Add(onSQS("SendMessageBatch", dead, strictaws.Fail{Status: 503, Code: "ServiceUnavailable"})).Remove
		})},
		{"the original stays while the dead-letter queue cannot be reached", originalStays(func(s *localcloud.Site, dead string) (heal func()) {
			return s.Cloud.Faults().Add(onSQS("SendMessageBatch", dead, strictaws.Reset{})).Remove
		})},
		{"the original stays while the dead-letter queue is refused", originalStays(func(s *localcloud.Site, dead string) (heal func()) {
			s.Cloud.Deny("*", "sqs:SendMessage", dead)
			return func() { s.Cloud.Allow("*", "sqs:SendMessage", dead) }
		})},
		{"an empty log among three ends nothing but itself", func(t *testing.T) { // redpanda-data/connect 4.1.0, 4.45.1
			s := quietSite(t, 5)
			putLog(t, s, "1", missOf("a"))
			putLog(t, s, "2")
			putLog(t, s, "3", missOf("b"))
			p := serve(t, s, "parse")
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, "a", "b")
			if n := deletes(s, localcloud.LogsQueue); n != 3 {
				t.Errorf("%d deletes, want 3", n)
			}
			counted(t, p, 1, "objectferry_ends_total", `end="parsed"`, `detail="empty"`)
		}},
		// redpanda-data/connect#1090, #4474: a log that is gone was retried for ever, or
		// dropped silently.
		{"a missing log dies after a few receives where logs are kept", func(t *testing.T) {
			s := quietSite(t, 5)
			announceMissing(t, s)
			serve(t, s, "parse", "retry: {min: 200ms, max: 1s, wait: 1s}")
			m := deadLettersOf(t, s, localcloud.LogsQueue, 1)[0]
			if m.Attributes["end"] != "poison" || m.Attributes["detail"] != "missing" {
				t.Errorf("the dead letter says %v, want poison, missing", m.Attributes)
			}
			if most := s.Cloud.MaxReceives(localcloud.LogsQueue); most < 2 || most > 3 {
				t.Errorf("it was received %d times, want 2 or 3", most)
			}
		}},
		{"a missing log was consumed before where logs are deleted", func(t *testing.T) {
			s := quietSite(t, 5)
			announceMissing(t, s)
			yaml := strings.Replace(s.YAML([]localcloud.Route{{}}, scaled...), "when_done: keep", "when_done: delete", 1)
			p := ferry.Start(t, s, ferry.Options{Args: []string{"--role", "parse"}, YAML: yaml})
			parsedOnce(t, s, 30*time.Second)
			counted(t, p, 1, "objectferry_ends_total", `end="gone"`)
			noDeadLetters(t, s, localcloud.LogsQueue)
		}},
	})
}

func rowsOf(misses []string) []string {
	rows := make([]string, len(misses))
	for i, key := range misses {
		rows[i] = missOf(key)
	}
	return rows
}

// failing refuses the entries of a send that ask for a key.
func failing(key string) strictaws.FailEntry {
	return strictaws.FailEntry{Body: func(body string) bool { return strings.Contains(body, `"key":"`+key+`"`) }}
}

// failsForEver is a log of ten misses of which SQS never takes number 3.
func failsForEver(others int, lines ...string) func(*testing.T) {
	return func(t *testing.T) {
		s := quietSite(t, 5)
		keys := strings.Fields("k0 k1 k2 k4 k5 k6 k7 k8 k9")
		putLog(t, s, "log", append(rowsOf(keys), missOf("k3"))...)
		s.Cloud.Faults().Add(onSQS("SendMessageBatch", localcloud.SyncQueue, failing("k3")))
		p := serve(t, s, "parse", lines...)
		m := deadLettersOf(t, s, localcloud.LogsQueue, 1)[0]
		if m.Attributes["end"] != "failed" || m.Attributes["detail"] != "unavailable" || m.Attributes["receives"] != "3" {
			t.Errorf("the dead letter says %v, want failed, unavailable after 3 receives", m.Attributes)
		}
		counted(t, p, 1, "objectferry_ends_total", `queue="logs"`) // and it is not parsed
		requestedTimes(t, s, others, keys...)
	}
}

// originalStays sends junk to both queues while their dead-letter queues take
// nothing.
func originalStays(takeAway func(s *localcloud.Site, dead string) (giveBack func())) func(*testing.T) {
	return func(t *testing.T) {
		s := quietSite(t, 5)
		queues := []string{localcloud.LogsQueue, localcloud.SyncQueue}
		var heal []func()
		for _, q := range queues {
			heal = append(heal, takeAway(s, q+localcloud.DeadSuffix))
			if err := s.Cloud.Send(q, "hello", nil); err != nil {
				t.Fatal(err)
			}
		}
		serve(t, s, "all", "retry: {min: 200ms, max: 1s, wait: 1s, receives: 3}")
		for _, q := range queues {
			ferry.Until(t, 30*time.Second, "the message came again to "+q, func() bool { return s.Cloud.MaxReceives(q) > 1 })
			if s.Cloud.Depth(q).Total() != 1 {
				t.Errorf("%s holds %+v, want the original", q, s.Cloud.Depth(q))
			}
		}
		for i, q := range queues {
			heal[i]()
			if m := deadLettersOf(t, s, q, 1)[0]; m.Body != "hello" || m.Attributes["end"] != "poison" {
				t.Errorf("the dead letter of %s is %q, %v", q, m.Body, m.Attributes)
			}
		}
	}
}

// announceMissing sends a notification of a log object that is not there.
func announceMissing(t *testing.T, s *localcloud.Site) {
	t.Helper()
	body := s3event.Format(s3event.Record{Bucket: localcloud.LogBucket, Key: localcloud.LogPrefix + "gone", EventTime: time.Now(), Size: 1})
	if err := s.Cloud.Send(localcloud.LogsQueue, body, nil); err != nil {
		t.Fatal(err)
	}
}
