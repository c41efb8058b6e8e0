// Package queue consumes and feeds SQS well: pollers behind a gate and an
// in-flight budget, one deadline-ordered heartbeat for all held messages,
// batched acknowledgements, back-off by receive count, dead letters with a
// reason, and batched sends that retry only the entries that failed. One engine
// serves all queues.
package queue

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// sqsAPI is exactly what this package calls of *sqs.Client.
type sqsAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

// Gate says whether a queue may be received from. internal/guard implements it.
type Gate interface {
	// Admit returns how many messages may be worked on at once, 0 while the gate
	// is closed, and a channel that is closed when that may have changed.
	Admit() (n int, changed <-chan struct{})
}

// Delivery is one receive of one message.
type Delivery struct {
	ID         string
	Body       string
	Receives   int               // how often it was received, this time included
	Sent       time.Time         // when it was first sent
	Attributes map[string]string // message attributes of type String
}

// Verb is what is to be done with a delivery.
type Verb int

const (
	// Retry gives it back after a back-off; at the own limit of receives it
	// becomes a dead letter with end "failed" and the outcome's detail.
	Retry Verb = iota
	// Settle deletes it: its effect is durable.
	Settle
	// HandBack gives it back because a gate closed or the work was cancelled; it
	// is no failure of the message and never makes a dead letter.
	HandBack
	// Bury sends it to the dead-letter queue, then deletes it.
	Bury
)

// Outcome is what a handler says of a delivery. End and Detail are words of
// package object; Note is a short text for the log line, without secrets.
type Outcome struct {
	Verb        Verb
	End, Detail string
	Note        string
}

// Handler works on one delivery. ctx ends with context.Cause ErrLeaseLost when
// the message is no longer ours, and when the drain's deadline has come; the
// handler then returns soon and what it returns counts only if it settled.
// ctx carries the consumer span; it links to the producer's.
type Handler func(ctx context.Context, d *Delivery) Outcome

// Attributes of a dead letter, beside traceparent and the body as it was.
const (
	AttrEnd      = "end"
	AttrDetail   = "detail"
	AttrReceives = "receives"
	AttrDeadAt   = "dead_at"  // RFC 3339
	AttrRedriven = "redriven" // how often it was redriven so far
)
