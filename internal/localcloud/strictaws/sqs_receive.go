package strictaws

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

type receiveInput struct {
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}

type receivedMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string           `json:",omitempty"`
	MessageAttributes      map[string]messageAttribute `json:",omitempty"`
	MD5OfMessageAttributes string                      `json:",omitempty"`
}

func (q *sqsRequest) receiveMessage() (any, *apiError) {
	var in receiveInput
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	n, err := inRange("MaxNumberOfMessages", in.MaxNumberOfMessages, 1, 1, 10)
	if err != nil {
		return nil, err
	}
	visibility, err := inRange("VisibilityTimeout", in.VisibilityTimeout, -1, 0, 43200)
	if err != nil {
		return nil, err
	}
	wait, err := inRange("WaitTimeSeconds", in.WaitTimeSeconds, q.c.queues.wait(q.queue), 0, 20)
	if err != nil {
		return nil, err
	}
	got, err := q.poll(n, time.Duration(visibility)*time.Second, time.Duration(wait)*time.Second)
	if err != nil {
		return nil, err
	}
	q.c.counters.add(q.call, Count{Entries: len(got)})
	var out struct {
		Messages []receivedMessage `json:",omitempty"`
	}
	for _, d := range got {
		out.Messages = append(out.Messages, in.tell(d))
	}
	return out, nil
}

func inRange(name string, v *int, fallback, low, high int) (int, *apiError) {
	if v == nil {
		return fallback, nil
	}
	if *v < low || *v > high {
		return 0, badRequest("InvalidParameterValue", "Value "+strconv.Itoa(*v)+" for parameter "+name+" is invalid. Reason: Must be between "+
			strconv.Itoa(low)+" and "+strconv.Itoa(high)+", if provided.")
	}
	return *v, nil
}

// poll receives, and waits up to wait for the first message. A client that goes
// away while it waits takes nothing along.
func (q *sqsRequest) poll(n int, visibility, wait time.Duration) ([]delivered, *apiError) {
	deadline := time.Now().Add(wait)
	p := poll{queue: q.queue, n: n, visibility: visibility, short: wait == 0, bend: q.bend}
	for {
		found, err := q.c.queues.receive(p)
		left := time.Until(deadline)
		if err != nil || len(found.messages) > 0 || left <= 0 {
			return found.messages, err
		}
		if !found.due.IsZero() {
			left = min(left, time.Until(found.due))
		}
		t := time.NewTimer(left)
		select {
		case <-found.changed:
		case <-t.C:
		case <-q.r.Context().Done():
			t.Stop()
			return nil, nil
		}
		t.Stop()
	}
}

// bend asks the faults how a message is to be delivered.
func (q *sqsRequest) bend() (d delivery) {
	_, _, d.duplicate = strike[Duplicate](q.c.faults, q.call, nil)
	_, _, d.stale = strike[StaleReceipt](q.c.faults, q.call, nil)
	return d
}

// tell answers a message with the attributes that were asked for.
func (in receiveInput) tell(d delivered) receivedMessage {
	out := receivedMessage{MessageID: d.id, ReceiptHandle: d.handle, MD5OfBody: hexMD5(d.body), Body: d.body}
	asked := append(slices.Clone(in.AttributeNames), in.MessageSystemAttributeNames...)
	for name, value := range d.systemAttributes() {
		if value != "" && (slices.Contains(asked, name) || slices.Contains(asked, "All")) {
			if out.Attributes == nil {
				out.Attributes = map[string]string{}
			}
			out.Attributes[name] = value
		}
	}
	for name, a := range d.attributes {
		if slices.ContainsFunc(in.MessageAttributeNames, func(want string) bool { return attributeAsked(want, name) }) {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]messageAttribute{}
			}
			out.MessageAttributes[name] = a
		}
	}
	out.MD5OfMessageAttributes = attributesMD5(out.MessageAttributes)
	return out
}

// attributeAsked matches a name, "All", or a prefix as in "our.*".
func attributeAsked(want, name string) bool {
	prefix, wild := strings.CutSuffix(want, "*")
	return want == name || want == "All" || wild && strings.HasPrefix(name, prefix)
}

func (m *message) systemAttributes() map[string]string {
	return map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"SenderId":                         "AIDASTRICTAWSSENDER",
		"DeadLetterQueueSourceArn":         m.dlqSource,
		"AWSTraceHeader":                   m.trace,
		"MessageGroupId":                   m.group,
	}
}
