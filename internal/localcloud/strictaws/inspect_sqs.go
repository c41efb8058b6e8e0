package strictaws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// CreateQueue makes a queue with SQS's attributes (durations in seconds, as text).
func (c *Cloud) CreateQueue(name string, attributes map[string]string) error {
	if err := c.queues.create(name, attributes); err != nil {
		return fmt.Errorf("create queue %s: %w", name, err)
	}
	return nil
}

// QueuePath is the path of a queue's URL; the endpoint comes before it.
func (c *Cloud) QueuePath(name string) string { return "/" + c.cfg.Account + "/" + name }

// QueueARN is the queue's ARN.
func (c *Cloud) QueueARN(name string) string { return c.queues.arn(name) }

// Send puts a message with attributes of type String into a queue, without a call.
func (c *Cloud) Send(name, body string, attributes map[string]string) error {
	m := &message{id: uuid(), body: body}
	for k, v := range attributes {
		if m.attributes == nil {
			m.attributes = map[string]messageAttribute{}
		}
		m.attributes[k] = messageAttribute{DataType: "String", StringValue: &v}
	}
	if err := c.queues.send(name, m, nil); err != nil {
		return fmt.Errorf("send to %s: %w", name, err)
	}
	return nil
}

// Message is a message as it stands in a queue.
type Message struct {
	ID         string
	Body       string
	Attributes map[string]string // those of type String and Number
	Receives   int
	InFlight   bool
	Sent       time.Time
	Visible    time.Time // when it is visible (again); zero when it is
}

// Messages returns what a queue holds, in flight and delayed ones included, in
// the order of sending.
func (c *Cloud) Messages(name string) []Message {
	var out []Message
	_ = c.queues.with(name, func(q *queue) {
		for _, m := range q.byCopy {
			x := Message{ID: m.id, Body: m.body, Attributes: map[string]string{}, Receives: m.receives, InFlight: m.state == inFlight, Sent: m.sent}
			if m.state != waiting {
				x.Visible = m.due
			}
			for k, a := range m.attributes {
				if a.StringValue != nil {
					x.Attributes[k] = *a.StringValue
				}
			}
			out = append(out, x)
		}
	})
	slices.SortFunc(out, func(a, b Message) int {
		if d := a.Sent.Compare(b.Sent); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Expire makes all that is in flight in a queue visible now, as if its visibility
// timeout had passed.
func (c *Cloud) Expire(name string) {
	_ = c.queues.with(name, func(q *queue) {
		now := time.Now()
		for _, m := range slices.Clone(q.timed) {
			if m.state == inFlight {
				q.hide(m, now)
			}
		}
		q.advance(now)
		q.wake()
	})
}

// Depth is how many messages a queue holds.
type Depth struct{ Waiting, Delayed, InFlight int }

// Total is all of them.
func (d Depth) Total() int { return d.Waiting + d.Delayed + d.InFlight }

// Depth returns how many messages a queue holds now.
func (c *Cloud) Depth(name string) (d Depth) {
	_ = c.queues.with(name, func(q *queue) { d = Depth{q.waiting, q.delayed, q.inFlight} })
	return d
}

// Receives returns how often each message was received from a queue, by message
// id; those that are gone are still in it.
func (c *Cloud) Receives(name string) map[string]int {
	var out map[string]int
	_ = c.queues.with(name, func(q *queue) { out = maps.Clone(q.journal) })
	return out
}

// MaxReceives returns the most that any message was received from a queue.
func (c *Cloud) MaxReceives(name string) (most int) {
	for _, n := range c.Receives(name) {
		most = max(most, n)
	}
	return most
}
