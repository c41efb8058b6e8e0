package strictaws_test

import (
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestMissIsLoggedDeliveredAndAnnounced(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.CreateBucket("logs", strictaws.Bucket{Notify: []strictaws.Notification{{ID: "logs", Queue: "jobs", Prefix: "access/"}}})
	r.CreateBucket("public", strictaws.Bucket{PublicRead: true, PublicList: true, LogBucket: "logs", LogPrefix: "access/"})

	resp, body := r.request(t, "GET", "/public/a%20b//%2Bc.jpg?x=1", "", nil)
	if resp.StatusCode != 404 || !strings.Contains(body, "<Code>NoSuchKey</Code>") {
		t.Fatalf("GET of a missing key = %s %s", resp.Status, body)
	}
	if n := r.FlushLogs(); n != 1 {
		t.Fatalf("FlushLogs = %d objects, want 1", n)
	}
	keys := r.Keys("logs")
	if len(keys) != 1 {
		t.Fatalf("log objects = %q, want one", keys)
	}
	log, _ := r.Object("logs", keys[0])
	t.Logf("%s", log.Body)
	row := string(log.Body)
	for _, want := range []string{` REST.GET.OBJECT a%2520b//%252Bc.jpg "GET /public/a%20b//%2Bc.jpg?x=1 HTTP/1.1" 404 NoSuchKey `} {
		if !strings.Contains(row, want) {
			t.Errorf("row %q lacks %q", row, want)
		}
	}
	out, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs"), MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil || len(out.Messages) != 2 {
		t.Fatalf("ReceiveMessage = %v, %v; want the test event and the log's", out, err)
	}
	for i, want := range []string{`"s3:TestEvent"`, `"key":"` + keys[0] + `"`} {
		if m := out.Messages[i]; !strings.Contains(*m.Body, want) || m.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("message %d = %s %v, want %s", i, *m.Body, m.Attributes, want)
		}
		if _, err := r.sqs.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: r.queueURL("jobs"), ReceiptHandle: out.Messages[i].ReceiptHandle}); err != nil {
			t.Error(err)
		}
	}
	if d := r.Depth("jobs"); d.Total() != 0 {
		t.Errorf("Depth after deletes = %+v", d)
	}
}

func TestObjectComesBackAsItWas(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	in := &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("a b/x.gz"), Body: strings.NewReader("zipped"), ContentType: aws.String("text/css"),
		ContentEncoding: aws.String("gzip"), CacheControl: aws.String("max-age=1"), Metadata: map[string]string{"who": "me"}, IfNoneMatch: aws.String("*")}
	put, err := r.s3.PutObject(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: in.Bucket, Key: in.Key})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(got.Body)
	if string(body) != "zipped" || *got.ContentType != "text/css" || *got.ContentEncoding != "gzip" || *got.CacheControl != "max-age=1" ||
		got.Metadata["who"] != "me" || *got.ETag != *put.ETag {
		t.Errorf("GetObject = %+v %q", got, body)
	}
	in.Body = strings.NewReader("other")
	_, err = r.s3.PutObject(t.Context(), in)
	wantCode(t, err, "PreconditionFailed")
}
