package strictaws

import (
	"slices"
	"strconv"
	"time"
)

// outgoing is a message to be sent, alone or as an entry of a batch.
type outgoing struct {
	ID                      string `json:"Id"`
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]messageAttribute
	MessageSystemAttributes map[string]messageAttribute
	MessageGroupID          string `json:"MessageGroupId"`
}

type sent struct {
	ID                           string `json:"Id,omitempty"`
	MessageID                    string `json:"MessageId"`
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
}

type failed struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}

func (q *sqsRequest) sendMessage() (any, *apiError) {
	var in outgoing
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	out, err := q.send(in)
	if err != nil {
		return nil, err
	}
	q.c.counters.add(q.call, Count{Entries: 1})
	return out, nil
}

func (q *sqsRequest) sendMessageBatch() (any, *apiError) {
	var in struct{ Entries []outgoing }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	ids, total := make([]string, len(in.Entries)), 0
	for i, e := range in.Entries {
		ids[i] = e.ID
		total += sizeOf(e.MessageBody, e.MessageAttributes)
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	if total > maxMessage {
		return nil, badRequest("BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent "+strconv.Itoa(total)+" bytes.")
	}
	return eachEntry(q, len(ids), func(i int) (string, string) { return ids[i], in.Entries[i].MessageBody }, func(i int) (sent, *apiError) {
		return q.send(in.Entries[i])
	})
}

// checkBatch refuses a batch as a whole.
func checkBatch(ids []string) *apiError {
	switch {
	case len(ids) == 0:
		return badRequest("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > 10:
		return badRequest("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent "+strconv.Itoa(len(ids))+".")
	}
	for i, id := range ids {
		if !entryID.MatchString(id) {
			return badRequest("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if slices.Contains(ids[:i], id) {
			return badRequest("BatchEntryIdsNotDistinct", "Id "+id+" repeated.")
		}
	}
	return nil
}

type batchResult[T any] struct {
	Successful []T      `json:",omitempty"`
	Failed     []failed `json:",omitempty"`
}

// eachEntry carries a batch out entry by entry, some of which a fault may fail.
func eachEntry[T any](q *sqsRequest, n int, entry func(int) (id, body string), do func(int) (T, *apiError)) (any, *apiError) {
	if err := q.mustExist(); err != nil {
		return nil, err
	}
	var out batchResult[T]
	for i := range n {
		id, body := entry(i)
		if f, hit := q.failEntry(i, body); hit {
			f.ID = id
			out.Failed = append(out.Failed, f)
			continue
		}
		done, err := do(i)
		if err != nil {
			out.Failed = append(out.Failed, failed{id, queryCode(err.Code), err.Message, true})
			continue
		}
		out.Successful = append(out.Successful, done)
	}
	q.c.counters.add(q.call, Count{Entries: len(out.Successful)})
	return out, nil
}

func (q *sqsRequest) failEntry(i int, body string) (failed, bool) {
	e, _, hit := strike(q.c.faults, q.call, func(_ *Active, e FailEntry) bool {
		all := len(e.Indexes) == 0 && e.Body == nil
		return all || slices.Contains(e.Indexes, i) || e.Body != nil && e.Body(body)
	})
	if e.Code == "" {
		e.Code = "InternalError"
	}
	return failed{Code: e.Code, Message: "injected", SenderFault: e.SenderFault}, hit
}

func (q *sqsRequest) mustExist() *apiError { return q.c.queues.with(q.queue, func(*queue) {}) }

func (q *sqsRequest) send(in outgoing) (sent, *apiError) {
	if err := checkMessage(in.MessageBody, in.MessageAttributes); err != nil {
		return sent{}, err
	}
	if limit := q.c.queues.maxSize(q.queue); sizeOf(in.MessageBody, in.MessageAttributes) > limit {
		return sent{}, badRequest("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than "+strconv.Itoa(limit)+" bytes.")
	}
	var delay *time.Duration
	if in.DelaySeconds != nil {
		if *in.DelaySeconds < 0 || *in.DelaySeconds > 900 {
			return sent{}, badRequest("InvalidParameterValue", "Value for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")
		}
		d := time.Duration(*in.DelaySeconds) * time.Second
		delay = &d
	}
	m := &message{id: uuid(), body: in.MessageBody, attributes: in.MessageAttributes, group: in.MessageGroupID}
	for name, a := range in.MessageSystemAttributes {
		if name != "AWSTraceHeader" || a.StringValue == nil {
			return sent{}, badRequest("InvalidParameterValue", "Message system attribute name '"+name+"' is invalid.")
		}
		m.trace = *a.StringValue
	}
	if err := q.c.queues.send(q.queue, m, delay); err != nil {
		return sent{}, err
	}
	return sent{ID: in.ID, MessageID: m.id, MD5OfMessageBody: hexMD5(m.body), MD5OfMessageAttributes: attributesMD5(m.attributes),
		MD5OfMessageSystemAttributes: attributesMD5(in.MessageSystemAttributes)}, nil
}
