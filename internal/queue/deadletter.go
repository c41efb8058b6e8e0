package queue

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// letterTimeout bounds the sending of one letter, its attempts included.
const letterTimeout = 30 * time.Second

// bury sends l's letter to the dead-letter queue and reports whether l may now be
// deleted. If not, l goes back: an unreachable dead-letter queue is tried again
// with the next receive, and a letter that SQS refuses as invalid is left to the
// redrive policy.
func (c *Consumer) bury(ctx context.Context, l *lease, out Outcome) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterTimeout)
	defer cancel()
	err := c.letters.send(ctx, []types.SendMessageBatchRequestEntry{letter(l, out, time.Now())})[0]
	if err == nil {
		return true
	}
	line := c.tel.Log.Warn().Ctx(ctx).Str("queue", c.cfg.Name).Str("id", l.delivery.ID).Err(err)
	if object.ClassOf(err) == object.Unfit {
		line.Msg("dead letter cannot be built; left to the redrive policy")
	} else {
		line.Msg("dead-letter queue not reached; the message stays")
	}
	return false
}

// letter is the message as it was with our attributes. Of its own attributes the
// trace and the count of redrives come first, then others by name, as far as ten
// attributes and the size allow.
func letter(l *lease, out Outcome, now time.Time) types.SendMessageBatchRequestEntry {
	ours := map[string]types.MessageAttributeValue{
		AttrEnd:      stringValue(out.End),
		AttrReceives: stringValue(strconv.Itoa(l.delivery.Receives)),
		AttrDeadAt:   stringValue(now.UTC().Format(time.RFC3339)),
	}
	if out.Detail != "" { // SQS refuses an empty value
		ours[AttrDetail] = stringValue(out.Detail)
	}
	e := types.SendMessageBatchRequestEntry{MessageBody: &l.delivery.Body, MessageAttributes: ours}
	size := SizeOf(e)
	for _, name := range append([]string{"traceparent", AttrRedriven, "tracestate"}, sortedNames(l.attributes)...) {
		v, given := l.attributes[name]
		if _, taken := ours[name]; !given || taken || name == AttrDetail || len(ours) == maxAttributes {
			continue
		}
		if n := attributeSize(name, v); size+n <= MaxBytes {
			ours[name] = v
			size += n
		}
	}
	return e
}
