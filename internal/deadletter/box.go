package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/queue"
)

// sqsAPI is exactly what this package calls of *sqs.Client.
type sqsAPI interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

const (
	// hold is how long letters are kept from others while they are looked at, in
	// seconds; it is renewed at half time.
	hold = 300
	// emptyInARow is how many empty receives mean that all was seen: SQS samples
	// its servers, so a single one proves nothing.
	emptyInARow = 3
	// seenInARow is how many receives may have nothing but letters that are held
	// already: some are delivered twice, but where each comes back, as for a role
	// that may not hold letters, looking would never end.
	seenInARow = 30
)

var errComeBack = errors.New("letters that are held come back again and again; may sqs:ChangeMessageVisibility be called? Try again in five minutes")

// Box is the dead-letter queue of one queue.
type Box struct {
	api    sqsAPI
	name   string // logs or sync
	source string // URL of the queue that its letters came from
	dead   string // URL of the dead-letter queue
	wait   int32  // long poll in seconds
	opened time.Time
}

// Open finds the dead-letter queue by the redrive policy of the queue at url.
func Open(ctx context.Context, api sqsAPI, name, url string) (*Box, error) {
	attributes, err := call(ctx, api.GetQueueAttributes, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy}})
	if err != nil {
		return nil, fmt.Errorf("read the redrive policy of %s: %w", url, err)
	}
	policy, err := queue.RedrivePolicy(attributes.Attributes[string(types.QueueAttributeNameRedrivePolicy)])
	if err != nil {
		return nil, fmt.Errorf("queue %s %w, so its dead letters cannot be found; give it one", url, err)
	}
	dead, err := call(ctx, api.GetQueueUrl, &sqs.GetQueueUrlInput{QueueName: &policy.Name, QueueOwnerAWSAccountId: &policy.Account})
	if err != nil {
		return nil, fmt.Errorf("find the dead-letter queue %s: %w", policy.ARN, err)
	}
	b := &Box{api: api, name: name, source: url, dead: aws.ToString(dead.QueueUrl), wait: 1, opened: time.Now()}
	// It is compared with times of SQS's. Their clock comes in whole seconds, rounded
	// down; ours says where in the second, or which end of it if ours is wrong.
	if theirs, ok := awsmiddleware.GetServerTime(dead.ResultMetadata); ok {
		b.opened = clamp(b.opened, theirs, theirs.Add(time.Second))
	}
	return b, nil
}

func clamp(t, from, to time.Time) time.Time {
	switch {
	case t.Before(from):
		return from
	case t.After(to):
		return to
	}
	return t
}

// Held is about how many letters somebody else is looking at: another command, or
// one that was killed, whose letters return within five minutes.
func (b *Box) Held(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := queue.ReadDepth(ctx, b.api, b.dead)
	return d.InFlight, err
}

// callTimeout bounds each call to SQS, also those that outlive an interrupt.
const callTimeout = 30 * time.Second

// call is one call to SQS within its time.
func call[In, Out any](ctx context.Context, do func(context.Context, In, ...func(*sqs.Options)) (Out, error), in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx, in)
}

// URL is that of the dead-letter queue.
func (b *Box) URL() string { return b.dead }

// ErrEnough is what a visitor of Look returns when it has seen enough.
var ErrEnough = errors.New("enough letters were seen")

// Look shows visit every letter once. visit returns whether the letter is wanted;
// looking ends early when it returns an error, and well when that is ErrEnough. The
// wanted ones are returned, still held: the caller gives each to Redrive, Drop or
// HandBack. All others are handed back, also when an error is returned.
func (b *Box) Look(ctx context.Context, visit func(*Letter) (wanted bool, err error)) (wanted []*Letter, err error) {
	err = b.each(ctx, func(letters []*Letter) (held, others []*Letter, err error) {
		for i, l := range letters {
			ok, err := visit(l)
			if ok {
				held, wanted = append(held, l), append(wanted, l)
			} else {
				others = append(others, l)
			}
			if err != nil {
				return held, append(others, letters[i+1:]...), err
			}
		}
		return held, others, nil
	})
	if err == nil || errors.Is(err, ErrEnough) {
		return wanted, nil
	}
	_ = b.HandBack(context.WithoutCancel(ctx), wanted) // they return by themselves
	return nil, err
}

// each shows visit every letter once, as many at a time as are received at once.
// Of these, the held ones stay with the caller, the others are handed back when
// all was seen, and the rest is settled and forgotten. An error of visit ends it
// early.
func (b *Box) each(ctx context.Context, visit func([]*Letter) (held, others []*Letter, err error)) (err error) {
	keep := newKeeper(b)
	defer keep.stop()
	var others []*Letter
	defer func() {
		if e := b.HandBack(context.WithoutCancel(ctx), others); e != nil && err == nil {
			err = e
		}
	}()
	seen := map[string]bool{}
	for empty, stale := 0, 0; empty < emptyInARow; {
		if err := ctx.Err(); err != nil {
			return err
		}
		out, err := call(ctx, b.api.ReceiveMessage, &sqs.ReceiveMessageInput{
			QueueUrl: &b.dead, MaxNumberOfMessages: queue.BatchMax, WaitTimeSeconds: b.wait, VisibilityTimeout: hold,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
		})
		if err != nil {
			return fmt.Errorf("receive from the dead letters of %s: %w", b.name, err)
		}
		if empty++; len(out.Messages) > 0 {
			empty = 0
		}
		var fresh []*Letter
		for _, m := range out.Messages {
			l := newLetter(b.name, m)
			if seen[l.ID] { // delivered twice: it is judged once
				others = append(others, l)
				continue
			}
			fresh = append(fresh, l)
		}
		if stale++; len(fresh) > 0 || len(out.Messages) == 0 {
			stale = 0
		}
		if stale == seenInARow {
			return fmt.Errorf("receive from the dead letters of %s: %w", b.name, errComeBack)
		}
		held, left, err := visit(fresh)
		for _, l := range left {
			l.Body, l.attributes = "", nil // only its receipt is needed still
		}
		others = append(others, left...)
		for _, l := range slices.Concat(held, left) {
			seen[l.ID] = true
			keep.add(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HandBack makes letters visible again at once.
func (b *Box) HandBack(ctx context.Context, letters []*Letter) error {
	return b.visibility(ctx, letters, 0)
}

func (b *Box) visibility(ctx context.Context, letters []*Letter, seconds int32) error {
	for ten := range slices.Chunk(letters, queue.BatchMax) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &b.dead}
		for i, l := range ten {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: queue.EntryID(i), ReceiptHandle: &l.receipt, VisibilityTimeout: seconds})
		}
		// An entry that fails is no loss: its letter comes back by itself when the
		// visibility timeout has passed.
		if _, err := call(ctx, b.api.ChangeMessageVisibilityBatch, in); err != nil {
			return fmt.Errorf("hand dead letters of %s back (they return by themselves within %s): %w", b.name, hold*time.Second, err)
		}
	}
	return nil
}
