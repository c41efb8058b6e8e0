package deadletter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// open starts an SQS with one queue and returns its dead letters.
func open(t *testing.T) (*strictaws.Cloud, *Box) {
	t.Helper()
	cloud := strictaws.New(strictaws.Config{})
	server, err := cloud.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":30}`, cloud.QueueARN("sync-dead"))
	if err := errors.Join(cloud.CreateQueue("sync-dead", nil), cloud.CreateQueue("sync", map[string]string{"RedrivePolicy": policy})); err != nil {
		t.Fatal(err)
	}
	client := queue.Client(aws.Config{Region: "us-west-2", BaseEndpoint: &server.SQSURL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	box, err := Open(t.Context(), client, "sync", server.SQSURL+cloud.QueuePath("sync"))
	if err != nil {
		t.Fatal(err)
	}
	box.wait = 0
	return cloud, box
}

// die puts a letter for a key into the dead-letter queue; detail "" is one that
// SQS moved itself.
func die(t *testing.T, cloud *strictaws.Cloud, key, detail string) {
	t.Helper()
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: "overseas-media", Key: key, Seen: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{"traceparent": traceparent}
	if detail != "" {
		attributes = map[string]string{"traceparent": traceparent, "end": "failed", "detail": detail, "receives": "8", "dead_at": "2026-09-04T09:00:00Z"}
	}
	if err := cloud.Send("sync-dead", body, attributes); err != nil {
		t.Fatal(err)
	}
}

func all(*Letter) (bool, error)  { return true, nil }
func none(*Letter) (bool, error) { return false, nil }

func TestLookingHandsEverythingBack(t *testing.T) {
	cloud, box := open(t)
	for i := range 25 {
		die(t, cloud, fmt.Sprint(i), "corrupt")
	}
	seen := 0
	if _, err := box.Look(t.Context(), func(*Letter) (bool, error) { seen++; return false, nil }); err != nil {
		t.Fatal(err)
	}
	if d := cloud.Depth("sync-dead"); seen != 25 || d.Waiting != 25 {
		t.Errorf("saw %d of 25 letters, and %+v stand there after it", seen, d)
	}
	if _, err := box.Look(t.Context(), func(*Letter) (bool, error) { return true, errors.New("enough") }); err == nil {
		t.Error("the visitor's error is lost")
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 25 {
		t.Errorf("after an error %+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := box.Look(ctx, func(*Letter) (bool, error) { cancel(); return true, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 25 {
		t.Errorf("after an interrupt %+v", d)
	}
}

func TestLookingHoldsNoMoreThanAVisitorCan(t *testing.T) {
	cloud, box := open(t)
	for i := range 25 {
		die(t, cloud, fmt.Sprint(i), "corrupt")
	}
	held := 0
	letters, err := box.Look(t.Context(), func(*Letter) (bool, error) {
		if held++; held == 13 {
			return true, ErrEnough
		}
		return true, nil
	})
	if err != nil || len(letters) != 13 {
		t.Errorf("%d letters are held, %v; want 13", len(letters), err)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 12 {
		t.Errorf("%+v, want the other 12 handed back", d)
	}
}

func TestLettersAreGroupedByReason(t *testing.T) {
	cloud, box := open(t)
	want := map[string]int{}
	for i := range 20 {
		detail := []string{"throttled", "unavailable", "changed", "corrupt", ""}[i%5]
		die(t, cloud, fmt.Sprint(i), detail)
		if detail == "" {
			detail = "interrupted" // moved by SQS itself
		}
		want["failed "+detail]++
	}
	groups := Groups{}
	if _, err := box.Look(t.Context(), func(l *Letter) (bool, error) { groups.Add(l); return false, nil }); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, g := range groups.Sorted() {
		got[g.Example.Reason()] = g.Letters
		if g.Example.Key == "" || g.Example.TraceID != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("the example of %s %s is %+v", g.End, g.Detail, g.Example)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestRedriveSendsThenDeletes(t *testing.T) {
	cloud, box := open(t)
	for i := range 12 {
		die(t, cloud, fmt.Sprint(i), "unavailable")
	}
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	// Entry 3 of each batch is refused: it stays a dead letter.
	cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "SendMessageBatch", Target: "sync", Do: strictaws.FailEntry{Indexes: []int{3}}})
	done, err := box.Redrive(t.Context(), letters, 0)
	if done != 11 || err == nil || !strings.Contains(err.Error(), letters[3].ID) {
		t.Errorf("%d redriven, %v; want 11 and an error that names letter %s", done, err, letters[3].ID)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 1 || d.InFlight != 0 {
		t.Errorf("dead letters: %+v, want the refused one handed back", d)
	}
	redriven := cloud.Messages("sync")
	if len(redriven) != 11 {
		t.Fatalf("%d messages in the queue, want 11", len(redriven))
	}
	if diff := cmp.Diff(map[string]string{"traceparent": traceparent, "redriven": "1"}, redriven[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

// TestRedriveIsCounted: a letter that dies again says how often it was redriven.
func TestRedriveIsCounted(t *testing.T) {
	cloud, box := open(t)
	if err := cloud.Send("sync-dead", "{}", map[string]string{"redriven": "2", "end": "failed", "detail": "corrupt"}); err != nil {
		t.Fatal(err)
	}
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Redrive(t.Context(), letters, 0); err != nil {
		t.Fatal(err)
	}
	if got := cloud.Messages("sync")[0].Attributes["redriven"]; got != "3" {
		t.Errorf("redriven %q, want 3", got)
	}
}

func TestRedriveNeverDeletesWhatWasNotSent(t *testing.T) {
	cloud, box := open(t)
	die(t, cloud, "a", "corrupt")
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "SendMessageBatch", Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
	if done, err := box.Redrive(t.Context(), letters, 0); done != 0 || err == nil {
		t.Errorf("%d redriven, %v", done, err)
	}
	if n := cloud.Depth("sync-dead").Waiting; n != 1 {
		t.Errorf("%d letters are left, want 1", n)
	}
}

func TestRateBoundsRedrive(t *testing.T) {
	cloud, box := open(t)
	for i := range 20 {
		die(t, cloud, fmt.Sprint(i), "corrupt")
	}
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := box.Redrive(t.Context(), letters, 50); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 400*time.Millisecond {
		t.Errorf("20 letters at 50 a second took %s", took)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestDropWritesThenDeletes(t *testing.T) {
	cloud, box := open(t)
	die(t, cloud, "a b\n", "corrupt")
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := box.Drop(t.Context(), letters, failingWriter{}, 0); done != 0 || err == nil {
		t.Errorf("%d dropped, %v, although they could not be written", done, err)
	}
	if letters, err = box.Look(t.Context(), all); err != nil || len(letters) != 1 {
		t.Fatalf("%d letters are left, %v; want 1", len(letters), err)
	}
	var file bytes.Buffer
	if done, err := box.Drop(t.Context(), letters, &file, 0); done != 1 || err != nil {
		t.Errorf("%d dropped, %v", done, err)
	}
	var kept Letter
	if err := json.Unmarshal(file.Bytes(), &kept); err != nil || kept.Key != "a%20b%0A" || kept.Detail != "corrupt" {
		t.Errorf("kept %s, %v", file.String(), err)
	}
	if n := cloud.Depth("sync-dead").Total(); n != 0 {
		t.Errorf("%d letters are left", n)
	}
}

func TestFilter(t *testing.T) {
	cloud, box := open(t)
	die(t, cloud, "img/a.jpg", "corrupt")
	die(t, cloud, "img/b.jpg", "throttled")
	die(t, cloud, "doc/c.pdf", "corrupt")
	if err := cloud.Send("sync-dead", "not ours", map[string]string{"end": "poison", "detail": "undecoded"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter Filter
		want   int
	}{
		{Filter{}, 4}, {Filter{Detail: "corrupt"}, 2}, {Filter{Match: "img/**"}, 2}, {Filter{Detail: "corrupt", Match: "img/*"}, 1},
		{Filter{End: "poison"}, 1}, {Filter{Match: "**"}, 3},
	} {
		if err := c.filter.Validate(); err != nil {
			t.Fatal(err)
		}
		n := 0
		if _, err := box.Look(t.Context(), func(l *Letter) (bool, error) {
			if c.filter.Wants(l) {
				n++
			}
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
		if n != c.want {
			t.Errorf("%+v wants %d letters, want %d", c.filter, n, c.want)
		}
	}
	if err := (&Filter{End: "gone", Match: "[a"}).Validate(); err == nil || !strings.Contains(err.Error(), "end") || !strings.Contains(err.Error(), "match") {
		t.Errorf("a wrong filter gives %v, want both problems", err)
	}
}

func TestLogLettersNameTheirLog(t *testing.T) {
	cloud, box := open(t)
	if err := cloud.Send("sync-dead", s3event.Format(s3event.Record{Bucket: "log-bucket", Key: "access/1", Size: -1}), nil); err != nil {
		t.Fatal(err)
	}
	var got string
	if _, err := box.Look(t.Context(), func(l *Letter) (bool, error) { got = l.Bucket + "/" + l.Key; return none(l) }); err != nil {
		t.Fatal(err)
	}
	if got != "log-bucket/access/1" {
		t.Errorf("the letter is about %q", got)
	}
}

func TestQueueWithoutRedrivePolicyIsRefused(t *testing.T) {
	cloud, box := open(t)
	if err := cloud.CreateQueue("bare", nil); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), box.api, "bare", strings.Replace(box.source, "/sync", "/bare", 1))
	if err == nil || !strings.Contains(err.Error(), "no redrive policy") {
		t.Errorf("error %v", err)
	}
}
