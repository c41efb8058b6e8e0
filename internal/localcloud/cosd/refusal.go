package cosd

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

// refusal is an error answer of COS.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.status, r.code) }

var (
	errAccessDenied = &refusal{403, "AccessDenied", "Access Denied."}
	errExpired      = &refusal{403, "AccessDenied", "Request has expired"}
	errInvalidKeyID = &refusal{403, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records"}
	errSignature    = &refusal{403, "SignatureDoesNotMatch", "The Signature you specified is invalid."}
	errInvalidState = &refusal{403, "InvalidObjectState", "The operation is not valid for the object's storage class."}
	errPathStyle    = &refusal{403, "PathStyleDomainForbidden", "Path style domain is forbidden."}
	errNoSuchKey    = &refusal{404, "NoSuchKey", "The specified key does not exist."}
	errNoSuchBucket = &refusal{404, "NoSuchBucket", "The specified bucket does not exist."}
	errMethod       = &refusal{405, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	errPrecondition = &refusal{412, "PreconditionFailed", "Precondition Failed"}
	errInvalidRange = &refusal{416, "InvalidRange", "The requested range is not satisfiable."}
	errRequestLimit = &refusal{429, "RequestLimitExceeded", "Request limit exceeded."}
	errSlowDown     = &refusal{503, "SlowDown", "Reduce your request rate."}
)

// refuse is the error answer to q.
func (s *Server) refuse(q *Request, r *refusal) *answer {
	request, trace := s.ids()
	a := newAnswer(r.status)
	a.header.Set("Server", "tencent-cos")
	a.header.Set("x-cos-request-id", request)
	a.header.Set("x-cos-trace-id", trace)
	body, err := xml.MarshalIndent(struct {
		XMLName                                     xml.Name `xml:"Error"`
		Code, Message, Resource, RequestId, TraceId string
	}{
		Code: r.code, Message: r.message,
		Resource: s.bucket + ".cos.ap-shanghai.myqcloud.com/" + q.Key, RequestId: request, TraceId: trace,
	}, "", "\t")
	if err != nil { // only strings: cannot happen
		panic(err)
	}
	a.header.Set("Content-Type", "application/xml")
	a.set(append([]byte("<?xml version='1.0' encoding='utf-8' ?>\n"), body...))
	return a
}

// set replaces the body by b.
func (a *answer) set(b []byte) {
	a.body, a.length, a.offset = bytes.NewReader(b), int64(len(b)), 0
}
