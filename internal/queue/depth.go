package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Depth is how many messages a queue holds, as SQS tells (approximate).
type Depth struct{ Visible, InFlight, Delayed int }

// Total is all of them.
func (d Depth) Total() int { return d.Visible + d.InFlight + d.Delayed }

// attributesAPI is what ReadDepth calls of *sqs.Client.
type attributesAPI interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// ReadDepth asks for the depth of the queue at url. An answer without the numbers
// is an error, never a depth of 0.
func ReadDepth(ctx context.Context, api attributesAPI, url string) (Depth, error) {
	var d Depth
	out, err := api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed}})
	if err != nil {
		return d, fmt.Errorf("read the depth of %s: %w", Name(url), err)
	}
	for name, n := range map[types.QueueAttributeName]*int{
		types.QueueAttributeNameApproximateNumberOfMessages:           &d.Visible,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &d.InFlight,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &d.Delayed,
	} {
		if *n, err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
			return Depth{}, fmt.Errorf("read the depth of %s: SQS has not told %s", Name(url), name)
		}
	}
	return d, nil
}
