package s3store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
)

// effect is what a request does, and so what a lost answer to it means.
type effect int

const (
	reads    effect = iota // nothing
	prepares               // something that nobody sees yet and that may be done again
	commits                // an object becomes visible
)

const (
	hintPolicy = "check the role's policy and the bucket's (docs/PERMISSIONS.md)"
	hintKMS    = "check the KMS key's state and the role's grant on it (kms:GenerateDataKey, kms:Decrypt)"
	hintNotS3  = "something between here and S3 answers in its place; check proxies and DNS"
	hintBucket = "check the bucket's name, region and expected_owner"
)

// meaning is what a code of S3 stands for.
type meaning struct {
	class object.Class
	hint  string
}

// codes holds the codes that are not sufficiently told by their status.
var codes = map[string]meaning{
	"NoSuchKey":                          {object.Absent, ""},
	"NoSuchUpload":                       {object.Unavailable, ""}, // thrown away behind our back; start again
	"AccessDenied":                       {object.Denied, hintPolicy},
	"InvalidObjectState":                 {object.Archived, ""},
	"PreconditionFailed":                 {object.Exists, ""},
	"ConditionalRequestConflict":         {object.Ambiguous, ""},
	"OperationAborted":                   {object.Ambiguous, ""},
	"NoSuchBucket":                       {object.Refused, hintBucket},
	"PermanentRedirect":                  {object.Refused, hintBucket},
	"AuthorizationHeaderMalformed":       {object.Refused, hintBucket}, // the wrong region
	"IllegalLocationConstraintException": {object.Refused, hintBucket},
	"InvalidBucketName":                  {object.Refused, hintBucket},
	"InvalidStorageClass":                {object.Refused, "check destination.storage_class"},
	"InvalidAccessKeyId":                 {object.Refused, "check the AWS credentials"},
	"SignatureDoesNotMatch":              {object.Refused, "check the AWS credentials"},
	"InvalidToken":                       {object.Refused, "check the AWS credentials"},
	"ExpiredToken":                       {object.Refused, "renew the AWS credentials"},
	"RequestTimeTooSkewed":               {object.Refused, "set this machine's clock"},
	"AccountProblem":                     {object.Refused, "ask AWS support about the account"},
	"AllAccessDisabled":                  {object.Refused, "ask AWS support about the account"},
	"NotSignedUp":                        {object.Refused, "ask AWS support about the account"},
	"SlowDown":                           {object.Throttled, ""},
	"RequestLimitExceeded":               {object.Throttled, ""},
	"ThrottlingException":                {object.Throttled, ""},
	"Throttling":                         {object.Throttled, ""},
	"TooManyRequests":                    {object.Throttled, ""},
	"KMS.ThrottlingException":            {object.Throttled, "raise the KMS request quota or use a bucket key"},
	"BadDigest":                          {object.Corrupt, ""},
	"InvalidDigest":                      {object.Corrupt, ""},
	"XAmzContentSHA256Mismatch":          {object.Corrupt, ""},
	"XAmzContentChecksumMismatch":        {object.Corrupt, ""},
	"InvalidPart":                        {object.Corrupt, ""},
	"EntityTooLarge":                     {object.Unfit, ""},
	"KeyTooLongError":                    {object.Unfit, ""},
	"InvalidURI":                         {object.Unfit, ""}, // a key that is not UTF-8
	"MetadataTooLarge":                   {object.Unfit, ""},
	"IncompleteBody":                     {object.Unavailable, ""}, // cut on the way in, so not committed
	"RequestTimeout":                     {object.Unavailable, ""}, // likewise
}

// statusMeaning is what a status means when its code is not in the table above.
func statusMeaning(status int) meaning {
	switch {
	case status < 300: // the answer was good but unreadable
		return meaning{object.Unavailable, ""}
	case status == http.StatusMovedPermanently: // to another region
		return meaning{object.Refused, hintBucket}
	case status < 400:
		return meaning{object.Unavailable, hintNotS3}
	case status == http.StatusForbidden:
		return meaning{object.Denied, hintPolicy}
	case status == http.StatusConflict:
		return meaning{object.Ambiguous, ""}
	case status == http.StatusPreconditionFailed:
		return meaning{object.Exists, ""}
	case status == http.StatusTooManyRequests:
		return meaning{object.Throttled, ""}
	case status == http.StatusRequestTimeout, status >= 500:
		return meaning{object.Unavailable, ""}
	}
	return meaning{object.Unknown, ""}
}

// classify turns what the SDK returned into an *object.Error.
func classify(ctx context.Context, side object.Side, op, key string, does effect, err error) *object.Error {
	e := &object.Error{Side: side, Op: op, Key: key}
	var answer *awshttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.HTTPStatusCode() == 0 {
		e.Class, e.Err = unanswered(ctx, does, err), cause(err)
		if errors.Is(err, errNotS3) {
			e.Hint = hintNotS3
		}
		return e
	}
	status := answer.HTTPStatusCode()
	e.Code, e.Err = "http "+strconv.Itoa(status), cause(err)
	e.RetryAfter = object.RetryAfter(answer.Response.Header.Get("Retry-After"), time.Now())
	// Without a code in the body the SDK makes one up from the status, so that a
	// proxy's page would pass for S3's word.
	s3s, m, known := authentic(answer.Response.Header), meaning{}, false
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Err = api.ErrorCode(), fmt.Errorf("request %s", answer.ServiceRequestID())
		m, known = lookUp(api)
	}
	switch {
	case !s3s && status != http.StatusTooManyRequests:
		m = meaning{object.Unavailable, hintNotS3}
	case !known:
		m = statusMeaning(status)
	}
	e.Class, e.Hint = m.class, m.hint
	open := !s3s || status < 300 || status >= 500 || e.Code == "NoSuchUpload"
	switch {
	case does == reads && m.class == object.Exists: // If-Match
		e.Class = object.Changed
	case does == commits && m.class == object.Unavailable && open:
		e.Class = object.Ambiguous
	}
	return e
}

// lookUp finds what a code means, and whether the table knows.
func lookUp(api smithy.APIError) (meaning, bool) {
	code := api.ErrorCode()
	m, known := codes[code]
	if !known && strings.HasPrefix(code, "KMS.") {
		return meaning{object.Refused, hintKMS}, true
	}
	if m.class == object.Denied && strings.Contains(strings.ToLower(api.ErrorMessage()), "kms") {
		m.hint = hintKMS
	}
	return m, known
}

// unanswered is the class of a request that no answer came to.
func unanswered(ctx context.Context, does effect, err error) object.Class {
	class, interrupted := object.Interrupted(ctx)
	if interrupted && class == object.Canceled {
		return class
	}
	if does == commits && sent(err) {
		return object.Ambiguous
	}
	if interrupted {
		return class
	}
	return object.Unavailable
}

// sent reports whether S3 may have seen the request: not when no connection
// came about, and not when it failed before it was sent, as for want of
// credentials.
func sent(err error) bool {
	var (
		send     *smithyhttp.RequestSendError
		canceled *smithy.CanceledError
		network  *net.OpError
		dns      *net.DNSError
		cert     *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &canceled): // what it interrupted is not told
		return true
	case !errors.As(err, &send), errors.As(err, &dns), errors.As(err, &cert):
		return false
	case errors.As(err, &network):
		return network.Op != "dial"
	}
	return true
}

// cause is what went wrong without the URL, which repeats the key.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	var o *smithy.OperationError
	if errors.As(err, &o) {
		return o.Err
	}
	return err
}
