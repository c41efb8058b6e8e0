package strictaws_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func entries(bodies ...string) (out []types.SendMessageBatchRequestEntry) {
	for i, b := range bodies {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(b)})
	}
	return out
}

func (r *rig) send(t *testing.T, body string, attributes map[string]string) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: r.queueURL("jobs"), MessageBody: &body, MessageAttributes: textAttributes(attributes)}
	if _, err := r.sqs.SendMessage(t.Context(), in); err != nil {
		t.Fatalf("SendMessage: %v", err)
	}
}

func textAttributes(in map[string]string) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for k, v := range in {
		out[k] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
	}
	return out
}

// receive receives up to ten messages with everything that can be asked for.
func (r *rig) receive(t *testing.T, queue string, wait int32) []types.Message {
	t.Helper()
	out, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL(queue), MaxNumberOfMessages: 10, WaitTimeSeconds: wait,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"}})
	if err != nil {
		t.Fatalf("ReceiveMessage: %v", err)
	}
	return out.Messages
}

func (r *rig) hide(m types.Message, seconds int32) error {
	_, err := r.sqs.ChangeMessageVisibility(context.Background(), &sqs.ChangeMessageVisibilityInput{QueueUrl: r.queueURL("jobs"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

func (r *rig) remove(m types.Message) error {
	_, err := r.sqs.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: r.queueURL("jobs"), ReceiptHandle: m.ReceiptHandle})
	return err
}

func TestMessageComesAsItWasSent(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	attributes := textAttributes(map[string]string{"traceparent": "00-1-2-01", "our.end": "failed"})
	attributes["bin"] = types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}}
	attributes["n"] = types.MessageAttributeValue{DataType: aws.String("Number.int"), StringValue: aws.String("7")}
	body := "测试 <&> \t\r\n \U0001F600"
	sent, err := r.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: r.queueURL("jobs"), MessageBody: &body, MessageAttributes: attributes,
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1")}}})
	if err != nil {
		t.Fatal(err)
	}
	// computed elsewhere; the SDK compares the digest of the body only
	if got, want := *sent.MD5OfMessageAttributes, "3720d0efb06144d7e0d8d39679f7644f"; got != want {
		t.Errorf("MD5OfMessageAttributes = %s, want %s", got, want)
	}
	for _, c := range []struct {
		names []string
		want  []string
	}{{nil, nil}, {[]string{"All"}, []string{"bin", "n", "our.end", "traceparent"}}, {[]string{"our.*", "n"}, []string{"n", "our.end"}}} {
		out, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs"), MessageAttributeNames: c.names,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("ReceiveMessage = %+v, %v", out, err)
		}
		m := out.Messages[0]
		if *m.Body != body || m.Attributes["AWSTraceHeader"] != "Root=1" {
			t.Errorf("message = %q %v", *m.Body, m.Attributes)
		}
		var got []string
		for _, name := range []string{"bin", "n", "our.end", "traceparent"} {
			if _, ok := m.MessageAttributes[name]; ok {
				got = append(got, name)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("asked for %q (-want +got):\n%s", c.names, d)
		}
		if err := r.hide(m, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSendsRefuseWhatSQSDoesNotCarry(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	eleven := map[string]string{}
	for i := range 11 {
		eleven[fmt.Sprint("a", i)] = "x"
	}
	for _, c := range []struct {
		name, body string
		attributes map[string]string
		code       string
	}{
		{"control character", "a\x01b", nil, "InvalidMessageContents"},
		{"U+FFFE", "a\uFFFEb", nil, "InvalidMessageContents"},
		{"too long", strings.Repeat("x", 1<<20+1), nil, "InvalidParameterValue"},
		{"too long with its attributes", strings.Repeat("x", 1<<20-5), map[string]string{"a": "x"}, "InvalidParameterValue"},
		{"empty", "", nil, "MissingParameter"},
		{"eleven attributes", "x", eleven, "InvalidParameterValue"},
		{"attribute name", "x", map[string]string{"a b": "x"}, "InvalidParameterValue"},
		{"reserved attribute name", "x", map[string]string{"AWS.x": "x"}, "InvalidParameterValue"},
		{"empty attribute", "x", map[string]string{"a": ""}, "InvalidParameterValue"},
		{"attribute's characters", "x", map[string]string{"a": "\x02"}, "InvalidMessageContents"},
	} {
		_, err := r.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: r.queueURL("jobs"), MessageBody: &c.body, MessageAttributes: textAttributes(c.attributes)})
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.code) })
	}
	if d := r.Depth("jobs"); d.Total() != 0 {
		t.Errorf("refused messages were stored: %+v", d)
	}
	r.send(t, strings.Repeat("x", 1<<20), nil)
}

func TestBatchesAreRefusedAsAWhole(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	twice, odd := entries("a", "b"), entries("a")
	twice[1].Id, odd[0].Id = twice[0].Id, aws.String("a b")
	half := strings.Repeat("x", 1<<19)
	for _, c := range []struct {
		name, code string
		in         []types.SendMessageBatchRequestEntry
	}{
		{"none", "AWS.SimpleQueueService.EmptyBatchRequest", entries()},
		{"eleven", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", entries(strings.Split("abcdefghijk", "")...)},
		{"same id", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", twice},
		{"bad id", "AWS.SimpleQueueService.InvalidBatchEntryId", odd},
		{"over 1 MiB in all", "AWS.SimpleQueueService.BatchRequestTooLong", entries(half, half, "x")},
	} {
		if c.in == nil {
			c.in = []types.SendMessageBatchRequestEntry{}
		}
		_, err := r.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: c.in})
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.code) })
	}
	if d := r.Depth("jobs"); d.Total() != 0 {
		t.Errorf("stored: %+v", d)
	}
	if _, err := r.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: entries(half, half)}); err != nil {
		t.Errorf("exactly 1 MiB: %v", err)
	}
}

func TestOneBadEntryFailsAlone(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	out, err := r.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: entries("a", "\x01", "c")})
	if err != nil || len(out.Successful) != 2 || len(out.Failed) != 1 || *out.Failed[0].Id != "1" || *out.Failed[0].Code != "InvalidMessageContents" || !out.Failed[0].SenderFault {
		t.Errorf("SendMessageBatch = %+v, %v", out, err)
	}
}

func TestReceiptHandlesOfAnEarlierReceiveDoNothing(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.send(t, "x", nil)
	first := r.receive(t, "jobs", 0)[0]
	if err := r.hide(first, 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.hide(first, 10), "AWS.SimpleQueueService.MessageNotInflight")
	second := r.receive(t, "jobs", 0)[0]
	if second.Attributes["ApproximateReceiveCount"] != "2" || *second.ReceiptHandle == *first.ReceiptHandle {
		t.Errorf("second receive = %+v", second)
	}
	if err := r.remove(first); err != nil || r.Depth("jobs").InFlight != 1 {
		t.Errorf("delete by a stale handle: %v, %+v; want success and no effect", err, r.Depth("jobs"))
	}
	wantCode(t, r.hide(first, 10), "InvalidParameterValue")
	if err := r.remove(second); err != nil || r.Depth("jobs").Total() != 0 {
		t.Errorf("delete: %v, %+v", err, r.Depth("jobs"))
	}
	if err := r.remove(second); err != nil {
		t.Errorf("second delete: %v", err)
	}
	wantCode(t, r.hide(second, 10), "InvalidParameterValue")
	garbage := types.Message{ReceiptHandle: aws.String("garbage")}
	wantCode(t, r.remove(garbage), "ReceiptHandleIsInvalid")
	wantCode(t, r.hide(garbage, 1), "ReceiptHandleIsInvalid")
}

func TestMessageCanBeDeletedAfterItsTimeout(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.send(t, "x", nil)
	m := r.receive(t, "jobs", 0)[0]
	if err := r.hide(m, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.remove(m); err != nil || r.Depth("jobs").Total() != 0 {
		t.Errorf("delete of a message that nobody received again: %v, %+v", err, r.Depth("jobs"))
	}
	if got := r.receive(t, "jobs", 0); len(got) != 0 {
		t.Errorf("deleted, but received: %v", got)
	}
}

func TestVisibilityHasLimits(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.send(t, "x", nil)
	m := r.receive(t, "jobs", 0)[0]
	for seconds, code := range map[int32]string{-1: "InvalidParameterValue", 43201: "InvalidParameterValue"} {
		wantCode(t, r.hide(m, seconds), code)
	}
	time.Sleep(10 * time.Millisecond) // any later than the receive, 12 h are too much
	wantCode(t, r.hide(m, 43200), "InvalidParameterValue")
	if err := r.hide(m, 43199); err != nil {
		t.Errorf("just under 12 h from the receive: %v", err)
	}
	_, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs"), MaxNumberOfMessages: 11})
	wantCode(t, err, "InvalidParameterValue")
	_, err = r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs"), WaitTimeSeconds: 21})
	wantCode(t, err, "InvalidParameterValue")
}

func TestTooManyReceivesGoToTheDeadLetters(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	if err := r.CreateQueue("jobs-dead", nil); err != nil {
		t.Fatal(err)
	}
	_, err := r.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: r.queueURL("jobs"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + r.QueueARN("jobs-dead") + `","maxReceiveCount":"2"}`}})
	if err != nil {
		t.Fatal(err)
	}
	r.send(t, "x", map[string]string{"traceparent": "00"})
	var id, sent string
	for range 2 {
		m := r.receive(t, "jobs", 0)
		if len(m) != 1 {
			t.Fatalf("received %d messages", len(m))
		}
		id, sent = *m[0].MessageId, m[0].Attributes["SentTimestamp"]
		if err := r.hide(m[0], 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Depth("jobs-dead").Total(); n != 0 {
		t.Fatalf("dead letter before the receive that would exceed the policy")
	}
	if m := r.receive(t, "jobs", 0); len(m) != 0 {
		t.Fatalf("third receive = %+v", m)
	}
	m := r.receive(t, "jobs-dead", 0)
	if len(m) != 1 || *m[0].MessageId != id || *m[0].Body != "x" || *m[0].MessageAttributes["traceparent"].StringValue != "00" ||
		m[0].Attributes["SentTimestamp"] != sent || m[0].Attributes["ApproximateReceiveCount"] != "3" || m[0].Attributes["DeadLetterQueueSourceArn"] != r.QueueARN("jobs") {
		t.Errorf("dead letter = %+v", m)
	}
	list, err := r.sqs.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: r.queueURL("jobs-dead")})
	if err != nil || len(list.QueueUrls) != 1 || list.QueueUrls[0] != *r.queueURL("jobs") {
		t.Errorf("ListDeadLetterSourceQueues = %+v, %v", list, err)
	}
	if n := r.MaxReceives("jobs"); n != 2 {
		t.Errorf("MaxReceives = %d", n)
	}
}

func TestQueueAttributes(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	create := func(a map[string]string) error {
		_, err := r.sqs.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: a})
		return err
	}
	want := map[string]string{"VisibilityTimeout": "7", "MessageRetentionPeriod": "604800", "DelaySeconds": "1", "ReceiveMessageWaitTimeSeconds": "2", "MaximumMessageSize": "2048"}
	if err := create(want); err != nil {
		t.Fatal(err)
	}
	if err := create(want); err != nil {
		t.Errorf("the same again: %v", err)
	}
	wantCode(t, create(map[string]string{"VisibilityTimeout": "8"}), "QueueAlreadyExists")
	for name, value := range map[string]string{"VisibilityTimeout": "43201", "DelaySeconds": "901", "MessageRetentionPeriod": "59", "RedrivePolicy": `{"maxReceiveCount":3}`} {
		_, err := r.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: r.queueURL("q"), Attributes: map[string]string{name: value}})
		wantCode(t, err, "InvalidAttributeValue")
	}
	got, err := r.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: r.queueURL("q"), AttributeNames: []types.QueueAttributeName{"VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds", "ReceiveMessageWaitTimeSeconds", "MaximumMessageSize"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.Attributes); d != "" {
		t.Error(d)
	}
	if _, err := r.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: r.queueURL("q"), MessageBody: aws.String("x")}); err != nil {
		t.Fatal(err)
	}
	if d := r.Depth("q"); d.Delayed != 1 {
		t.Errorf("Depth = %+v, want the message delayed", d)
	}
	_, err = r.sqs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue")
	list, err := r.sqs.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("j")})
	if err != nil || cmp.Diff([]string{*r.queueURL("jobs")}, list.QueueUrls) != "" {
		t.Errorf("ListQueues = %+v, %v", list, err)
	}
	if _, err := r.sqs.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: r.queueURL("q")}); err != nil || r.Depth("q").Total() != 0 {
		t.Errorf("PurgeQueue: %v, %+v", err, r.Depth("q"))
	}
	_, err = r.sqs.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(r.QueueARN("q"))})
	wantCode(t, err, "AWS.SimpleQueueService.UnsupportedOperation")
}

func TestInFlightLimit(t *testing.T) {
	r := newRig(t, strictaws.Config{MaxInFlight: 1})
	r.send(t, "a", nil)
	r.send(t, "b", nil)
	if got := r.receive(t, "jobs", 0); len(got) != 1 {
		t.Fatalf("received %d, want as many as may be in flight", len(got))
	}
	if got := r.receive(t, "jobs", 1); len(got) != 0 {
		t.Errorf("a long poll found %d", len(got))
	}
	_, err := r.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs")})
	wantCode(t, err, "OverLimit")
}

func TestErrorsCarryTheJSONType(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{})
	server, err := cloud.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", server.SQSURL, strings.NewReader(`{"QueueName":"none"}`))
	req.Header.Set("X-Amz-Target", "AmazonSQS.GetQueueUrl")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 400 || !strings.Contains(string(body), `"__type":"com.amazonaws.sqs#QueueDoesNotExist"`) {
		t.Errorf("%s %s", resp.Status, body)
	}
}
