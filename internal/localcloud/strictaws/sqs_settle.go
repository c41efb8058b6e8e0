package strictaws

import "time"

const maxHold = 12 * time.Hour // from the receive, extensions included

// handle is a receipt handle to be acted on, alone or as an entry of a batch.
type handle struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

type settled struct {
	ID string `json:"Id"`
}

func (q *sqsRequest) deleteMessage() (any, *apiError) { return q.settleOne(q.delete) }

func (q *sqsRequest) deleteMessageBatch() (any, *apiError) { return q.settleBatch(q.delete) }

func (q *sqsRequest) changeVisibility() (any, *apiError) { return q.settleOne(q.change) }

func (q *sqsRequest) changeVisibilityBatch() (any, *apiError) { return q.settleBatch(q.change) }

func (q *sqsRequest) settleOne(do func(handle) *apiError) (any, *apiError) {
	var in handle
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	if err := do(in); err != nil {
		return nil, err
	}
	q.c.counters.add(q.call, Count{Entries: 1})
	return struct{}{}, nil
}

func (q *sqsRequest) settleBatch(do func(handle) *apiError) (any, *apiError) {
	var in struct{ Entries []handle }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.ID
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	return eachEntry(q, len(ids), func(i int) (string, string) { return ids[i], "" }, func(i int) (settled, *apiError) {
		return settled{ids[i]}, do(in.Entries[i])
	})
}

// delete deletes the message that h was received with. When it was received
// again since, or is gone, nothing happens and the call succeeds, as on AWS.
func (q *sqsRequest) delete(h handle) *apiError {
	id, err := receiptCopy(h.ReceiptHandle)
	if err != nil {
		return err
	}
	s := q.c.queues
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.get(q.queue, time.Now())
	if err != nil {
		return err
	}
	if m := in.byCopy[id]; m != nil && m.receipt == h.ReceiptHandle {
		in.delete(m)
	}
	return nil
}

// change sets when the message is visible again.
func (q *sqsRequest) change(h handle) *apiError {
	id, err := receiptCopy(h.ReceiptHandle)
	if err != nil {
		return err
	}
	if h.VisibilityTimeout == nil {
		return badRequest("MissingParameter", "The request must contain the parameter VisibilityTimeout.")
	}
	seconds, err := inRange("VisibilityTimeout", h.VisibilityTimeout, 0, 0, 43200)
	if err != nil {
		return err
	}
	now := time.Now()
	s := q.c.queues
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.get(q.queue, now)
	if err != nil {
		return err
	}
	m := in.byCopy[id]
	switch {
	case m == nil || m.receipt != h.ReceiptHandle:
		return badRequest("InvalidParameterValue", "Value for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
	case m.state != inFlight:
		return badRequest("MessageNotInflight", "The message referred to is not in flight.")
	}
	due := now.Add(time.Duration(seconds) * time.Second)
	if due.Sub(m.received) > maxHold {
		return badRequest("InvalidParameterValue", "Value for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds].")
	}
	in.hide(m, due)
	in.advance(now)
	return nil
}
