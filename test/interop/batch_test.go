package interop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

var batchRules = []rule{
	{"of a batch that is sent only the entry at fault fails", lacks{"moto": "writes the fault as text, which the SDK cannot read"}, sendFailsByEntry},
	{"of a batch that is deleted only the entry at fault fails", nil, deleteFailsByEntry},
	{"of a batch that is extended only the entry at fault fails", nil, extensionFailsByEntry},
	{"characters that SQS does not carry are refused", lacks{"moto": "takes any text"}, charactersAreRefused},
	{"more than ten attributes are refused", lacks{"moto": "takes any number"}, attributesAreLimited},
	{"eleven entries are refused as a whole", nil, elevenAreRefused},
	{"entries with one id are refused as a whole", nil, oneIDIsRefused},
	{"a batch of more than 1 MiB is refused as a whole", nil, longBatchIsRefused},
	{"an empty batch to send is refused as empty to who may send", nil, emptySend},
	{"an empty batch to delete is refused as empty to who may delete", nil, emptyDelete},
	{"an empty batch to extend is refused as empty to who may extend", lacks{"moto": "takes it"}, emptyExtension},
	{"a probe of a queue that is not there says so", lacks{"strictaws": "judges the batch before it looks for the queue (which AWS does first is not documented)"}, probeOfNothing},
	{"a probe by one who may not send says so", lacks{"moto": "lets everybody do everything"}, probeWithoutPermission},
}

// entries are n entries of a batch.
func entries(n int) []types.SendMessageBatchRequestEntry {
	list := make([]types.SendMessageBatchRequestEntry, n)
	for i := range list {
		list[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(fmt.Sprintf("body %d", i))}
	}
	return list
}

func (b box) sendBatch(list []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return b.api.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: &b.url, Entries: list})
}

// onlyMiddle checks that of the entries 0, 1, 2 only 1 failed, by its own fault.
func onlyMiddle(successful []*string, failed []types.BatchResultErrorEntry) error {
	var ids []string
	for _, id := range successful {
		ids = append(ids, *id)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"0", "2"}) || len(failed) != 1 || *failed[0].Id != "1" || !failed[0].SenderFault {
		return fmt.Errorf("taken were %v, failed %+v; want 0 and 2, and 1 by its own fault", ids, failed)
	}
	return nil
}

func sendFailsByEntry(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	list := entries(3)
	list[1].DelaySeconds = 901
	out, err := b.sendBatch(list)
	if err != nil {
		return err
	}
	var taken []*string
	for _, e := range out.Successful {
		taken = append(taken, e.Id)
	}
	return onlyMiddle(taken, out.Failed)
}

// three receives three messages and makes the second one's receipt one that
// nobody gave.
func (b box) three() []types.Message {
	b.Helper()
	b.send("0", "1", "2")
	var got []types.Message
	for len(got) < 3 {
		got = append(got, b.receive(2)...)
	}
	got[1].ReceiptHandle = aws.String("nobody-gave-this")
	return got
}

func deleteFailsByEntry(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &b.url}
	for i, m := range b.three() {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := b.api.DeleteMessageBatch(t.Context(), in)
	if err != nil {
		return err
	}
	var taken []*string
	for _, e := range out.Successful {
		taken = append(taken, e.Id)
	}
	return errors.Join(onlyMiddle(taken, out.Failed), allGone(out.Failed))
}

func extensionFailsByEntry(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &b.url}
	for i, m := range b.three() {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 60})
	}
	out, err := b.api.ChangeMessageVisibilityBatch(t.Context(), in)
	if err != nil {
		return err
	}
	var taken []*string
	for _, e := range out.Successful {
		taken = append(taken, e.Id)
	}
	return errors.Join(onlyMiddle(taken, out.Failed), allGone(out.Failed))
}

func allGone(failed []types.BatchResultErrorEntry) error {
	var errs []error
	for _, e := range failed {
		errs = append(errs, gone(&e))
	}
	return errors.Join(errs...)
}

// refusal is how the first entry of a batch, or the batch, was refused.
func refusal(out *sqs.SendMessageBatchOutput, err error) (code string) {
	switch {
	case err != nil:
		return object.CodeOf(queue.Classify(err, ""))
	case len(out.Failed) > 0:
		return *out.Failed[0].Code
	}
	return ""
}

func charactersAreRefused(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	list := entries(1)
	list[0].MessageBody = aws.String("\x01")
	if refusal(b.sendBatch(list)) == "" {
		return errors.New("a body with #x1 was taken")
	}
	return nil
}

func attributesAreLimited(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	list := entries(1)
	list[0].MessageAttributes = map[string]types.MessageAttributeValue{}
	for i := range 11 {
		list[0].MessageAttributes[fmt.Sprintf("a%d", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
	}
	if refusal(b.sendBatch(list)) == "" {
		return errors.New("eleven were taken")
	}
	return nil
}

// asWhole checks that a batch was refused with a code, and that nothing of it
// was taken.
func (b box) asWhole(list []types.SendMessageBatchRequestEntry, want string) error {
	out, err := b.sendBatch(list)
	if err == nil {
		return fmt.Errorf("%d entries were taken, %d failed", len(out.Successful), len(out.Failed))
	}
	if code := refusal(nil, err); code != want {
		return fmt.Errorf("refused with %s, want %s", code, want)
	}
	if n := len(b.receive(0)); n != 0 {
		return fmt.Errorf("refused, and yet %d entries were taken", n)
	}
	return nil
}

func elevenAreRefused(t *testing.T, c *cloud) error {
	return open(t, c, 60).asWhole(entries(11), "TooManyEntriesInBatchRequest")
}

func oneIDIsRefused(t *testing.T, c *cloud) error {
	list := entries(2)
	list[1].Id = list[0].Id
	return open(t, c, 60).asWhole(list, "BatchEntryIdsNotDistinct")
}

func longBatchIsRefused(t *testing.T, c *cloud) error {
	list := entries(2)
	list[0].MessageBody = aws.String(strings.Repeat("x", 1<<19))
	list[1].MessageBody = aws.String(strings.Repeat("x", 1<<19+1))
	return open(t, c, 60).asWhole(list, "BatchRequestTooLong")
}

// The empty batches are what `check --live` asks, and the probe of a queue.
func emptySend(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	if code := refusal(b.sendBatch(entries(0))); code != "EmptyBatchRequest" {
		return fmt.Errorf("the answer was %q", code)
	}
	return queue.Probe(t.Context(), b.api, b.url)
}

func emptyDelete(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	_, err := b.api.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &b.url, Entries: []types.DeleteMessageBatchRequestEntry{}})
	return empty(err)
}

func emptyExtension(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	_, err := b.api.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &b.url,
		Entries: []types.ChangeMessageVisibilityBatchRequestEntry{}})
	return empty(err)
}

func empty(err error) error {
	if err == nil {
		return errors.New("it was taken")
	}
	if e := queue.Classify(err, ""); e.Code != "EmptyBatchRequest" {
		return e
	}
	return nil
}

func probeOfNothing(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	return refused(queue.Probe(t.Context(), b.api, b.url+"-not-there"))
}

func probeWithoutPermission(t *testing.T, c *cloud) error {
	b := open(t, c, 60)
	name := b.url[strings.LastIndexByte(b.url, '/')+1:]
	if c.deny == nil {
		return errors.New("there is no way to take the permission away")
	}
	c.deny("sqs:SendMessage", name)
	if err := refused(queue.Probe(t.Context(), b.api, b.url)); err != nil {
		return err
	}
	c.allow("sqs:SendMessage", name)
	return queue.Probe(t.Context(), b.api, b.url)
}

func refused(err error) error {
	if object.ClassOf(err) != object.Refused {
		return fmt.Errorf("the answer was %v, want refused", err)
	}
	return nil
}
