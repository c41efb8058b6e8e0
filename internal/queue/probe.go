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
func Probe(ctx context.Context, api sqsAPI, url string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := api.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}})
	if err == nil {
		return nil
	}
	e := Classify(err, opSend)
	if e.Class == object.Unknown || e.Class == object.Unfit || e.Code == "EmptyBatchRequest" {
		return nil // it has read the batch
	}
	return e
}
