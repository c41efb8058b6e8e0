// Package deadletter is what on-call does with dead letters: look, redrive, drop.
// Looking hands everything back; redriving sends first and deletes then, so a
// kill at any moment costs a letter nothing but a second delivery. A Box is for
// one command at a time.
package deadletter

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// Letter is one dead letter. The fields that are words are those of package
// object; a letter that SQS itself moved has no attributes of ours and reads as
// failed, interrupted.
type Letter struct {
	Queue    string    `json:"queue"` // logs or sync
	ID       string    `json:"id"`
	End      string    `json:"end"`
	Detail   string    `json:"detail"`
	Receives int       `json:"receives"`         // before it died; 0 when unknown
	Redriven int       `json:"redriven"`         // how often it was redriven so far
	Sent     time.Time `json:"sent"`             // first; retention counts from it
	DeadAt   time.Time `json:"dead_at,omitzero"` // zero when SQS moved it
	Bucket   string    `json:"bucket,omitempty"` // of the object or log object; empty when the body cannot be read
	Key      string    `json:"key,omitempty"`    // percent-encoded
	TraceID  string    `json:"trace_id,omitempty"`
	Body     string    `json:"body"`

	key        string // decoded, for globs
	receipt    string
	attributes map[string]types.MessageAttributeValue
}

// Reason is the group that a letter belongs to: end and detail.
func (l *Letter) Reason() string { return l.End + " " + l.Detail }

func newLetter(queueName string, m types.Message) *Letter {
	l := &Letter{Queue: queueName, ID: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), receipt: aws.ToString(m.ReceiptHandle), attributes: m.MessageAttributes}
	text := func(name string) string { return aws.ToString(m.MessageAttributes[name].StringValue) }
	number := func(name string) int { n, _ := strconv.Atoi(text(name)); return n }
	l.End, l.Detail = text(queue.AttrEnd), text(queue.AttrDetail)
	if l.End == "" {
		l.End, l.Detail = string(object.EndFailed), string(object.DetailInterrupted)
	}
	l.Receives, l.Redriven = number(queue.AttrReceives), number(queue.AttrRedriven)
	l.DeadAt, _ = time.Parse(time.RFC3339, text(queue.AttrDeadAt)) // zero when it is not ours
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		l.Sent = time.UnixMilli(ms).UTC()
	}
	if sc := telemetry.Extract(map[string]string{"traceparent": text("traceparent")}); sc.IsValid() {
		l.TraceID = sc.TraceID().String()
	}
	l.address()
	return l
}

// address reads whom the letter is about; a body that cannot be read leaves it empty.
func (l *Letter) address() {
	if r, err := syncrequest.Decode(l.Body); err == nil {
		l.Bucket, l.key = r.Bucket, r.Key
	} else if records, err := s3event.Parse(l.Body); err == nil && len(records) > 0 {
		l.Bucket, l.key = records[0].Bucket, records[0].Key
	}
	l.Key = syncrequest.EscapeKey(l.key)
}

// redriven is the message that a redrive sends: the letter without what we wrote
// about its death, and one more redrive counted.
func (l *Letter) redriven() types.SendMessageBatchRequestEntry {
	attributes := make(map[string]types.MessageAttributeValue, len(l.attributes)+1)
	for name, v := range l.attributes {
		switch name {
		case queue.AttrEnd, queue.AttrDetail, queue.AttrReceives, queue.AttrDeadAt:
		default:
			attributes[name] = v
		}
	}
	attributes[queue.AttrRedriven] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(strconv.Itoa(l.Redriven + 1))}
	return types.SendMessageBatchRequestEntry{MessageBody: &l.Body, MessageAttributes: attributes}
}

// String names a letter without its body.
func (l *Letter) String() string {
	return fmt.Sprintf("%s letter %s (%s %s)", l.Queue, l.ID, l.End, l.Detail)
}
