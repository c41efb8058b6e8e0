package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestHeldWhileItIsWorkedOn: a message is kept invisible for as long as its work
// takes, and only so long; no message waits for another one's work.
func TestHeldWhileItIsWorkedOn(t *testing.T) {
	sideBySide(t, []report{
		{"logs do not wait for each other's sends", func(t *testing.T) { // elastic/beats#39414
			const n, send = 100, 200 * time.Millisecond
			s := quietSite(t, 2)
			s.Cloud.Faults().Add(onSQS("SendMessageBatch", localcloud.SyncQueue, strictaws.Delay{For: send}))
			keys := putLogs(t, s, "log", n)
			serve(t, s, "parse")
			took := parsedOnce(t, s, time.Minute)
			calls := s.Cloud.Count(strictaws.ServiceSQS, "SendMessageBatch", localcloud.SyncQueue).Calls
			t.Logf("%d logs took %s, with %d sends of %s", n, took, calls, send)
			if took > n*send/2 {
				t.Errorf("%d logs took %s, want far less than one send after the other, %s", n, took, n*send)
			}
			requestedOnce(t, s, keys...)
		}},
		// elastic/beats#30140: 130 MB that take 90 s at a visibility timeout of 30 s;
		// the sample is a tenth of the size in a fifteenth of the time.
		{"a big log that is read slowly is received once and starves no small ones", func(t *testing.T) {
			s := quietSite(t, size(30, 2))
			row := hitOf("hit")
			putLog(t, s, "big", missOf("first"), strings.Repeat(row, size(130, 13)<<20/len(row)), missOf("last"))
			s.Cloud.Faults().Add(onLog("big", strictaws.Delay{For: time.Duration(size(2700, 1500)) * time.Millisecond})) // each 4 MiB
			keys := putLogs(t, s, "small", 50)
			serve(t, s, "parse", "guard: {probe_min: 100ms, probe_max: 1s, timeout: 10s}")
			ferry.Until(t, 30*time.Second, "the small ones are done", func() bool { return s.Cloud.Depth(localcloud.LogsQueue).Total() <= 1 })
			if s.Cloud.Depth(localcloud.LogsQueue).Total() != 1 {
				t.Error("the big one is done too; it was to be slow")
			}
			parsedOnce(t, s, 3*time.Minute)
			requestedOnce(t, s, append(keys, "first", "last")...)
		}},
		{"a log that takes longer than the visibility timeout is parsed once", func(t *testing.T) { // vectordotdev/vector#4910
			s := quietSite(t, 2)
			s.Cloud.Faults().Add(onLog("slow", strictaws.Delay{For: 7 * time.Second}))
			putLog(t, s, "slow", missOf("a"))
			serve(t, s, "parse", slowReads)
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, "a")
		}},
		{"ten logs whose sum is longer than the visibility timeout are parsed once", func(t *testing.T) { // vectordotdev/vector#20172
			s := quietSite(t, size(5, 2))
			s.Cloud.Faults().Add(onLog("*", strictaws.Delay{For: time.Duration(size(2000, 600)) * time.Millisecond}))
			keys := putLogs(t, s, "log", 10)
			serve(t, s, "parse", slowReads, "parse: {concurrency: 1}")
			parsedOnce(t, s, time.Minute)
			requestedOnce(t, s, keys...)
		}},
		// opensearch-project/data-prepper#3861: a flood of extension errors.
		{"a message deleted behind its back is one warning and frees its worker", func(t *testing.T) {
			s := quietSite(t, 2)
			hang := s.Cloud.Faults().Add(onLog("lost", strictaws.Hang{}))
			putLog(t, s, "lost", missOf("lost"))
			p := serve(t, s, "parse", slowReads, "parse: {concurrency: 1}")
			ferry.Until(t, 10*time.Second, "the log is being read", func() bool { return hang.Hits() == 1 })
			url := s.QueueURL(localcloud.LogsQueue)
			if _, err := sqsOf(s).PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
				t.Fatal(err)
			}
			putLog(t, s, "next", missOf("next"))
			settled(t, s, localcloud.LogsQueue, 10*time.Second)
			requestedOnce(t, s, "next")
			extended := s.Cloud.Count(strictaws.ServiceSQS, "ChangeMessageVisibilityBatch", localcloud.LogsQueue).Calls
			time.Sleep(3 * time.Second) // in which a flood would come
			if n := s.Cloud.Count(strictaws.ServiceSQS, "ChangeMessageVisibilityBatch", localcloud.LogsQueue).Calls; n != extended || n > 2 {
				t.Errorf("%d extensions were asked for, %d of them after the lease was lost", n, n-extended)
			}
			if n := strings.Count(p.Log(), `"level":"warn"`); n != 1 || !strings.Contains(p.Log(), "lease lost") {
				t.Errorf("%d warnings, want one, that the lease was lost:\n%s", n, p.Log())
			}
			counted(t, p, 1, "objectferry_leases_lost_total")
		}},
		// cherweg/logstash-input-s3-sns-sqs#84: the limit was that of the worker's life.
		{"a limit of time counts each log anew", func(t *testing.T) {
			s := quietSite(t, size(10, 2))
			s.Cloud.Faults().Add(onLog("*", strictaws.Delay{For: time.Duration(size(1000, 200)) * time.Millisecond}))
			keys := putLogs(t, s, "log", 30)
			limit := time.Duration(size(10, 2)) * time.Second
			p := serve(t, s, "parse", fmt.Sprintf("guard: {probe_min: 100ms, probe_max: 1s, timeout: %s}", limit), "parse: {concurrency: 1}")
			if took := parsedOnce(t, s, time.Minute); took < 2*limit {
				t.Errorf("they took %s, want more than twice the limit of %s", took, limit)
			}
			requestedOnce(t, s, keys...)
			if n := metric(t, p, "objectferry_guard_calls_total", `op="GetObject"`) - metric(t, p, "objectferry_guard_calls_total", `op="GetObject"`, `class="ok"`); n != 0 {
				t.Errorf("%v reads failed", n)
			}
		}},
		// cherweg/logstash-input-s3-sns-sqs#42: a dead extender killed the process.
		{"an extension that fails in an unknown way is counted and asked for again", func(t *testing.T) {
			s := quietSite(t, 4)
			s.Cloud.Faults().Add(onLog("slow", strictaws.Delay{For: 7 * time.Second}))
			unknown := onSQS("ChangeMessageVisibilityBatch", localcloud.LogsQueue, strictaws.Fail{Status: 400, Code: "SomethingNobodyForesaw"})
			unknown.Times = 3
			s.Cloud.Faults().Add(unknown)
			putLog(t, s, "slow", missOf("a"))
			p := serve(t, s, "parse", slowReads)
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, "a")
			counted(t, p, 3, "objectferry_sqs_calls_total", `call="ChangeMessageVisibilityBatch"`, `result="unknown"`)
		}},
		{"one worker that takes one message at a time gets five done", func(t *testing.T) { // vectordotdev/vector#16741
			s := quietSite(t, 2)
			keys := put(s.COS, "img", 5)
			logs(t, s, keys)
			serve(t, s, "all", "parse: {concurrency: 1}", "copy: {concurrency: 1}")
			parsedOnce(t, s, 30*time.Second)
			settled(t, s, localcloud.SyncQueue, 30*time.Second)
			copied(t, s, localcloud.Bucket, keys)
		}},
		// data-prepper#2484: the client's own timeout overrode the queue's. The sample
		// waits for an extension of the short one only.
		{"the visibility timeout is the queue's own/60 s", ownVisibility(60, long)},
		{"the visibility timeout is the queue's own/4 s", ownVisibility(4, true)},
	})
}

// slowReads lets a read of a log object take its time.
const slowReads = "guard: {probe_min: 100ms, probe_max: 1s, timeout: 1m}"

// ownVisibility holds a message and looks at when it would be visible again: after
// its receive and, if extended, after its first extension.
func ownVisibility(seconds int, extended bool) func(*testing.T) {
	return func(t *testing.T) {
		s := quietSite(t, seconds)
		s.Cloud.Faults().Add(onLog("slow", strictaws.Hang{}))
		putLog(t, s, "slow", missOf("a"))
		serve(t, s, "parse", slowReads)
		due := func() (at time.Time) {
			for _, m := range s.Cloud.Messages(localcloud.LogsQueue) {
				at = m.Visible
			}
			return at
		}
		whole := time.Duration(seconds) * time.Second
		check := func(what string) {
			if left := time.Until(due()); left <= whole-2*time.Second || left > whole {
				t.Errorf("%s the message is invisible for %s, want %s", what, left, whole)
			}
		}
		ferry.Until(t, 20*time.Second, "the message is received", func() bool { return !due().IsZero() })
		received, first := time.Now(), due()
		check("after the receive")
		if !extended {
			return
		}
		ferry.Until(t, whole, "the message is extended", func() bool { return due().After(first) })
		check("after the extension")
		if took := time.Since(received); took < whole/2-time.Second {
			t.Errorf("the first extension came after %s, want half of %s", took, whole)
		}
		if n := s.Cloud.MaxReceives(localcloud.LogsQueue); n != 1 {
			t.Errorf("the message was received %d times; that is no extension", n)
		}
	}
}
