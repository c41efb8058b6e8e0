package queue

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// Permanent reports whether an error of Consumer.Open is one that trying again
// cannot mend: the queue itself is set up wrongly.
func Permanent(err error) bool {
	switch object.CodeOf(err) {
	case codeRedrivePolicy, codeVisibility:
		return true
	}
	return false
}

// Probe asks whether messages may be sent to the queue at url, without sending
// one: it tries a batch of none. SQS says EmptyBatchRequest to those who may send
// and AccessDenied to those who may not. (That it asks for the permission first is
// not documented. If it does not, a refused queue is asked with a message of the
// backlog at each interval instead, which is slower to notice and as safe.)
func Probe(ctx context.Context, api sqsAPI, url string) error {
	_, err := api.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}})
	if err == nil {
		return nil
	}
	switch e := Classify(err, opSend); e.Class {
	case object.Unavailable, object.Throttled, object.Refused, object.Canceled:
		return e
	}
	return nil
}
