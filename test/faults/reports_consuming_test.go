package faults

// What went wrong for users of neighbouring programs that consume queues, as
// small inputs and the right results. Each row stands for a kind; the comment at
// a row names the public report. The rows are grouped by what is at stake:
//
//	reports_acks_test.go     a message is deleted once its effect is durable
//	reports_held_test.go     a message is kept while it is worked on
//	reports_receive_test.go  receiving goes on, and holds back, whatever fails
//	reports_stop_test.go     a stop strands and loses nothing
//	reports_foreign_test.go  messages that are not ours
//
// Times are scaled as helper_test.go says; where a row has a time of its own, the
// long form runs that one and the sample a smaller one, with the visibility
// timeout in proportion, but never under 1 s.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// report is one row: the rule that the report's kind would break, and its test.
type report struct {
	rule string
	test func(*testing.T)
}

// sideBySide runs rows. Most of a row's time is waiting, so more of them run at
// once than there are processors.
func sideBySide(t *testing.T, rows []report) {
	t.Parallel()
	atOnce := make(chan struct{}, 5)
	var all sync.WaitGroup
	for _, r := range rows {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			t.Run(r.rule, r.test)
		})
	}
	all.Wait()
}

// serve starts the service in a role with the scaled times. Each of lines is a
// line of the configuration and takes the place of the scaled one of its field.
func serve(t *testing.T, s *localcloud.Site, role string, lines ...string) *ferry.Process {
	t.Helper()
	all := slices.Clone(scaled)
	for _, line := range lines {
		field := line[:strings.IndexByte(line, ':')+1]
		all = append(slices.DeleteFunc(all, func(other string) bool { return strings.HasPrefix(other, field) }), line)
	}
	return ferry.Start(t, s, ferry.Options{Args: []string{"--role", role}, YAML: s.YAML([]localcloud.Route{{}}, all...)})
}

// quietSite is a site with a visibility timeout of whole seconds whose logs queue
// is empty: S3's test event is taken away, so that it is not counted with what a
// row sends.
func quietSite(t *testing.T, visibility int) *localcloud.Site {
	t.Helper()
	s := newSite(t, localcloud.Config{Visibility: time.Duration(visibility) * time.Second})
	client, url := sqsOf(s), s.QueueURL(localcloud.LogsQueue)
	got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Messages {
		if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
	s.Cloud.ResetCounts()
	return s
}

// sqsOf is a client beside the service's.
func sqsOf(s *localcloud.Site) *sqs.Client {
	return queue.Client(aws.Config{Region: "us-west-2", BaseEndpoint: &s.SQSURL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: localcloud.AccessKey, SecretAccessKey: localcloud.SecretKey}, nil
		})})
}

// missOf and hitOf are rows of an access log.
func missOf(key string) string { return logRow(key, "404 NoSuchKey") }
func hitOf(key string) string  { return logRow(key, "200 -") }

func logRow(key, answer string) string {
	return fmt.Sprintf("owner %s [%s] 203.0.113.9 - REQUEST REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" %s 287 - 11 - \"-\" \"visitor\" -\n",
		localcloud.Bucket, time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), key, key, answer)
}

// putLog puts a log object under the prefix into the log bucket, which announces it.
func putLog(t *testing.T, s *localcloud.Site, name string, rows ...string) {
	t.Helper()
	if err := s.Cloud.PutObject(localcloud.LogBucket, localcloud.LogPrefix+name, []byte(strings.Join(rows, "")), nil); err != nil {
		t.Fatal(err)
	}
}

// putLogs puts n log objects with one miss each; names and missed keys are prefix0, prefix1 …
func putLogs(t *testing.T, s *localcloud.Site, prefix string, n int) (keys []string) {
	t.Helper()
	for i := range n {
		key := fmt.Sprint(prefix, i)
		putLog(t, s, key, missOf(key))
		keys = append(keys, key)
	}
	return keys
}

// requestedOnce checks that the sync queue, from which nobody receives, asks for
// each of keys once and for nothing else.
func requestedOnce(t *testing.T, s *localcloud.Site, keys ...string) {
	t.Helper()
	requestedTimes(t, s, 1, keys...)
}

func requestedTimes(t *testing.T, s *localcloud.Site, times int, keys ...string) {
	t.Helper()
	got := map[string]int{}
	for _, m := range s.Cloud.Messages(localcloud.SyncQueue) {
		r, err := syncrequest.Decode(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		got[r.Key]++
	}
	for _, key := range keys {
		if got[key] != times {
			t.Errorf("%q was requested %d times, want %d", key, got[key], times)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("beside the %d misses were requested: %v", len(keys), got)
	}
}

// parsedOnce waits until the logs queue is empty and checks that no notification
// was received twice.
func parsedOnce(t *testing.T, s *localcloud.Site, within time.Duration) time.Duration {
	t.Helper()
	took := settled(t, s, localcloud.LogsQueue, within)
	if most := s.Cloud.MaxReceives(localcloud.LogsQueue); most > 1 {
		t.Errorf("a notification was received %d times", most)
	}
	return took
}

// deletes is how many entries of delete batches of a queue were accepted.
func deletes(s *localcloud.Site, queue string) int {
	return s.Cloud.Count(strictaws.ServiceSQS, "DeleteMessageBatch", queue).Entries
}

// deadLettersOf are the dead letters of a queue; it waits for n of them.
func deadLettersOf(t *testing.T, s *localcloud.Site, queue string, n int) []strictaws.Message {
	t.Helper()
	var got []strictaws.Message
	ferry.Until(t, 30*time.Second, fmt.Sprintf("%d dead letters of %s, and it is empty", n, queue), func() bool {
		got = s.Cloud.Messages(queue + localcloud.DeadSuffix)
		return len(got) == n && s.Cloud.Depth(queue).Total() == 0
	})
	return got
}

// counted waits until a metric has a value: the service counts an end when it has
// heard that SQS took it.
func counted(t *testing.T, p *ferry.Process, want float64, name string, labels ...string) {
	t.Helper()
	ferry.Until(t, 10*time.Second, fmt.Sprintf("%s%q is %v", name, labels, want), func() bool { return metric(t, p, name, labels...) == want })
}

// onSQS is a fault of one call of one queue.
func onSQS(action, queue string, do strictaws.Effect) strictaws.Fault {
	return strictaws.Fault{Service: strictaws.ServiceSQS, Action: action, Target: queue, Do: do}
}

// onLog is a fault of reading one log object, or any with the name *.
func onLog(name string, do strictaws.Effect) strictaws.Fault {
	return strictaws.Fault{Service: strictaws.ServiceS3, Action: "GetObject", Target: localcloud.LogBucket, Key: localcloud.LogPrefix + name, Do: do}
}
