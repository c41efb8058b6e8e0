package check

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// sqsAPI is what this package calls of *sqs.Client: batches only ever empty, and
// receives only with numbers that SQS does not take.
type sqsAPI interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// The least that a queue may be set to. Less works, but loses messages in a long
// outage, or has them received twice when a heartbeat is late.
const (
	leastVisibility = 30 * time.Second
	leastRetention  = 4 * 24 * time.Hour
)

// action is one permission that is tried with a call that SQS refuses to
// everybody, but only once it has let the caller in: a batch without entries
// (EmptyBatchRequest), a receive of more than ten messages. That SQS looks at
// permissions before it looks at the call is unverified, see queue.Probe.
type action struct {
	permission string
	try        func(ctx context.Context, api sqsAPI, url *string) error
}

var (
	maySend = action{"sqs:SendMessage", func(ctx context.Context, api sqsAPI, url *string) error {
		return queue.Probe(ctx, api, *url)
	}}
	mayReceive = action{"sqs:ReceiveMessage", func(ctx context.Context, api sqsAPI, url *string) error {
		_, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: queue.BatchMax + 1, WaitTimeSeconds: longestPoll + 1})
		return queue.Refusal(err, "ReceiveMessage")
	}}
	mayDelete = action{"sqs:DeleteMessage", func(ctx context.Context, api sqsAPI, url *string) error {
		_, err := api.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{}})
		return queue.Refusal(err, "DeleteMessage")
	}}
	mayExtend = action{"sqs:ChangeMessageVisibility", func(ctx context.Context, api sqsAPI, url *string) error {
		_, err := api.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{}})
		return queue.Refusal(err, "ChangeMessageVisibility")
	}}
)

// longestPoll of SQS, in seconds.
const longestPoll = 20

// mayAct tries a permission on the queue at url, whose ARN is on.
func (l *live) mayAct(ctx context.Context, url, on string, a action) Item {
	i := tried(a.permission, on, a.try(ctx, l.deps.SQS, &url))
	if i.Status == OK {
		i.Note = "asked with a call that SQS refuses to everybody"
	}
	return i
}

// settle tries what receiving and settling messages of the queue at url needs.
func (l *live) settle(ctx context.Context, url, on string) []Item {
	return []Item{l.mayAct(ctx, url, on, mayReceive), l.mayAct(ctx, url, on, mayDelete), l.mayAct(ctx, url, on, mayExtend)}
}

// consumedQueue tries what a consumer of the queue needs.
func (l *live) consumedQueue(ctx context.Context, url string) []Item {
	on := queueARN(url)
	settings, dead := l.settings(ctx, url, on)
	items := append(l.settle(ctx, url, on), settings...)
	if dead == nil {
		return items
	}
	items = append(items, l.mayAct(ctx, dead.url, dead.arn, maySend))
	// The service itself does not need this, so a role without it is not wrong.
	letters, err := l.attributes(ctx, dead.url)
	if err != nil {
		return append(items, notTried("MessageRetentionPeriod", dead.arn, "cannot be read by this role, and need not be; 14 days is good"))
	}
	return append(items, dead.settings(letters)...)
}

// answeredQueue tries what people on call need of a queue: to send to it, and to
// settle its dead letters.
func (l *live) answeredQueue(ctx context.Context, url string) []Item {
	on := queueARN(url)
	settings, dead := l.settings(ctx, url, on)
	items := append([]Item{l.mayAct(ctx, url, on, maySend)}, settings...)
	if dead == nil {
		return items
	}
	items = append(items, l.settle(ctx, dead.url, dead.arn)...)
	letters, err := l.attributes(ctx, dead.url)
	items = append(items, tried("sqs:GetQueueAttributes", dead.arn, err))
	if err != nil {
		return items
	}
	return append(items, dead.settings(letters)...)
}

// deadLetters is the dead-letter queue of a queue.
type deadLetters struct {
	url, arn string
	least    time.Duration // the retention of its queue
}

// settings reads how the queue at url is set, and finds its dead letters; nil
// when that cannot be done.
func (l *live) settings(ctx context.Context, url, on string) ([]Item, *deadLetters) {
	attributes, err := l.attributes(ctx, url)
	items := []Item{tried("sqs:GetQueueAttributes", on, err)}
	if err != nil {
		return items, nil
	}
	items = append(items,
		atLeast("VisibilityTimeout", on, attributes, leastVisibility, "60 s is good; heartbeats keep messages longer"),
		atLeast("MessageRetentionPeriod", on, attributes, leastRetention, "7 days is good: what waits out an outage must not expire"))

	const needs = "RedrivePolicy"
	policy, err := queue.RedrivePolicy(attributes[needs])
	if err != nil {
		return append(items, wrong(needs, on, err.Error()+"; give the queue one with a dead-letter queue, maxReceiveCount 30 is good")), nil
	}
	redrive := tried(needs, on, nil)
	if policy.Max <= l.config.Retry.Receives {
		redrive = wrong(needs, on, fmt.Sprintf("maxReceiveCount is %d, which moves messages before retry.receives (%d) can end them with a reason; 30 is good", policy.Max, l.config.Retry.Receives))
	}
	redrive.letters = policy.ARN
	items = append(items, redrive)
	out, err := l.deps.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &policy.Name, QueueOwnerAWSAccountId: &policy.Account})
	dead := &deadLetters{arn: policy.ARN, least: seconds(attributes["MessageRetentionPeriod"])}
	if err == nil {
		dead.url = aws.ToString(out.QueueUrl)
		return append(items, tried("sqs:GetQueueUrl", policy.ARN, nil)), dead
	}
	refused := queue.Classify(err, "GetQueueUrl")
	items = append(items, tried("sqs:GetQueueUrl", policy.ARN, refused))
	if refused.Class != object.Refused || refused.Code == "NonExistentQueue" || refused.Code == "QueueDoesNotExist" {
		return items, nil
	}
	// It is there: what else may be missing is told in the same go.
	dead.url = neighbour(url, policy)
	return items, dead
}

// neighbour is the URL of the dead-letter queue of the queue at queueURL, which
// is in the same region.
func neighbour(queueURL string, policy queue.Redrive) string {
	rest := strings.TrimSuffix(queueURL, "/"+queue.Name(queueURL))
	return rest[:strings.LastIndexByte(rest, '/')+1] + policy.Account + "/" + policy.Name
}

// settings judges how the dead-letter queue is set. SQS keeps the time of the
// first send when it moves a message itself. A redrive-allow policy keeps other
// queues' letters out, which no command needs.
func (d *deadLetters) settings(attributes map[string]string) []Item {
	const allow = "RedriveAllowPolicy"
	item := tried(allow, d.arn, nil)
	if attributes[allow] == "" {
		item.Note = "there is none, so any queue of the account may send its dead letters here; one that names its queue is better"
	}
	return []Item{
		atLeast("MessageRetentionPeriod", d.arn, attributes, d.least, "14 days is good; below that of its queue, letters may expire as they arrive"),
		item,
	}
}

func (l *live) attributes(ctx context.Context, url string) (map[string]string, error) {
	// By name, an emulator may refuse an attribute that it does not know.
	out, err := l.deps.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, queue.Classify(err, "GetQueueAttributes")
	}
	return out.Attributes, nil
}

// atLeast judges an attribute that is a number of seconds.
func atLeast(name, on string, attributes map[string]string, least time.Duration, advice string) Item {
	text := attributes[name]
	if got := seconds(text); text == "" || got < least {
		return wrong(name, on, fmt.Sprintf("is %q seconds, less than %s; %s", text, least, advice))
	}
	return tried(name, on, nil)
}

func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// queueARN is what policies call the queue at a URL, or the URL when its region
// cannot be told from it.
func queueARN(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return queueURL
	}
	host, path := strings.Split(u.Hostname(), "."), strings.Split(u.Path, "/")
	if len(host) < 4 || host[0] != "sqs" || len(path) != 3 {
		return queueURL
	}
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition(host[1]), host[1], path[1], path[2])
}

// partition is the part of AWS that a region belongs to.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
