package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fakeSQS is one queue for tests with virtual time, with at most one message,
// which is received once.
type fakeSQS struct {
	down    bool   // nothing answers
	deaf    bool   // no message can be given back
	message string // handed out once; "" is none
}

var errDown = errors.New("connection refused")

func (f *fakeSQS) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if f.down {
		return nil, errDown
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"VisibilityTimeout": "60", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:dead","maxReceiveCount":30}`,
	}}, nil
}

func (f *fakeSQS) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return &sqs.GetQueueUrlOutput{QueueUrl: in.QueueName}, nil
}

func (f *fakeSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if body := f.message; body != "" {
		f.message = ""
		return &sqs.ReceiveMessageOutput{Messages: []types.Message{{MessageId: aws.String("id"), ReceiptHandle: aws.String("receipt"), Body: &body,
			Attributes: map[string]string{"ApproximateReceiveCount": "1"}}}}, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
		return &sqs.ReceiveMessageOutput{}, nil
	}
}

func (f *fakeSQS) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, errDown
}

func (f *fakeSQS) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return nil, errDown
}

func (f *fakeSQS) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if f.deaf {
		return nil, errDown
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// first is the first line of a text.
func first(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }
