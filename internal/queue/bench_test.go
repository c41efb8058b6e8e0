package queue

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// endless is a queue that is never empty and answers within a millisecond.
type endless struct {
	sqsAPI
	n       atomic.Int64
	deletes atomic.Int64
}

func (e *endless) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	time.Sleep(time.Millisecond)
	out := &sqs.ReceiveMessageOutput{}
	for range in.MaxNumberOfMessages {
		id := strconv.FormatInt(e.n.Add(1), 10)
		out.Messages = append(out.Messages, types.Message{MessageId: &id, Body: &id, ReceiptHandle: &id,
			Attributes: map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": "1760000000000"}})
	}
	return out, nil
}

func (e *endless) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	time.Sleep(time.Millisecond)
	out := &sqs.DeleteMessageBatchOutput{}
	for _, d := range in.Entries {
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: d.Id})
	}
	e.deletes.Add(int64(len(in.Entries)))
	return out, nil
}

func (e *endless) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, d := range in.Entries {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: d.Id})
	}
	return out, nil
}

func (e *endless) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: newFakeSQS(nil).attributes}, nil
}

func (e *endless) GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	url := deadURL
	return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
}

// BenchmarkConsume is the consumer's own cost of one message.
func BenchmarkConsume(b *testing.B) {
	api := &endless{}
	cfg := DefaultConfig()
	cfg.Name, cfg.URL, cfg.Slots = "main", mainURL, 256
	tel, err := telemetry.New(b.Context(), telemetry.Config{})
	if err != nil {
		b.Fatal(err)
	}
	var done atomic.Int64
	intake, stop := context.WithCancel(b.Context())
	c, err := NewConsumer(api, &testGate{n: 256, changed: make(chan struct{})}, func(context.Context, *Delivery) Outcome {
		if done.Add(1) == int64(b.N) {
			stop()
		}
		return copied
	}, cfg, tel)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	if err := c.Run(intake, b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
