package queue

import (
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// SQS's limits.
const (
	BatchMax = 10      // entries of a batch
	MaxBytes = 1 << 20 // bodies and attributes of a batch, and of a single message

	maxAttributes = 10
	maxDelay      = 15 * time.Minute
)

const stringType = "String"

// request makes e an entry of a batch, with the attributes of its origin.
func request(e Entry, origin map[string]string) types.SendMessageBatchRequestEntry {
	r := types.SendMessageBatchRequestEntry{MessageBody: &e.Body, DelaySeconds: seconds(e.Delay)}
	if len(e.Attributes)+len(origin) == 0 {
		return r
	}
	all := maps.Clone(origin)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, e.Attributes)
	r.MessageAttributes = make(map[string]types.MessageAttributeValue, len(all))
	for name, value := range all {
		r.MessageAttributes[name] = stringValue(value)
	}
	return r
}

func stringValue(s string) types.MessageAttributeValue {
	kind := stringType
	return types.MessageAttributeValue{DataType: &kind, StringValue: &s}
}

// SizeOf is what SQS counts: the body, and name, type and value of each attribute.
func SizeOf(e types.SendMessageBatchRequestEntry) int {
	n := len(deref(e.MessageBody))
	for name, v := range e.MessageAttributes {
		n += attributeSize(name, v)
	}
	return n
}

func attributeSize(name string, v types.MessageAttributeValue) int {
	return len(name) + len(deref(v.DataType)) + len(deref(v.StringValue)) + len(v.BinaryValue)
}

func bytesOf(batch []*parcel) int {
	n := 0
	for _, p := range batch {
		n += p.size
	}
	return n
}

// check refuses what SQS would refuse, so that one entry cannot cost a batch.
func check(e types.SendMessageBatchRequestEntry, size int) error {
	unfit := func(code, cause string, args ...any) error {
		return &object.Error{Side: object.Queue, Op: opSend, Class: object.Unfit, Code: code, Err: fmt.Errorf(cause, args...)}
	}
	switch body := deref(e.MessageBody); {
	case size > MaxBytes:
		return unfit("MessageTooLong", "%d bytes, the limit is %d", size, MaxBytes)
	case body == "":
		return unfit("InvalidMessageContents", "the body is empty")
	case badRune(body) >= 0:
		return unfit("InvalidMessageContents", "a character at byte %d that SQS does not carry", badRune(body))
	case len(e.MessageAttributes) > maxAttributes:
		return unfit("InvalidAttributeValue", "%d attributes, the limit is %d", len(e.MessageAttributes), maxAttributes)
	case time.Duration(e.DelaySeconds)*time.Second > maxDelay || e.DelaySeconds < 0:
		return unfit("InvalidParameterValue", "a delay of %d seconds, the limit is %d", e.DelaySeconds, int(maxDelay.Seconds()))
	}
	for name, v := range e.MessageAttributes {
		if s := deref(v.StringValue); name == "" || s == "" && len(v.BinaryValue) == 0 || badRune(s) >= 0 {
			return unfit("InvalidAttributeValue", "attribute %q is empty or holds a character that SQS does not carry", name)
		}
	}
	return nil
}

// badRune returns the place of the first character that SQS refuses, or -1. It
// carries #x9 #xA #xD, #x20-#xD7FF, #xE000-#xFFFD and #x10000-#x10FFFF.
func badRune(s string) int {
	for i, r := range s {
		if r >= 0x20 && r < 0xFFFE && r != utf8.RuneError || r > 0xFFFF || r == '\t' || r == '\n' || r == '\r' {
			continue
		}
		if r == utf8.RuneError && strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			continue // U+FFFD itself, not a broken byte
		}
		return i
	}
	return -1
}

// Name is the last part of a queue's URL, its label in metrics.
func Name(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }
