package queue

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// Probe asks whether a queue would take messages from us, without sending one:
// an empty batch is refused with EmptyBatchRequest by a queue that lives and lets
// us send, and with the reason by one that does not. nil is alive; the error is an
// *object.Error.
//
// That SQS looks at permissions before it looks at the batch is unverified; were
// it not so, a queue that refuses us would pass for alive and its messages back
// off one by one.
func Probe(ctx context.Context, api sender, url string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := api.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}})
	return Refusal(err, opSend)
}

// sender is what Probe calls of *sqs.Client.
type sender interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Refusal is what err, the answer to an empty batch, says against the queue: nil
// when SQS has let us in and refuses no more than the batch.
func Refusal(err error, op string) error {
	if err == nil {
		return nil
	}
	e := Classify(err, op)
	if e.Class == object.Unknown || e.Class == object.Unfit || e.Code == "EmptyBatchRequest" {
		return nil // it has read the batch
	}
	return e
}
