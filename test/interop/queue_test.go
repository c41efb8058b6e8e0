package interop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// TestQueueContract is what internal/queue builds on.
func TestQueueContract(t *testing.T) {
	contract(t, slices.Concat(messageRules, batchRules, engineRules))
}

var messageRules = []rule{
	{"each receive is counted and has a receipt of its own", nil, eachReceiveIsCounted},
	{"body and attributes arrive as they were sent", nil, bodyAndAttributesArrive},
	{"a message of 1 MiB is carried", nil, mebibyteIsCarried},
	{"what is received is nobody else's until its timeout", nil, invisibleUntilTimeout},
	{"an extension keeps a message longer", nil, extensionKeeps},
	{"what is handed back with 0 comes back at once", nil, handedBackAtOnce},
	{"what is handed back for a while comes back then and not before", nil, handedBackForAWhile},
	{"a delay is kept", nil, delayIsKept},
	{"a long poll ends when a message comes", nil, longPollEnds},
	{"a long poll of an empty queue waits and brings nothing", nil, longPollWaits},
	{"deleting twice is no error", nil, deletingTwice},
	{"a delete with a stale receipt is done or told as gone", nil, staleDelete},
	{"an extension of what was deleted is told as gone", nil, extensionOfDeleted},
	{"an extension of what timed out is told as gone", lacks{"moto": "takes the receipts of all earlier receives"}, extensionOfTimedOut},
	{"an extension with a stale receipt is told as gone", lacks{"moto": "takes the receipts of all earlier receives"}, staleExtension},
	{"the receive after the last moves a message to the dead letters as it was", nil, redrivePolicyMoves},
	{"the settings that a consumer reads are told", nil, settingsAreTold},
	{"what waits and what is in flight is counted", nil, depthIsTold},
}

func eachReceiveIsCounted(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	first := b.one()
	b.must(b.hide(first, 0))
	second := b.one()
	switch {
	case count(first) != "1" || count(second) != "2":
		return fmt.Errorf("counted %s, then %s", count(first), count(second))
	case *first.MessageId != *second.MessageId:
		return errors.New("the message's id changed")
	case *first.ReceiptHandle == *second.ReceiptHandle:
		return errors.New("both receives have the same receipt")
	case first.Attributes["SentTimestamp"] != second.Attributes["SentTimestamp"]:
		return errors.New("the time of its sending changed")
	}
	ms, err := strconv.ParseInt(first.Attributes["SentTimestamp"], 10, 64)
	if age := time.Since(time.UnixMilli(ms)); err != nil || age < -time.Second || age > time.Minute {
		return fmt.Errorf("sent %s ago (%q)", age, first.Attributes["SentTimestamp"])
	}
	return nil
}

func bodyAndAttributesArrive(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	body := "{\"key\":\"m%C3%BCnchen\"}\n\t\r <&>\"' 测试 \U0001F600 \uFFFD"
	attributes := map[string]types.MessageAttributeValue{
		"traceparent": {DataType: aws.String("String"), StringValue: aws.String("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		"text":        {DataType: aws.String("String"), StringValue: aws.String("über <&> 测试")},
		"number":      {DataType: aws.String("Number"), StringValue: aws.String("42")},
		"bytes":       {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 0xff}},
	}
	for i := range 6 { // ten in all
		attributes[fmt.Sprintf("more-%d", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
	}
	if _, err := b.api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: &body, MessageAttributes: attributes}); err != nil {
		return err
	}
	got := b.one()
	if *got.Body != body {
		return fmt.Errorf("body %q became %q", body, *got.Body)
	}
	if diff := cmp.Diff(plain(attributes), plain(got.MessageAttributes)); diff != "" {
		return fmt.Errorf("attributes (-sent +received):\n%s", diff)
	}
	return nil
}

// plain makes attributes comparable.
func plain(attributes map[string]types.MessageAttributeValue) map[string]string {
	out := map[string]string{}
	for name, v := range attributes {
		out[name] = *v.DataType + ":" + aws.ToString(v.StringValue) + string(v.BinaryValue)
	}
	return out
}

func mebibyteIsCarried(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	body := strings.Repeat("x", 1<<20)
	if _, err := b.api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: &body}); err != nil {
		return err
	}
	if got := b.one(); *got.Body != body {
		return fmt.Errorf("%d bytes came", len(*got.Body))
	}
	return nil
}

func invisibleUntilTimeout(t *testing.T, c *cloud) error {
	b := open(t, c, 3)
	b.send("x")
	start := time.Now()
	b.one()
	if n := len(b.receive(0)); n != 0 && time.Since(start) < 3*time.Second {
		return errors.New("it was received twice at once")
	}
	if again := b.one(); count(again) != "2" {
		return fmt.Errorf("it came back with count %s", count(again))
	}
	return nil
}

func extensionKeeps(t *testing.T, c *cloud) error {
	b := open(t, c, 3)
	b.send("x")
	m := b.one()
	b.must(b.hide(m, 60))
	if n := len(b.receive(5)); n != 0 {
		return errors.New("it came back although it was extended")
	}
	b.must(b.hide(m, 0)) // the receipt is good still
	b.one()
	return nil
}

func handedBackAtOnce(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	b.must(b.hide(b.one(), 0))
	if again := b.one(); count(again) != "2" {
		return fmt.Errorf("it came back with count %s", count(again))
	}
	return nil
}

func handedBackForAWhile(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	m := b.one()
	start := time.Now()
	b.must(b.hide(m, 2))
	b.one()
	if took := time.Since(start); took < 1500*time.Millisecond || took > 30*time.Second {
		return fmt.Errorf("it came back after %s, want about 2s", took)
	}
	return nil
}

func delayIsKept(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	start := time.Now()
	if _, err := b.api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("x"), DelaySeconds: 2}); err != nil {
		return err
	}
	b.one()
	if took := time.Since(start); took < 1500*time.Millisecond {
		return fmt.Errorf("it came after %s, want about 2s", took)
	}
	return nil
}

func longPollEnds(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	start := time.Now()
	sent := time.AfterFunc(500*time.Millisecond, func() {
		// An error shows as a poll that nothing ends.
		_, _ = b.api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("x")})
	})
	defer sent.Stop()
	n, took := len(b.receive(20)), time.Since(start)
	if n != 1 || took > 15*time.Second {
		return fmt.Errorf("it brought %d messages after %s", n, took)
	}
	return nil
}

func longPollWaits(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	start := time.Now()
	n, took := len(b.receive(2)), time.Since(start)
	if n != 0 || took < 1500*time.Millisecond {
		return fmt.Errorf("it brought %d messages after %s, want none after 2s", n, took)
	}
	return nil
}

func deletingTwice(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	m := b.one()
	b.must(b.delete(m))
	if e := b.delete(m); e != nil {
		return fmt.Errorf("the second delete failed: %s", *e.Code)
	}
	return nil
}

// again receives a message twice, so that the first receipt is stale.
func (b box) again() (stale, fresh types.Message) {
	b.Helper()
	b.send("x")
	stale = b.one()
	b.must(b.hide(stale, 0))
	return stale, b.one()
}

// AWS may delete the message or not; both are fine, since a delete is sent only
// when the message's effect is durable.
func staleDelete(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	stale, fresh := b.again()
	if e := b.delete(stale); e != nil {
		if err := gone(e); err != nil {
			return err
		}
	}
	if e := b.delete(fresh); e != nil {
		return gone(e)
	}
	return nil
}

func extensionOfDeleted(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	m := b.one()
	b.must(b.delete(m))
	return gone(b.hide(m, 60))
}

func extensionOfTimedOut(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x")
	m := b.one()
	b.must(b.hide(m, 0))
	return gone(b.hide(m, 60))
}

// What AWS says of it for a standard queue is not documented. The heartbeat ends
// the work when it is told so, and otherwise goes on, which is repeated work.
func staleExtension(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	stale, _ := b.again()
	return gone(b.hide(stale, 60))
}

func redrivePolicyMoves(t *testing.T, c *cloud) error {
	dead := open(t, c, 60)
	b := box{t, c.sqs(), c.queue(t, map[string]string{"VisibilityTimeout": "60", "RedrivePolicy": c.redrive(dead.url, 2)})}
	attributes := map[string]types.MessageAttributeValue{"traceparent": {DataType: aws.String("String"), StringValue: aws.String("00-x")}}
	if _, err := b.api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("body"), MessageAttributes: attributes}); err != nil {
		return err
	}
	var last types.Message
	for range 2 {
		last = b.one()
		b.must(b.hide(last, 0))
	}
	if n := len(b.receive(0)); n != 0 {
		return errors.New("it was received a third time")
	}
	letter := dead.one()
	if diff := cmp.Diff(plain(attributes), plain(letter.MessageAttributes)); diff != "" || *letter.Body != "body" || *letter.MessageId != *last.MessageId {
		return fmt.Errorf("the letter is not the message: id %s was %s, body %q, attributes (-sent +received):\n%s", *letter.MessageId, *last.MessageId, *letter.Body, diff)
	}
	if letter.Attributes["SentTimestamp"] != last.Attributes["SentTimestamp"] {
		return errors.New("the time of its first sending, from which retention counts, changed")
	}
	return nil
}

func settingsAreTold(t *testing.T, c *cloud) error {
	dead := open(t, c, 60)
	policy := c.redrive(dead.url, 30)
	want := map[string]string{"VisibilityTimeout": "60", "MessageRetentionPeriod": "604800", "RedrivePolicy": policy}
	url := c.queue(t, want)
	out, err := dead.api.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		"VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy"}})
	if err != nil {
		return err
	}
	got := maps.Clone(out.Attributes)
	// The number comes as a number or as text, in any order and spacing.
	got["RedrivePolicy"] = strings.NewReplacer(" ", "", `"30"`, "30").Replace(got["RedrivePolicy"])
	if got["RedrivePolicy"] != policy && !(strings.Contains(got["RedrivePolicy"], c.queueARN(dead.url)) && strings.Contains(got["RedrivePolicy"], `"maxReceiveCount":30`)) {
		return fmt.Errorf("redrive policy %s became %s", policy, got["RedrivePolicy"])
	}
	got["RedrivePolicy"] = policy
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("settings (-set +told):\n%s", diff)
	}
	name := dead.url[strings.LastIndexByte(dead.url, '/')+1:]
	found, err := dead.api.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name, QueueOwnerAWSAccountId: &c.account})
	if err != nil || *found.QueueUrl != dead.url {
		return fmt.Errorf("the dead-letter queue was not found by its ARN: %v", err)
	}
	return nil
}

func depthIsTold(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	b.send("x", "x")
	came := len(b.receive(2))
	if waiting, inFlight := b.depth(); waiting != 2-came || inFlight != came {
		return fmt.Errorf("of 2 messages, %d received, %d wait and %d are in flight", came, waiting, inFlight)
	}
	return nil
}
