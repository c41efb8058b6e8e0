package cos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	sdk "github.com/tencentyun/cos-go-sdk-v5"

	"github.com/objectferry/objectferry/internal/object"
)

const (
	hintNotCOS      = "something between here and COS answers in its place; check source.cos, proxies and DNS"
	hintCredentials = "check credentials_file and that its key may read this bucket"
)

// meaning is what a code of COS stands for.
type meaning struct {
	class object.Class
	hint  string
}

// codes holds the codes that are not sufficiently told by their status.
// DownloadForbidden is Denied, not Refused: the default domain refuses .apk and
// .ipa files and nothing else, so the reference read lets the bucket go on.
var codes = map[string]meaning{
	"NoSuchKey":                   {object.Absent, ""},
	"KeyTooLong":                  {object.Absent, ""}, // nothing can stand there
	"NoSuchBucket":                {object.Refused, "check source.cos"},
	"InvalidObjectState":          {object.Archived, ""},
	"AccessDenied":                {object.Denied, ""},
	"DownloadForbidden":           {object.Denied, "the default domain does not serve .apk and .ipa files; use a custom domain"},
	"SignatureDoesNotMatch":       {object.Refused, hintCredentials},
	"InvalidAccessKeyId":          {object.Refused, hintCredentials},
	"InvalidSecretId":             {object.Refused, hintCredentials},
	"ExpiredToken":                {object.Refused, "renew credentials_file: its token is over"},
	"InvalidToken":                {object.Refused, hintCredentials},
	"RequestTimeTooSkewed":        {object.Refused, "set this machine's clock"},
	"RequestHasExpired":           {object.Refused, "set this machine's clock"},
	"PathStyleDomainForbidden":    {object.Refused, "source.cos must name the bucket in its host"},
	"UnavailableForLegalReasons":  {object.Refused, "the account or bucket is suspended"},
	"PreconditionFailed":          {object.Changed, ""},
	"SlowDown":                    {object.Throttled, ""},
	"RequestLimitExceeded":        {object.Throttled, ""},
	"RequestBandwidthLimitExceed": {object.Throttled, ""},
	"TooManyRequests":             {object.Throttled, ""},
	"RequestTimeout":              {object.Unavailable, ""},
}

// statusMeaning is what a status means when its code is not in the table above.
func statusMeaning(code int) meaning {
	switch {
	case code == http.StatusPreconditionFailed, code == http.StatusRequestedRangeNotSatisfiable:
		return meaning{object.Changed, ""}
	case code == http.StatusForbidden: // a refusal, though with a new name
		return meaning{object.Denied, ""}
	case code == http.StatusTooManyRequests:
		return meaning{object.Throttled, ""}
	case code == http.StatusRequestTimeout, code >= 500:
		return meaning{object.Unavailable, ""}
	case code < 400:
		return meaning{object.Unavailable, "COS redirects; check that source.cos is the bucket's own host"}
	}
	return meaning{object.Unknown, ""}
}

// classify turns what the SDK returned into an *object.Error. The SDK's own error
// text is never used: it holds the decoded key, and asking an answerless one for
// it panics.
func classify(ctx context.Context, op, key string, resp *http.Response, err error) error {
	e := &object.Error{Side: object.Source, Op: op, Key: key}
	if resp == nil {
		class, interrupted := object.Interrupted(ctx)
		if !interrupted {
			class = object.Unavailable
		}
		e.Class, e.Err = class, cause(err)
		return e
	}
	e.Code = status(resp.StatusCode)
	e.RetryAfter = object.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	if !authentic(resp.Header) {
		m := statusMeaning(resp.StatusCode)
		e.Class = object.Unavailable
		if m.class == object.Throttled { // a gateway's limit is a limit all the same
			e.Class = object.Throttled
		}
		e.Err, e.Hint = errNotCOS, hintNotCOS
		return e
	}
	m, known := meaning{}, false
	if r, ok := sdk.IsCOSError(err); ok && r.Code != "" {
		e.Code = r.Code
		m, known = codes[r.Code]
	}
	if !known {
		m = statusMeaning(resp.StatusCode)
	}
	e.Class, e.Hint = m.class, m.hint
	e.Err = fmt.Errorf("request %s", resp.Header.Get("X-Cos-Request-Id"))
	return e
}

var errNotCOS = errors.New("the answer has no x-cos-request-id, so it is not COS's")

// notCOS is the error for a success that COS did not answer.
func notCOS(op, key string, resp *http.Response) error {
	return &object.Error{Side: object.Source, Op: op, Key: key, Class: object.Unavailable, Code: status(resp.StatusCode), Err: errNotCOS, Hint: hintNotCOS}
}

// cause is what went wrong without the URL, which repeats the key.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	var r *sdk.RetryError
	if errors.As(err, &r) && len(r.Errs) > 0 {
		return r.Errs[len(r.Errs)-1]
	}
	return err
}

// status is the code of an answer that has none of its own.
func status(code int) string { return "http " + strconv.Itoa(code) }
