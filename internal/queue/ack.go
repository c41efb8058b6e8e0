package queue

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	opDelete = "DeleteMessageBatch"
	opChange = "ChangeMessageVisibilityBatch"

	ackLinger   = 100 * time.Millisecond
	callTimeout = 10 * time.Second
	retryMin    = 200 * time.Millisecond // between attempts of an acknowledgement
	retryMax    = 10 * time.Second
)

// ack is how a lease ends: deleted, or given back after a time.
type ack struct {
	*lease
	seconds int32 // of invisibility; not read by a delete
}

func (c *Consumer) newAcks(flush func([]ack)) *batcher[ack] {
	return &batcher[ack]{linger: ackLinger, limit: BatchMax, size: func(ack) int { return 1 }, flush: flush}
}

// flushDeletes deletes a batch. The heartbeat keeps the leases meanwhile, so a
// delete may be tried for as long as SQS refuses it.
func (c *Consumer) flushDeletes(batch []ack) {
	for _, a := range batch {
		c.beat.deleting(a.lease)
	}
	c.settle(batch, c.callDelete)
}

// flushBacks gives a batch back. It is no longer extended: should no call get
// through, the visibility timeout gives it back by itself.
func (c *Consumer) flushBacks(batch []ack) {
	for _, a := range batch {
		if extending := c.beat.remove(a.lease); extending != nil {
			<-extending
		}
	}
	c.settle(batch, c.callChange)
}

// settle repeats call for the entries that failed, and only for those, until
// each is accepted, is no longer ours, or the time for last calls is over.
func (c *Consumer) settle(batch []ack, call func([]ack) []error) {
	for attempt := 1; len(batch) > 0; attempt++ {
		errs := call(batch)
		var left []ack
		for i, a := range batch {
			switch {
			case errs[i] == nil:
				c.settled(a.lease, true)
			case isGone(errs[i]) || !c.beat.ours(a.lease):
				if a.out.Verb != Retry { // its end will be found again by whoever has it now
					c.beat.taken(a.lease, errs[i])
				}
				c.settled(a.lease, false)
			default:
				left = append(left, a)
			}
		}
		batch = left
		if len(batch) > 0 && !pause(c.last, backoff(attempt, retryMin, retryMax)) {
			c.left.Add(int64(len(batch)))
			for _, a := range batch {
				c.settled(a.lease, false)
			}
			return
		}
	}
}

func (c *Consumer) callDelete(batch []ack) []error {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &c.cfg.URL, Entries: make([]types.DeleteMessageBatchRequestEntry, len(batch))}
	for i, a := range batch {
		in.Entries[i] = types.DeleteMessageBatchRequestEntry{Id: EntryID(i), ReceiptHandle: a.receipt}
	}
	ctx, cancel := context.WithTimeout(c.last, callTimeout)
	defer cancel()
	out, err := c.api.DeleteMessageBatch(ctx, in)
	return c.counted(opDelete, err, DeleteErrors(len(batch), out, err))
}

func (c *Consumer) callChange(batch []ack) []error {
	ctx, cancel := context.WithTimeout(c.last, callTimeout)
	defer cancel()
	now := time.Now()
	for i, a := range batch {
		// SQS refuses what reaches past 12 hours from the receive.
		rest := int32(a.received.Add(maxVisibility).Sub(now) / time.Second)
		batch[i].seconds = max(0, min(a.seconds, rest-1))
	}
	return c.change(ctx, batch)
}

// extend is the heartbeat's call.
func (c *Consumer) extend(ctx context.Context, leases []*lease, visibility time.Duration) []error {
	batch := make([]ack, len(leases))
	for i, l := range leases {
		batch[i] = ack{l, seconds(visibility)}
	}
	return c.change(ctx, batch)
}

func (c *Consumer) change(ctx context.Context, batch []ack) []error {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &c.cfg.URL, Entries: make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))}
	for i, a := range batch {
		in.Entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: EntryID(i), ReceiptHandle: a.receipt, VisibilityTimeout: a.seconds}
	}
	out, err := c.api.ChangeMessageVisibilityBatch(ctx, in)
	return c.counted(opChange, err, changeErrors(len(batch), out, err))
}

// counted counts a batch call and hands on what became of its entries.
func (c *Consumer) counted(op string, err error, errs []error) []error {
	c.tel.SQSCall(c.cfg.Name, op, result(err, errs))
	return errs
}
