package strictaws

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const maxSQSRequest = 16 << 20 // bytes; 1 MiB of messages may be six times that in JSON

// sqsRequest is one request to SQS on its way through.
type sqsRequest struct {
	c      *Cloud
	r      *http.Request
	body   []byte
	queue  string // name
	action string
	call   Call
}

func sqsActions() map[string]func(*sqsRequest) (any, *apiError) {
	return map[string]func(*sqsRequest) (any, *apiError){
		"CreateQueue":                  (*sqsRequest).createQueue,
		"DeleteQueue":                  (*sqsRequest).deleteQueue,
		"GetQueueUrl":                  (*sqsRequest).getQueueURL,
		"GetQueueAttributes":           (*sqsRequest).getQueueAttributes,
		"SetQueueAttributes":           (*sqsRequest).setQueueAttributes,
		"ListQueues":                   (*sqsRequest).listQueues,
		"ListDeadLetterSourceQueues":   (*sqsRequest).listDeadLetterSources,
		"PurgeQueue":                   (*sqsRequest).purgeQueue,
		"SendMessage":                  (*sqsRequest).sendMessage,
		"SendMessageBatch":             (*sqsRequest).sendMessageBatch,
		"ReceiveMessage":               (*sqsRequest).receiveMessage,
		"DeleteMessage":                (*sqsRequest).deleteMessage,
		"DeleteMessageBatch":           (*sqsRequest).deleteMessageBatch,
		"ChangeMessageVisibility":      (*sqsRequest).changeVisibility,
		"ChangeMessageVisibilityBatch": (*sqsRequest).changeVisibilityBatch,
	}
}

func (c *Cloud) serveSQS(w http.ResponseWriter, r *http.Request) {
	q := &sqsRequest{c: c, r: r}
	if err := q.read(); err != nil {
		q.fail(w, err)
		return
	}
	sig, err := claim(r, url.Values{})
	q.call = Call{Service: ServiceSQS, Action: q.action, Target: q.queue, Principal: c.principal(sig)}
	c.counters.add(q.call, Count{Calls: 1})
	if !c.faults.before(q.call, w, r, func(f Fail) { q.fail(w, f.refusal()) }) {
		return
	}
	c.faults.around(q.call, w, r, func(w http.ResponseWriter) {
		if err == nil {
			err = q.admit(sig)
		}
		var out any
		if err == nil {
			out, err = q.do()
		}
		if err != nil {
			q.fail(w, err)
			return
		}
		q.ok(w, out)
	})
}

// read takes the request in and finds out what it is about.
func (q *sqsRequest) read() *apiError {
	action, ok := strings.CutPrefix(q.r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	if !ok {
		return badRequest("MissingAction", "The request must name its action in X-Amz-Target (AWS JSON 1.0).")
	}
	q.action = action
	body, err := io.ReadAll(http.MaxBytesReader(nil, q.r.Body, maxSQSRequest))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return refuse(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is too long.")
	case err != nil:
		return badRequest("IncompleteBody", "The body of the request ended early.")
	}
	q.body = body
	var names struct{ QueueUrl, QueueName string }
	if err := json.Unmarshal(body, &names); err != nil {
		return badRequest("SerializationException", "The body of the request is not JSON.")
	}
	if q.queue = names.QueueName; names.QueueUrl != "" {
		q.queue = names.QueueUrl[strings.LastIndexByte(names.QueueUrl, '/')+1:]
	}
	return nil
}

func (q *sqsRequest) admit(sig signature) *apiError {
	if sig.authType == "" && len(q.c.cfg.Credentials) > 0 {
		return refuse(http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	path, _ := unescapePath(q.r.URL.EscapedPath())
	if _, err := q.c.verify(sig, q.r, path, url.Values{}, ServiceSQS, hexSHA256(q.body)); err != nil {
		return err
	}
	// IAM knows no batches.
	if q.c.policy.denies(q.call.Principal, "sqs:"+strings.TrimSuffix(q.action, "Batch"), q.queue) {
		return refuse(http.StatusForbidden, "AccessDenied", "User: "+q.call.Principal+" is not authorized to perform: sqs:"+q.action)
	}
	return nil
}

func (q *sqsRequest) do() (any, *apiError) {
	do := q.c.actions[q.action]
	if do == nil {
		return nil, badRequest("UnsupportedOperation", "strictaws does not have "+q.action+".")
	}
	return do(q)
}

// decode reads the request into v.
func (q *sqsRequest) decode(v any) *apiError {
	if err := json.Unmarshal(q.body, v); err != nil {
		return badRequest("SerializationException", err.Error())
	}
	return nil
}

func (q *sqsRequest) ok(w http.ResponseWriter, out any) {
	var b bytes.Buffer
	if out != nil {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(out); err != nil {
			q.fail(w, refuse(http.StatusInternalServerError, "InternalError", err.Error()))
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("X-Amzn-Requestid", uuid())
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b.Bytes())
}

// fail answers err as the JSON protocol does, with the code of the older query
// protocol in a header, which the SDKs prefer.
func (q *sqsRequest) fail(w http.ResponseWriter, err *apiError) {
	h := w.Header()
	for k, v := range err.Header {
		h[k] = v
	}
	fault := "Sender"
	if err.Status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("X-Amzn-Requestid", uuid())
	h.Set("X-Amzn-Query-Error", queryCode(err.Code)+";"+fault)
	body, _ := json.Marshal(map[string]string{"__type": "com.amazonaws.sqs#" + err.Code, "message": err.Message})
	w.WriteHeader(err.Status)
	_, _ = w.Write(body)
}

// queryCode is what the query protocol calls an error of the JSON protocol.
func queryCode(code string) string {
	switch code {
	case "QueueDoesNotExist":
		return "AWS.SimpleQueueService.NonExistentQueue"
	case "QueueNameExists":
		return "QueueAlreadyExists"
	case "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidBatchEntryId", "MessageNotInflight",
		"PurgeQueueInProgress", "QueueDeletedRecently", "TooManyEntriesInBatchRequest", "UnsupportedOperation":
		return "AWS.SimpleQueueService." + code
	case "KmsAccessDenied":
		return "KMS.AccessDeniedException"
	case "KmsThrottled":
		return "KMS.ThrottlingException"
	default:
		return code
	}
}
