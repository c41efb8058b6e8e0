package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
)

// classes says what a code of SQS means. Codes come with and without the prefix
// of the old query protocol, see shortCode.
var classes = map[string]object.Class{
	"Throttling":            object.Throttled,
	"ThrottlingException":   object.Throttled,
	"RequestThrottled":      object.Throttled,
	"RequestLimitExceeded":  object.Throttled,
	"TooManyRequests":       object.Throttled,
	"SlowDown":              object.Throttled,
	"KmsThrottled":          object.Throttled,
	"KmsThrottling":         object.Throttled,
	"OverLimit":             object.Throttled, // too many messages in flight
	"ServiceUnavailable":    object.Unavailable,
	"InternalError":         object.Unavailable,
	"InternalFailure":       object.Unavailable,
	"AccessDenied":          object.Refused,
	"AccessDeniedException": object.Refused,
	"NotAuthorized":         object.Refused,
	"OptInRequired":         object.Refused,
	"InvalidSecurity":       object.Refused,
	"InvalidAddress":        object.Refused,

	"InvalidClientTokenId":        object.Refused,
	"UnrecognizedClientException": object.Refused,
	"MissingAuthenticationToken":  object.Refused,
	"ExpiredToken":                object.Refused,
	"ExpiredTokenException":       object.Refused,
	"SignatureDoesNotMatch":       object.Refused,
	"InvalidSignatureException":   object.Refused,
	"IncompleteSignature":         object.Refused,

	"NonExistentQueue":          object.Refused,
	"QueueDoesNotExist":         object.Refused,
	"QueueDeletedRecently":      object.Refused,
	"ResourceNotFoundException": object.Refused,
	"KmsAccessDenied":           object.Refused,
	"KmsDisabled":               object.Refused,
	"KmsInvalidKeyUsage":        object.Refused,
	"KmsInvalidState":           object.Refused,
	"KmsNotFound":               object.Refused,
	"KmsOptInRequired":          object.Refused,

	// What no attempt will send. Unfit costs a request for good, so nothing else is:
	// a code that nobody foresaw is Unknown, whosever fault SQS says it is.
	"InvalidMessageContents": object.Unfit,
	"InvalidParameterValue":  object.Unfit,
	"InvalidAttributeName":   object.Unfit,
	"InvalidAttributeValue":  object.Unfit,
	"MessageTooLong":         object.Unfit,
}

// gone are the codes of an entry whose message is no longer ours.
// InvalidParameterValue is what SQS itself says of a receipt whose time is over.
var gone = map[string]bool{
	"ReceiptHandleIsInvalid": true,
	"MessageNotInflight":     true,
	"InvalidParameterValue":  true,
}

// isGone reports whether err is SQS's word that a message is no longer ours.
func isGone(err error) bool { return gone[object.CodeOf(err)] }

// Classify turns what a call to SQS returned into an *object.Error of side
// object.Queue; nil stays nil, and what is classified already is handed through.
// op is the SDK's name of the operation.
func Classify(err error, op string) *object.Error {
	if err == nil {
		return nil
	}
	var known *object.Error
	if errors.As(err, &known) {
		return known
	}
	e := &object.Error{Side: object.Queue, Op: op, Class: object.Unavailable, Err: err}
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	switch {
	case errors.Is(err, context.Canceled):
		e.Class = object.Canceled
	case errors.As(err, &api):
		status := 0
		if errors.As(err, &answer) {
			status = answer.HTTPStatusCode()
		}
		e.Code = shortCode(api.ErrorCode())
		e.Class = classOf(e.Code, status)
	case errors.As(err, &answer) && answer.HTTPStatusCode() == 403:
		e.Class, e.Code = object.Refused, "http 403"
	}
	e.Hint = hint(e.Class, op)
	return e
}

// classOf judges a code; status is 0 where there is none.
func classOf(code string, status int) object.Class {
	if c, ok := classes[code]; ok {
		return c
	}
	switch {
	case status == 429:
		return object.Throttled
	case status == 401 || status == 403:
		return object.Refused
	case status == 0 || status >= 500 || status < 400:
		return object.Unavailable
	}
	return object.Unknown
}

// entryError is what SQS says of one entry of a batch whose call it answered
// with 200.
func entryError(f types.BatchResultErrorEntry, op string) *object.Error {
	e := &object.Error{Side: object.Queue, Op: op, Code: shortCode(deref(f.Code))}
	if m := deref(f.Message); m != "" {
		e.Err = errors.New(m)
	}
	e.Class = classOf(e.Code, 0)
	if _, listed := classes[e.Code]; f.SenderFault && !listed {
		e.Class = object.Unknown
	}
	return e
}

// shortCode drops the prefixes that the query protocol puts before a code, and
// the fault that some answers put after it.
func shortCode(code string) string {
	code, _, _ = strings.Cut(code, ";")
	if i := strings.LastIndexAny(code, ".#"); i >= 0 {
		prefix, rest := code[:i], code[i+1:]
		if prefix == "KMS" {
			return "Kms" + strings.TrimSuffix(rest, "Exception")
		}
		return rest
	}
	return code
}

func hint(c object.Class, op string) string {
	if c == object.Refused {
		return "check the queue's URL, that the role may sqs:" + strings.TrimSuffix(op, "Batch") + " there, and the queue's KMS key"
	}
	return ""
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
