package strictaws

import (
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const metaPrefix = "X-Amz-Meta-"

// s3Request is one request to S3 on its way through.
type s3Request struct {
	c *Cloud
	w *recorder
	r *http.Request
	target
	call   Call
	op     *operation
	who    string // ARN, or anonymous
	sig    signature
	signer *chunkSigner
	id     string
	hostID string
	start  time.Time // by Config.Now
	began  time.Time // by the real clock

	errCode    string // what the log row says
	objectSize int64  // -1 where there is none
	versionID  string
	extra      []logEntry // further rows, one for each key of a batch
}

func (c *Cloud) serveS3(w http.ResponseWriter, r *http.Request) {
	q := &s3Request{c: c, r: r, w: &recorder{ResponseWriter: w}, who: anonymous,
		id: c.requestID(), hostID: c.hostID(), start: c.cfg.Now(), began: time.Now(), objectSize: -1}
	// Deferred, because a reset connection leaves by panic and is logged all the same.
	defer q.log()
	var err *apiError
	if q.target, err = parseTarget(r.RequestURI, r.Host); err == nil {
		q.op, err = c.route(r.Method, q.target)
	}
	if err != nil {
		q.fail(err)
		return
	}
	q.sig, err = claim(r, q.query)
	q.call = Call{ServiceS3, q.op.action, q.bucket, q.key, c.principal(q.sig)}
	c.counters.add(q.call, Count{Calls: 1})
	if !c.faults.before(q.call, q.w, r, func(f Fail) { q.fail(f.refusal()) }) {
		return
	}
	c.faults.around(q.call, q.w, r, func(w http.ResponseWriter) {
		if w != http.ResponseWriter(q.w) {
			q.w = &recorder{ResponseWriter: w}
		}
		if err == nil {
			err = q.admit()
		}
		if err == nil {
			err = q.op.do(q)
		}
		if err != nil {
			q.fail(err)
		}
	})
}

func (f Fail) refusal() *apiError {
	return &apiError{Status: f.Status, Code: f.Code, Message: "injected", Header: f.Header}
}

// admit verifies who asks, and that the request may be made at all.
func (q *s3Request) admit() *apiError {
	hash := q.r.Header.Get("X-Amz-Content-Sha256")
	if q.sig.authType == "AuthHeader" && hash == "" {
		return badRequest("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
	if hash == "" {
		hash = "UNSIGNED-PAYLOAD"
	}
	var err *apiError
	if q.signer, err = q.c.verify(q.sig, q.r, q.path, q.query, ServiceS3, hash); err != nil {
		return err
	}
	q.who = q.call.Principal
	if len(q.key) > 1024 {
		return badRequest("KeyTooLongError", "Your key is too long")
	}
	if q.op.level == serviceLevel || q.op.action == "CreateBucket" {
		if q.who == anonymous {
			return accessDenied()
		}
		return q.permit(q.op.permission)
	}
	q.c.store.mu.RLock()
	b := q.c.store.buckets[q.bucket]
	q.c.store.mu.RUnlock()
	if b == nil {
		return noSuchBucket()
	}
	if owner := q.r.Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" && owner != b.opts.Owner {
		return accessDenied()
	}
	return q.permit(q.op.permission)
}

// permit says whether the requester may do action (IAM's name) here.
func (q *s3Request) permit(action string) *apiError {
	if !q.may(action) {
		e := accessDenied()
		if strings.HasPrefix(action, "kms:") { // S3 hands on what KMS says
			e.Message = "User: " + q.who + " is not authorized to perform: " + action + " on the resource associated with this ciphertext"
		}
		return e
	}
	return nil
}

func (q *s3Request) may(action string) bool {
	resource := q.bucket
	if q.key != "" && action != "s3:ListBucket" {
		resource += "/" + q.key
	}
	if q.c.policy.denies(q.who, action, resource) {
		return false
	}
	if q.who != anonymous {
		return true
	}
	q.c.store.mu.RLock()
	defer q.c.store.mu.RUnlock()
	b := q.c.store.buckets[q.bucket]
	return b != nil && (action == "s3:GetObject" && b.opts.PublicRead || action == "s3:ListBucket" && b.opts.PublicList)
}

// fail answers err in S3's form.
func (q *s3Request) fail(err *apiError) {
	q.drain()
	q.errCode = err.Code
	h := q.w.Header()
	for k, v := range err.Header {
		h[k] = v
	}
	q.identify()
	if err.Status == http.StatusNotModified {
		q.errCode = ""
		q.w.WriteHeader(err.Status)
		return
	}
	var b strings.Builder
	b.WriteString(xml.Header + "<Error>")
	element(&b, "Code", err.Code)
	element(&b, "Message", err.Message)
	for k, v := range err.Fields {
		element(&b, k, v)
	}
	element(&b, "Resource", q.path)
	element(&b, "RequestId", q.id)
	element(&b, "HostId", q.hostID)
	b.WriteString("</Error>")
	h.Set("Content-Type", "application/xml")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	q.w.WriteHeader(err.Status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write([]byte(b.String()))
	}
}

// drain takes in what is left of a refused body, or the client's write would
// meet a closed connection before it could read the refusal.
func (q *s3Request) drain() {
	_, _ = io.CopyN(io.Discard, q.r.Body, 64<<20)
}

func element(b *strings.Builder, name, text string) {
	b.WriteString("<" + name + ">")
	_ = xml.EscapeText(b, []byte(text))
	b.WriteString("</" + name + ">")
}

// identify sets the headers by which an answer is known to be S3's.
func (q *s3Request) identify() {
	h := q.w.Header()
	h.Set("X-Amz-Request-Id", q.id)
	h.Set("X-Amz-Id-2", q.hostID)
	h.Set("Server", "AmazonS3")
}

// ok answers status with body as XML; nil answers no body.
func (q *s3Request) ok(status int, body any) *apiError {
	q.identify()
	if body == nil {
		if status != http.StatusNoContent {
			q.w.Header().Set("Content-Length", "0")
		}
		q.w.WriteHeader(status)
		return nil
	}
	out, err := xml.Marshal(body)
	if err != nil {
		return refuse(http.StatusInternalServerError, "InternalError", err.Error())
	}
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.Header().Set("Content-Length", strconv.Itoa(len(xml.Header)+len(out)))
	q.w.WriteHeader(status)
	_, _ = q.w.Write(append([]byte(xml.Header), out...))
	return nil
}

// recorder notes what an access log tells of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	sent   int64
	first  time.Time
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.first = status, time.Now()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	return n, err
}
