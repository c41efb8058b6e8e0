// Package s3event reads the notifications that say which objects were created in
// an S3 bucket, in each envelope in which they reach a queue: from S3 directly,
// through an SNS topic, or from EventBridge.
//
// What is no news of a new object (a test event, a removal) yields no records
// and no error, so that it can be acknowledged. What cannot be read is an *Error;
// it never quotes the body, which is a stranger's.
//
// All functions are safe for concurrent use.
package s3event

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// MaxSize is the largest notification in bytes; S3 sends no larger ones.
const MaxSize = 64 << 10

// maxEnvelope leaves room for SNS to escape every byte of a notification and to
// add fields of its own.
const maxEnvelope = 2*MaxSize + 8<<10

// Record is one object that was created.
type Record struct {
	Bucket    string
	Key       string    // decoded
	Size      int64     // in bytes; -1 when the notification does not say
	EventTime time.Time // zero when the notification does not say
	Sequencer string    // orders the events of one key; may be empty
}

// Error says what is wrong with a notification.
type Error struct {
	At     string // the field at fault, such as "Records[1].s3.object.key"; empty for the whole
	Reason string
}

func (e *Error) Error() string {
	if e.At == "" {
		return "read notification: " + e.Reason
	}
	return "read notification: " + e.At + ": " + e.Reason
}

// envelope has the fields of all forms; which of them are there tells the form.
type envelope struct {
	Records *[]record // S3

	Event string // S3's test event

	Type    string  // SNS
	Message *string // SNS

	Source     string  `json:"source"`      // EventBridge
	DetailType string  `json:"detail-type"` // EventBridge
	Time       string  `json:"time"`        // EventBridge; S3's test event has "Time"
	Detail     *entity `json:"detail"`      // EventBridge
}

type record struct {
	EventVersion string  `json:"eventVersion"`
	EventSource  string  `json:"eventSource"`
	EventTime    string  `json:"eventTime"`
	EventName    string  `json:"eventName"`
	S3           *entity `json:"s3"`
}

type entity struct {
	Bucket struct {
		Name string `json:"name"`
	} `json:"bucket"`
	Object struct {
		Key       string `json:"key"`
		Size      *int64 `json:"size"`
		Sequencer string `json:"sequencer"`
	} `json:"object"`
}

// Parse returns the objects that a message's body says were created, in its
// order; none when it says nothing of the kind. The error is an *Error; then no
// record is returned, also where only one of several is at fault, because the
// message is settled as a whole.
func Parse(body string) ([]Record, error) {
	e, err := open(body)
	if err != nil {
		return nil, err
	}
	if e.Message != nil && e.Records == nil {
		if e.Type != "Notification" {
			return nil, &Error{"Type", "not an SNS notification; a subscription must be confirmed first"}
		}
		body = *e.Message
		if e, err = open(body); err != nil {
			return nil, err
		}
	}
	if len(body) > MaxSize {
		return nil, tooLarge(body, MaxSize)
	}
	switch {
	case e.Records != nil:
		return fromS3(*e.Records)
	case e.Event == "s3:TestEvent":
		return nil, nil
	case e.Detail != nil:
		return fromEventBridge(e)
	}
	return nil, &Error{"", "neither an S3 notification nor an envelope of one"}
}

func open(body string) (envelope, error) {
	var e envelope
	if len(body) > maxEnvelope {
		return e, tooLarge(body, maxEnvelope)
	}
	err := json.Unmarshal([]byte(body), &e)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return e, &Error{"", fmt.Sprintf("broken JSON at byte %d", syntax.Offset)}
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return e, &Error{mismatch.Field, "not of the type it must have"}
	case err != nil:
		return e, &Error{"", "not a JSON object"}
	}
	return e, nil
}

func tooLarge(body string, limit int) *Error {
	return &Error{"", fmt.Sprintf("%d bytes are more than %d", len(body), limit)}
}

func fromS3(records []record) ([]Record, error) {
	var created []Record
	for i, r := range records {
		at := fmt.Sprintf("Records[%d]", i)
		switch {
		case r.EventSource != "aws:s3":
			return nil, &Error{at + ".eventSource", "not aws:s3"}
		case !strings.HasPrefix(r.EventVersion, "2."):
			return nil, &Error{at + ".eventVersion", "not 2.x"}
		case r.EventName == "":
			return nil, &Error{at + ".eventName", "missing"}
		}
		// Some emulators write the name as a configuration has it.
		if !strings.HasPrefix(strings.TrimPrefix(r.EventName, "s3:"), "ObjectCreated:") {
			continue
		}
		if r.S3 == nil {
			return nil, &Error{at + ".s3", "missing"}
		}
		// S3 encodes the key as an HTML form does, once.
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil {
			return nil, &Error{at + ".s3.object.key", "bad escape"}
		}
		rec, err := r.S3.record(at+".s3", key, r.EventTime)
		if err != nil {
			return nil, err
		}
		created = append(created, rec)
	}
	return created, nil
}

func fromEventBridge(e envelope) ([]Record, error) {
	if e.Source != "aws.s3" {
		return nil, &Error{"source", "not aws.s3"}
	}
	if e.DetailType == "" {
		return nil, &Error{"detail-type", "missing"}
	}
	if e.DetailType != "Object Created" {
		return nil, nil
	}
	// The key is believed to come plain, unlike in S3's own notifications; not
	// verified on AWS. Where it were encoded, the object would not be found, and
	// the message would end as a dead letter that says so.
	rec, err := e.Detail.record("detail", e.Detail.Object.Key, e.Time)
	if err != nil {
		return nil, err
	}
	return []Record{rec}, nil
}

func (n *entity) record(at, key, when string) (Record, error) {
	r := Record{Bucket: n.Bucket.Name, Key: key, Size: -1, EventTime: parseTime(when), Sequencer: n.Object.Sequencer}
	switch {
	case r.Bucket == "":
		return r, &Error{at + ".bucket.name", "missing"}
	case r.Key == "":
		return r, &Error{at + ".object.key", "missing"}
	}
	if n.Object.Size != nil {
		if r.Size = *n.Object.Size; r.Size < 0 {
			return r, &Error{at + ".object.size", "negative"}
		}
	}
	return r, nil
}

// parseTime returns the zero time for what it cannot read: nothing that matters
// hangs on when the event was raised, so it is no reason to refuse one. Some
// emulators leave the zone out.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
