package strictaws_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func (r *rig) tryPut(ctx context.Context, key string) (*s3.PutObjectOutput, error) {
	return r.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("media"), Key: &key, Body: strings.NewReader("body")})
}

func TestFaultStrikesWhatItSelects(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	f := r.Faults().Add(strictaws.Fault{Service: strictaws.ServiceS3, Action: "Put*", Target: "media", Key: "a/*", After: 1, Times: 2,
		Do: strictaws.Fail{Status: 503, Code: "SlowDown"}})
	var got []bool
	for range 4 {
		_, err := r.tryPut(t.Context(), "a/x")
		got = append(got, err != nil)
		if err != nil {
			wantCode(t, err, "SlowDown")
		}
	}
	if want := []bool{false, true, true, false}; !slices.Equal(got, want) || f.Hits() != 2 {
		t.Errorf("failed = %v, want %v; hits %d", got, want, f.Hits())
	}
	f.Remove()
	r.Faults().Add(strictaws.Fault{Action: "Put*", Match: func(c strictaws.Call) bool { return c.Key == "odd" }, Do: strictaws.Fail{Status: 409, Code: "ConditionalRequestConflict"}})
	if _, err := r.tryPut(t.Context(), "even"); err != nil {
		t.Errorf("another key: %v", err)
	}
	_, err := r.tryPut(t.Context(), "odd")
	wantCode(t, err, "ConditionalRequestConflict")
	r.Faults().Clear()
	if _, err := r.tryPut(t.Context(), "odd"); err != nil {
		t.Errorf("after Clear: %v", err)
	}
}

func TestSQSErrorsCanBeInjected(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	for code, want := range map[string]string{"ThrottlingException": "ThrottlingException", "OverLimit": "OverLimit", "KmsThrottled": "KMS.ThrottlingException"} {
		f := r.Faults().Add(strictaws.Fault{Action: "ReceiveMessage", Target: "jobs", Do: strictaws.Fail{Status: 400, Code: code}})
		_, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs")})
		wantCode(t, err, want)
		f.Remove()
	}
}

func TestHangLastsUntilRemoved(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	f := r.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Hang{}})
	done := make(chan error)
	go func() {
		_, err := r.tryPut(context.Background(), "k")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.Remove()
	if err := <-done; err == nil || len(r.Keys("media")) != 0 {
		t.Errorf("after the hang: %v, keys %q; want an error and nothing stored", err, r.Keys("media"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Hang{}})
	if _, err := r.tryPut(ctx, "k"); err == nil {
		t.Error("the client's deadline did not end the call")
	}
}

func TestResetCommitsNothing(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Reset{}})
	if _, err := r.tryPut(t.Context(), "k"); err == nil || len(r.Keys("media")) != 0 {
		t.Errorf("reset: %v, keys %q", err, r.Keys("media"))
	}
}

func TestCommittedWritesMayGoUnanswered(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	page := http.Header{"Content-Type": {"text/html"}}
	for key, c := range map[string]struct {
		do    strictaws.Effect
		fails bool
	}{
		"reset":       {strictaws.CommitThenReset{}, true},
		"hang":        {strictaws.CommitThenHang{}, true},
		"empty":       {strictaws.CommitThenAnswer{Status: 200}, false},
		"html":        {strictaws.CommitThenAnswer{Status: 200, Header: page, Body: "<html>hi</html>"}, false},
		"no etag":     {strictaws.DropHeader{Name: "ETag"}, false},
		"not at all":  {strictaws.Answer{Status: 200, Header: page, Body: "<html>hi</html>"}, false},
		"server fail": {strictaws.CommitThenAnswer{Status: 500}, true},
	} {
		f := r.Faults().Add(strictaws.Fault{Action: "PutObject", Key: key, Do: c.do})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		out, err := r.tryPut(ctx, key)
		cancel()
		f.Remove()
		if (err != nil) != c.fails || err == nil && out.ETag != nil {
			t.Errorf("%s: %+v, %v", key, out, err)
		}
		if _, ok := r.Object("media", key); ok == (key == "not at all") {
			t.Errorf("%s: committed = %v", key, ok)
		}
	}
}

func TestFlippedByteIsRefusedByTheChecksum(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	up := r.begin(t, "big", nil)
	f := r.Faults().Add(strictaws.Fault{Do: strictaws.FlipByte{Offset: 2}})
	body := strings.Repeat("x", 300<<10)
	_, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("k"), Body: strings.NewReader(body),
		ChecksumCRC64NVME: nvme(body), ContentLength: aws.Int64(int64(len(body)))})
	wantCode(t, err, "XAmzContentSHA256Mismatch")
	one := int32(1)
	_, err = r.s3.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: up.Bucket, Key: up.Key, UploadId: up.UploadId, PartNumber: &one, Body: strings.NewReader(body), ChecksumCRC64NVME: nvme(body)})
	wantCode(t, err, "XAmzContentSHA256Mismatch")
	if f.Hits() != 2 || len(r.Keys("media")) != 0 {
		t.Errorf("hits %d, keys %q", f.Hits(), r.Keys("media"))
	}
	f.Remove()

	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{})
	cloud.Faults().Add(strictaws.Fault{Do: strictaws.FlipByte{Offset: 4}})
	const h = "X-Amz-Checksum-Crc64nvme"
	if got := putRaw(cloud, "hello", http.Header{h: {sums("hello")[h]}}); got != "400 BadDigest" {
		t.Errorf("flipped last byte of an unsigned payload: %s", got)
	}
}

func TestRateLimitAnswersSlowDown(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Faults().Add(strictaws.Fault{Service: strictaws.ServiceS3, Do: strictaws.RateLimit{PerSecond: 20, Burst: 3}})
	slow := 0
	for range 10 {
		if _, err := r.tryPut(t.Context(), "k"); err != nil {
			wantCode(t, err, "SlowDown")
			slow++
		}
	}
	if slow == 0 || slow > 7 {
		t.Errorf("%d of 10 slowed down, with a burst of 3", slow)
	}
	time.Sleep(100 * time.Millisecond)
	if _, err := r.tryPut(t.Context(), "k"); err != nil {
		t.Errorf("after a pause: %v", err)
	}
}

func TestDelayHoldsTheCallBack(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Delay{For: 60 * time.Millisecond}})
	began := time.Now()
	if _, err := r.tryPut(t.Context(), "k"); err != nil || time.Since(began) < 60*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestSingleEntriesFail(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	send := func() *sqs.SendMessageBatchOutput {
		out, err := r.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: entries("a", "b", "c")})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	byBody := r.Faults().Add(strictaws.Fault{Action: "SendMessageBatch", Times: 1, Do: strictaws.FailEntry{Body: func(b string) bool { return b == "b" }}})
	for _, want := range []int{1, 0} {
		out := send()
		if len(out.Failed) != want || want == 1 && *out.Failed[0].Id != "1" {
			t.Errorf("failed = %+v, want %d", out.Failed, want)
		}
	}
	byBody.Remove()
	r.Faults().Add(strictaws.Fault{Action: "DeleteMessageBatch", Do: strictaws.FailEntry{Indexes: []int{0, 4}, Code: "ServiceUnavailable"}})
	var in []sqstypes.DeleteMessageBatchRequestEntry
	for i, m := range r.receive(t, "jobs", 0) {
		in = append(in, sqstypes.DeleteMessageBatchRequestEntry{Id: entries("", "", "", "", "")[i].Id, ReceiptHandle: m.ReceiptHandle})
	}
	out, err := r.sqs.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: in})
	if err != nil || len(out.Failed) != 2 || len(out.Successful) != 3 || *out.Failed[1].Id != "4" || *out.Failed[1].Code != "ServiceUnavailable" {
		t.Errorf("DeleteMessageBatch = %+v, %v", out, err)
	}
	if d := r.Depth("jobs"); d.InFlight != 2 {
		t.Errorf("Depth = %+v, want the two that failed", d)
	}
}

func TestDuplicateDeliveriesHaveTheirOwnReceipts(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Faults().Add(strictaws.Fault{Target: "jobs", Times: 1, Do: strictaws.Duplicate{}})
	r.send(t, "x", nil)
	got := r.receive(t, "jobs", 0)
	if len(got) != 2 || *got[0].MessageId != *got[1].MessageId || *got[0].ReceiptHandle == *got[1].ReceiptHandle {
		t.Fatalf("received %+v, want the same message twice", got)
	}
	if n := r.Receives("jobs")[*got[0].MessageId]; n != 2 {
		t.Errorf("journal has %d receives", n)
	}
	for _, m := range got {
		if err := r.remove(m); err != nil {
			t.Error(err)
		}
	}
	if d := r.Depth("jobs"); d.Total() != 0 {
		t.Errorf("Depth = %+v", d)
	}
}

func TestStaleReceiptsDoNothing(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Faults().Add(strictaws.Fault{Times: 1, Do: strictaws.StaleReceipt{}})
	r.send(t, "x", nil)
	m := r.receive(t, "jobs", 0)[0]
	if err := r.remove(m); err != nil || r.Depth("jobs").InFlight != 1 {
		t.Errorf("delete: %v, %+v; want success and no effect", err, r.Depth("jobs"))
	}
	wantCode(t, r.hide(m, 5), "InvalidParameterValue")
}

func TestFaultsMayChangeWhileCallsRun(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 25 {
				_, _ = r.tryPut(context.Background(), "k")
			}
		})
	}
	for range 50 {
		f := r.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Fail{Status: 500, Code: "InternalError"}})
		r.Deny("*", "s3:PutObject", "media/*")
		f.Hits()
		f.Remove()
		r.Allow("*", "s3:PutObject", "media/*")
	}
	calls.Wait()
	if n := r.Count(strictaws.ServiceS3, "PutObject", "media").Calls; n != 100 {
		t.Errorf("counted %d calls, want 100", n)
	}
}

func TestEveryCallIsCounted(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	if _, err := r.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: entries("a", "b", "\x01")}); err != nil {
		t.Fatal(err)
	}
	r.receive(t, "jobs", 0)
	r.receive(t, "jobs", 0) // finds nothing
	for action, want := range map[string]strictaws.Count{"SendMessageBatch": {Calls: 1, Entries: 2}, "ReceiveMessage": {Calls: 2, Entries: 2}, "": {Calls: 3, Entries: 4}} {
		if got := r.Count(strictaws.ServiceSQS, action, "jobs"); got != want {
			t.Errorf("Count(%q) = %+v, want %+v", action, got, want)
		}
	}
	r.ResetCounts()
	if got := r.Count("", "", ""); got != (strictaws.Count{}) {
		t.Errorf("after ResetCounts: %+v", got)
	}
}
