package interop

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// box is one queue and a client.
type box struct {
	*testing.T
	api *sqs.Client
	url string
}

// open creates a queue with a visibility timeout in seconds.
func open(t *testing.T, c *cloud, visibility int) box {
	t.Helper()
	return box{t, c.sqs(), c.queue(t, map[string]string{"VisibilityTimeout": strconv.Itoa(visibility)})}
}

// set changes an attribute of the queue.
func (b box) set(name, value string) {
	b.Helper()
	if _, err := b.api.SetQueueAttributes(b.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &b.url, Attributes: map[string]string{name: value}}); err != nil {
		b.Fatalf("set %s: %v", name, err)
	}
}

// send sends a message for each body.
func (b box) send(bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		if _, err := b.api.SendMessage(b.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: &body}); err != nil {
			b.Fatalf("send: %v", err)
		}
	}
}

// receive asks once, as a poller does.
func (b box) receive(wait int32) []types.Message {
	b.Helper()
	out, err := b.api.ReceiveMessage(b.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &b.url, MaxNumberOfMessages: 10, WaitTimeSeconds: wait, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp},
	})
	if err != nil {
		b.Fatalf("receive: %v", err)
	}
	return out.Messages
}

// one waits for one message.
func (b box) one() types.Message {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		switch got := b.receive(2); len(got) {
		case 0:
		case 1:
			return got[0]
		default:
			b.Fatalf("received %d messages, want 1", len(got))
		}
	}
	b.Fatal("no message came within 30 s")
	return types.Message{}
}

// hide changes the visibility timeout of m and returns the entry's error.
func (b box) hide(m types.Message, seconds int32) *types.BatchResultErrorEntry {
	b.Helper()
	out, err := b.api.ChangeMessageVisibilityBatch(b.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &b.url,
		Entries: []types.ChangeMessageVisibilityBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds}}})
	return b.entry(len(out.Successful), out.Failed, err)
}

// delete deletes m and returns the entry's error.
func (b box) delete(m types.Message) *types.BatchResultErrorEntry {
	b.Helper()
	out, err := b.api.DeleteMessageBatch(b.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &b.url,
		Entries: []types.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle}}})
	return b.entry(len(out.Successful), out.Failed, err)
}

// entry is what a batch of one says of it.
func (b box) entry(successful int, failed []types.BatchResultErrorEntry, err error) *types.BatchResultErrorEntry {
	b.Helper()
	switch {
	case err != nil:
		b.Fatalf("settle: %v", err)
	case successful+len(failed) != 1:
		b.Fatalf("settle: %d entries were taken and %d failed, want one of one", successful, len(failed))
	case successful == 1:
		return nil
	}
	return &failed[0]
}

// must fails the test when an entry was not taken.
func (b box) must(e *types.BatchResultErrorEntry) {
	b.Helper()
	if e != nil {
		b.Fatalf("the entry failed: %s %s", *e.Code, aws.ToString(e.Message))
	}
}

// gone checks that an entry failed as one whose message is no longer ours; the
// codes are those of internal/queue.
func gone(e *types.BatchResultErrorEntry) error {
	if e == nil {
		return errors.New("it was taken")
	}
	switch short(*e.Code) {
	case "ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue":
		return nil
	}
	return fmt.Errorf("its code is %s", *e.Code)
}

// short drops the prefix that some codes have and others have not.
func short(code string) string { return code[strings.LastIndexByte(code, '.')+1:] }

func count(m types.Message) string { return m.Attributes["ApproximateReceiveCount"] }

// depth is how many messages the queue holds, as a consumer asks.
func (b box) depth() (waiting, inFlight int) {
	b.Helper()
	out, err := b.api.GetQueueAttributes(b.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &b.url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed}})
	if err != nil {
		b.Fatalf("read depth: %v", err)
	}
	number := func(name types.QueueAttributeName) int {
		n, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			b.Fatalf("read depth: %v", err)
		}
		return n
	}
	return number(types.QueueAttributeNameApproximateNumberOfMessages) + number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed),
		number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
}
