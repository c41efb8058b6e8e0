package deadletter

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// forgetful is an SQS that holds no letter back: whoever asks gets it again.
type forgetful struct {
	sqsAPI
	calls int
}

func (f *forgetful) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	f.calls++
	id, body := "1", "{}"
	return &sqs.ReceiveMessageOutput{Messages: []types.Message{{MessageId: &id, Body: &body, ReceiptHandle: &id}}}, ctx.Err()
}

func (*forgetful) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// TestLookingEndsAlthoughLettersComeBack: where letters cannot be held, it ends
// and says so.
func TestLookingEndsAlthoughLettersComeBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	api := &forgetful{}
	seen := 0
	_, err := (&Box{api: api, name: "sync"}).Look(ctx, func(*Letter) (bool, error) { seen++; return false, nil })
	if err == nil || ctx.Err() != nil || seen != 1 {
		t.Errorf("%d letters after %d receives, %v", seen, api.calls, err)
	}
}
