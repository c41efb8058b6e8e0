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

	"github.com/objectferry/objectferry/internal/queue"
)

// sqsAPI is what this package calls of *sqs.Client: nothing that receives, and
// the batches only ever empty.
type sqsAPI interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
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

// action is one permission that is tried with a batch of no entries: SQS refuses
// that with EmptyBatchRequest, but only once it has let the caller in.
type action struct {
	permission string
	try        func(ctx context.Context, api sqsAPI, url *string) error
}

var (
	maySend = action{"sqs:SendMessage", func(ctx context.Context, api sqsAPI, url *string) error {
		return queue.Probe(ctx, api, *url)
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

// mayAct tries a permission on the queue at url.
func (l *live) mayAct(ctx context.Context, url string, a action) Item {
	if err := a.try(ctx, l.deps.SQS, &url); err != nil {
		return tried(a.permission, queueARN(url), err)
	}
	i := tried(a.permission, queueARN(url), nil)
	i.Note = "asked with an empty batch"
	return i
}

// consumedQueue tries what a consumer of the queue needs.
func (l *live) consumedQueue(ctx context.Context, url string) []Item {
	on := queueARN(url)
	items := []Item{
		notTried("sqs:ReceiveMessage", on, "would count as a receive of the messages that it gets"),
		l.mayAct(ctx, url, mayDelete),
		l.mayAct(ctx, url, mayExtend),
	}
	attributes, err := l.attributes(ctx, url)
	items = append(items, tried("sqs:GetQueueAttributes", on, err))
	if err != nil {
		return items
	}
	items = append(items,
		atLeast("VisibilityTimeout", on, attributes, leastVisibility, "60 s is good; heartbeats keep messages longer"),
		atLeast("MessageRetentionPeriod", on, attributes, leastRetention, "7 days is good: what waits out an outage must not expire"))
	return append(items, l.deadLetters(ctx, on, attributes)...)
}

// deadLetters tries what is needed to bury messages of the queue on.
func (l *live) deadLetters(ctx context.Context, on string, attributes map[string]string) []Item {
	const needs = "RedrivePolicy"
	policy, err := queue.RedrivePolicy(attributes[needs])
	if err != nil {
		return []Item{wrong(needs, on, err.Error()+"; give the queue one with a dead-letter queue, maxReceiveCount 30 is good")}
	}
	items := []Item{tried(needs, on, nil)}
	if policy.Max <= l.config.Retry.Receives {
		items[0] = wrong(needs, on, fmt.Sprintf("maxReceiveCount is %d, which moves messages before retry.receives (%d) can end them with a reason; 30 is good", policy.Max, l.config.Retry.Receives))
	}
	out, err := l.deps.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &policy.Name, QueueOwnerAWSAccountId: &policy.Account})
	if err != nil {
		return append(items, tried("sqs:GetQueueUrl", policy.ARN, queue.Classify(err, "GetQueueUrl")))
	}
	dead := aws.ToString(out.QueueUrl)
	items = append(items, tried("sqs:GetQueueUrl", policy.ARN, nil), l.mayAct(ctx, dead, maySend))

	// The service itself does not need this, so a role without it is not wrong.
	letters, err := l.attributes(ctx, dead)
	if err != nil {
		return append(items, notTried("MessageRetentionPeriod", policy.ARN, "cannot be read by this role, and need not be; 14 days is good"))
	}
	// SQS keeps the time of the first send when it moves a message itself.
	return append(items, atLeast("MessageRetentionPeriod", policy.ARN, letters, seconds(attributes["MessageRetentionPeriod"]),
		"14 days is good; below that of its queue, letters may expire as they arrive"))
}

func (l *live) attributes(ctx context.Context, url string) (map[string]string, error) {
	out, err := l.deps.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameVisibilityTimeout, types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameRedrivePolicy,
	}})
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
