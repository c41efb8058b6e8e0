package check

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/s3store"
)

// answer is an error as the SDK returns it.
func answer(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: code},
	}
}

// fakeSQS answers as SQS does; refuse makes it refuse an operation on a queue.
type fakeSQS struct {
	t          *testing.T
	refuse     map[string]bool // "SendMessage sync-dead"
	attributes map[string]map[string]string
}

func newFakeSQS(t *testing.T) *fakeSQS {
	f := &fakeSQS{t: t, refuse: map[string]bool{}, attributes: map[string]map[string]string{}}
	for _, name := range []string{"logs", "sync"} {
		f.attributes[name] = map[string]string{
			"VisibilityTimeout": "60", "MessageRetentionPeriod": "604800",
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:%s-dead","maxReceiveCount":30}`, name),
		}
		f.attributes[name+"-dead"] = map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "1209600"}
	}
	return f
}

func (f *fakeSQS) may(action string, url *string, entries int) error {
	if entries > 0 {
		f.t.Errorf("%s with %d entries would change something", action, entries)
	}
	if f.refuse[action+" "+(*url)[strings.LastIndexByte(*url, '/')+1:]] {
		return answer(403, "AccessDenied")
	}
	if entries == 0 {
		return answer(400, "AWS.SimpleQueueService.EmptyBatchRequest")
	}
	return nil
}

func (f *fakeSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, f.may("SendMessage", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return nil, f.may("DeleteMessage", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return nil, f.may("ChangeMessageVisibility", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := f.may("GetQueueAttributes", in.QueueUrl, -1); err != nil {
		return nil, err
	}
	return &sqs.GetQueueAttributesOutput{Attributes: f.attributes[(*in.QueueUrl)[strings.LastIndexByte(*in.QueueUrl, '/')+1:]]}, nil
}

func (f *fakeSQS) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	url := "https://sqs.us-west-2.amazonaws.com/" + *in.QueueOwnerAWSAccountId + "/" + *in.QueueName
	if err := f.may("GetQueueUrl", &url, -1); err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
}

func (f *fakeSQS) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if in.MaxNumberOfMessages <= 10 || in.WaitTimeSeconds <= 20 {
		f.t.Errorf("a receive of %d messages would count", in.MaxNumberOfMessages)
	}
	if err := f.may("ReceiveMessage", in.QueueUrl, -1); err != nil {
		return nil, err
	}
	return nil, answer(400, "InvalidParameterValue")
}

// fakeSource is a COS bucket.
type fakeSource struct {
	read  error
	asked *string
}

func (f fakeSource) Reference(_ context.Context, key string) error {
	if f.asked != nil {
		*f.asked = key
	}
	return f.read
}

// fakeLogs is a place of logs.
type fakeLogs struct {
	list, reference, read, remove error
	empty                         bool
}

func (f fakeLogs) List(context.Context, string, string, string) iter.Seq2[s3store.LogObject, error] {
	return func(yield func(s3store.LogObject, error) bool) {
		if f.list != nil || !f.empty {
			yield(s3store.LogObject{Key: "access/1"}, f.list)
		}
	}
}
func (f fakeLogs) Read(_ context.Context, _, key string, _ object.Range, _ string) (*object.Read, error) {
	return &object.Read{Body: http.NoBody}, f.read
}
func (f fakeLogs) Reference(context.Context, string) error       { return f.reference }
func (f fakeLogs) DeleteReference(context.Context, string) error { return f.remove }

// fakeDestination is a bucket that is written to.
type fakeDestination struct{ list, read, abort, part, write error }

func (f fakeDestination) List(context.Context, string, string, string) (object.Page, error) {
	return object.Page{}, f.list
}
func (f fakeDestination) ReadReference(context.Context) error              { return f.read }
func (f fakeDestination) AbortReference(context.Context, string) error     { return f.abort }
func (f fakeDestination) PartReference(context.Context, string) error      { return f.part }
func (f fakeDestination) WriteReference(_ context.Context, _ string) error { return f.write }
