package queue

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
)

// told answers with these attributes.
type told struct {
	attributes map[string]string
	err        error
}

func (a told) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: a.attributes}, a.err
}

func TestADepthThatIsNotToldIsNoDepthOfZero(t *testing.T) {
	const visible, inFlight, delayed = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"
	whole := map[string]string{visible: "7", inFlight: "5", delayed: "0"}
	d, err := ReadDepth(t.Context(), told{attributes: whole}, mainURL)
	if diff := cmp.Diff(Depth{Visible: 7, InFlight: 5}, d); diff != "" || err != nil || d.Total() != 12 {
		t.Errorf("in all %d, %v (-want +got):\n%s", d.Total(), err, diff)
	}
	for name, answer := range map[string]told{
		"no answer":          {err: errors.New("down")},
		"nothing told":       {},
		"one number missing": {attributes: map[string]string{visible: "7", inFlight: "5"}},
		"no number":          {attributes: map[string]string{visible: "7", inFlight: "5", delayed: "many"}},
	} {
		if d, err := ReadDepth(t.Context(), answer, mainURL); err == nil {
			t.Errorf("%s: %+v and no error", name, d)
		}
	}
}
