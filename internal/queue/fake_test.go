package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

const (
	mainURL = "https://sqs.example/111122223333/main"
	deadURL = "https://sqs.example/111122223333/main-dead"
)

// fakeSQS refuses what SQS refuses, keeps visibility by the clock of the test's
// bubble, and misbehaves where a test asks for it.
type fakeSQS struct {
	t          *testing.T
	attributes map[string]string // of the main queue

	latency func(op string) time.Duration                                                             // before the answer
	fail    func(ctx context.Context, op, url string) error                                           // instead of an answer
	refuse  func(op string, e fakeEntry) *types.BatchResultErrorEntry                                 // one entry of a batch
	receive func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) // instead of the queue

	mu      sync.Mutex
	changed chan struct{}
	queues  map[string]*fakeQueue
	calls   map[string]int
	batches map[string][]int // sizes
	aborted int              // receives whose caller went away
	polling int
}

// fakeEntry is an entry of any batch.
type fakeEntry struct {
	url, receipt, body string
	seconds            int32
	message            *fakeMessage
}

type fakeQueue struct {
	ready  []*fakeMessage
	flying map[string]*fakeMessage // by the receipt that counts
	all    []*fakeMessage
}

type fakeMessage struct {
	id, body   string
	attributes map[string]types.MessageAttributeValue
	sent       time.Time
	visible    time.Time
	receipt    string
	received   []time.Time
	earlier    int     // receives before the test
	changes    []int32 // visibilities asked for
	deleted    bool
}

func newFakeSQS(t *testing.T) *fakeSQS {
	return &fakeSQS{t: t, changed: make(chan struct{}), calls: map[string]int{}, batches: map[string][]int{},
		queues: map[string]*fakeQueue{mainURL: {flying: map[string]*fakeMessage{}}, deadURL: {flying: map[string]*fakeMessage{}}},
		attributes: map[string]string{
			"VisibilityTimeout": "60", "ApproximateNumberOfMessages": "3",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:main-dead","maxReceiveCount":"30"}`,
		}}
}

func apiError(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "as the test asked"}
}

// put adds a message that was received earlier times before.
func (f *fakeSQS) put(url, body string, earlier int, attributes map[string]string) *fakeMessage {
	values := map[string]types.MessageAttributeValue{}
	for k, v := range attributes {
		values[k] = stringValue(v)
	}
	return f.add(url, body, earlier, values)
}

func (f *fakeSQS) add(url, body string, earlier int, attributes map[string]types.MessageAttributeValue) *fakeMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[url]
	m := &fakeMessage{id: fmt.Sprintf("m%d", len(q.all)), body: body, attributes: attributes, sent: time.Now(), earlier: earlier}
	q.ready, q.all = append(q.ready, m), append(q.all, m)
	f.signal()
	return m
}

func (f *fakeSQS) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeSQS) enter(ctx context.Context, op string, url *string) error {
	f.mu.Lock()
	f.calls[op]++
	latency, fail := f.latency, f.fail
	f.mu.Unlock()
	if latency != nil && !pause(ctx, latency(op)) {
		return ctx.Err()
	}
	if fail != nil {
		return fail(ctx, op, deref(url))
	}
	return ctx.Err()
}

func (f *fakeSQS) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		n += c
	}
	return n
}

func (f *fakeSQS) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// sizes are those of the batches of one operation so far.
func (f *fakeSQS) sizes(op string) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches[op])
}

// failWith changes fail while calls are made.
func (f *fakeSQS) failWith(fail func(ctx context.Context, op, url string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// expire needs mu.
func (q *fakeQueue) expire(now time.Time) {
	for receipt, m := range q.flying {
		if !now.Before(m.visible) {
			delete(q.flying, receipt)
			q.ready = append(q.ready, m)
		}
	}
}

func (q *fakeQueue) nextVisible(now time.Time, wait time.Duration) time.Duration {
	for _, m := range q.flying {
		wait = min(wait, m.visible.Sub(now))
	}
	return wait
}

func (f *fakeSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10 || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 {
		f.t.Errorf("ReceiveMessage asks for %d messages within %d s", in.MaxNumberOfMessages, in.WaitTimeSeconds)
	}
	if in.VisibilityTimeout != 0 {
		f.t.Errorf("ReceiveMessage overrides the queue's visibility timeout with %d", in.VisibilityTimeout)
	}
	f.mu.Lock()
	f.polling++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.polling--
		f.mu.Unlock()
	}()
	if err := f.enter(ctx, opReceive, in.QueueUrl); err != nil {
		return nil, err
	}
	if f.receive != nil {
		return f.receive(ctx, in)
	}
	end := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		f.mu.Lock()
		now := time.Now()
		q := f.queues[*in.QueueUrl]
		q.expire(now)
		if n := min(len(q.ready), int(in.MaxNumberOfMessages)); n > 0 || !now.Before(end) {
			out := &sqs.ReceiveMessageOutput{}
			for _, m := range q.ready[:n] {
				out.Messages = append(out.Messages, f.fly(q, m, now))
			}
			q.ready = q.ready[n:]
			f.mu.Unlock()
			return out, nil
		}
		changed, wait := f.changed, q.nextVisible(now, end.Sub(now))
		f.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			f.mu.Lock()
			f.aborted++
			f.mu.Unlock()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

func (f *fakeSQS) fly(q *fakeQueue, m *fakeMessage, now time.Time) types.Message {
	v, _ := strconv.Atoi(f.attributes["VisibilityTimeout"])
	m.received = append(m.received, now)
	m.visible = now.Add(time.Duration(v) * time.Second)
	m.receipt = fmt.Sprintf("%s#%d", m.id, len(m.received))
	q.flying[m.receipt] = m
	return types.Message{MessageId: &m.id, Body: &m.body, ReceiptHandle: &m.receipt, MessageAttributes: m.attributes,
		Attributes: map[string]string{
			"ApproximateReceiveCount": strconv.Itoa(m.earlier + len(m.received)),
			"SentTimestamp":           strconv.FormatInt(m.sent.UnixMilli(), 10),
		}}
}

// each walks the entries of a batch as SQS does: do takes one or says why not.
func (f *fakeSQS) each(op string, ids []*string, entries []fakeEntry, do func(i int) *types.BatchResultErrorEntry) (taken []*string, failed []types.BatchResultErrorEntry) {
	if len(ids) < 1 || len(ids) > 10 {
		f.t.Errorf("%s with %d entries", op, len(ids))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches[op] = append(f.batches[op], len(ids))
	seen := map[string]bool{}
	for i, id := range ids {
		if seen[*id] {
			f.t.Errorf("%s: id %q twice", op, *id)
		}
		seen[*id] = true
		var bad *types.BatchResultErrorEntry
		e := entries[i]
		q := f.queues[e.url]
		q.expire(time.Now())
		e.message = q.flying[e.receipt]
		if f.refuse != nil {
			bad = f.refuse(op, e)
		}
		if bad == nil {
			bad = do(i)
		}
		if bad != nil {
			bad.Id = id
			failed = append(failed, *bad)
			continue
		}
		taken = append(taken, id)
	}
	f.signal()
	return taken, failed
}

func refusal(code string, senderFault bool) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Code: &code, SenderFault: senderFault}
}

func (f *fakeSQS) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := f.enter(ctx, opDelete, in.QueueUrl); err != nil {
		return nil, err
	}
	var ids []*string
	var entries []fakeEntry
	for _, e := range in.Entries {
		ids, entries = append(ids, e.Id), append(entries, fakeEntry{url: *in.QueueUrl, receipt: *e.ReceiptHandle})
	}
	out := &sqs.DeleteMessageBatchOutput{}
	taken, failed := f.each(opDelete, ids, entries, func(i int) *types.BatchResultErrorEntry {
		q := f.queues[*in.QueueUrl]
		m := q.flying[entries[i].receipt]
		if m == nil {
			return refusal("ReceiptHandleIsInvalid", true)
		}
		m.deleted = true
		delete(q.flying, m.receipt)
		return nil
	})
	for _, id := range taken {
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: id})
	}
	out.Failed = failed
	return out, nil
}

func (f *fakeSQS) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := f.enter(ctx, opChange, in.QueueUrl); err != nil {
		return nil, err
	}
	var ids []*string
	var entries []fakeEntry
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
		entries = append(entries, fakeEntry{url: *in.QueueUrl, receipt: *e.ReceiptHandle, seconds: e.VisibilityTimeout})
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	taken, failed := f.each(opChange, ids, entries, func(i int) *types.BatchResultErrorEntry {
		m := f.queues[*in.QueueUrl].flying[entries[i].receipt]
		if m == nil {
			return refusal("MessageNotInflight", true)
		}
		until := time.Now().Add(time.Duration(entries[i].seconds) * time.Second)
		if s := entries[i].seconds; s < 0 || s > 43200 || until.After(m.received[len(m.received)-1].Add(12*time.Hour)) {
			f.t.Errorf("visibility of %d s, which SQS refuses", s)
			return refusal("InvalidParameterValue", true)
		}
		m.changes = append(m.changes, entries[i].seconds)
		m.visible = until
		return nil
	})
	for _, id := range taken {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: id})
	}
	out.Failed = failed
	return out, nil
}

func (f *fakeSQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if err := f.enter(ctx, opSend, in.QueueUrl); err != nil {
		return nil, err
	}
	var ids []*string
	var entries []fakeEntry
	size := 0
	for _, e := range in.Entries {
		ids, entries = append(ids, e.Id), append(entries, fakeEntry{url: *in.QueueUrl, body: *e.MessageBody})
		size += SizeOf(e)
		if len(e.MessageAttributes) > 10 {
			f.t.Errorf("an entry with %d attributes", len(e.MessageAttributes))
		}
	}
	if size > 1<<20 {
		f.t.Errorf("a batch of %d bytes", size)
	}
	var sent []int
	taken, failed := f.each(opSend, ids, entries, func(i int) *types.BatchResultErrorEntry {
		sent = append(sent, i)
		return nil
	})
	for _, i := range sent {
		f.add(*in.QueueUrl, *in.Entries[i].MessageBody, 0, in.Entries[i].MessageAttributes)
	}
	out := &sqs.SendMessageBatchOutput{Failed: failed}
	for _, id := range taken {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: id})
	}
	return out, nil
}

func (f *fakeSQS) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := f.enter(ctx, "GetQueueAttributes", in.QueueUrl); err != nil {
		return nil, err
	}
	out := &sqs.GetQueueAttributesOutput{Attributes: map[string]string{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range in.AttributeNames {
		if v, ok := f.attributes[string(name)]; ok {
			out.Attributes[string(name)] = v
		}
	}
	return out, nil
}

func (f *fakeSQS) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	if err := f.enter(ctx, "GetQueueUrl", nil); err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(mainURL, "main") + *in.QueueName
	return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
}
