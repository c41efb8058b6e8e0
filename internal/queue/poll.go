package queue

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	opReceive = "ReceiveMessage"

	// receiveMargin is what a receive may take beyond its long poll.
	receiveMargin = 10 * time.Second
	// pollMargin is how much later than asked for a long poll may end at SQS.
	pollMargin = time.Second
	// receiveMin and receiveMax are the back-off while receives fail.
	receiveMin, receiveMax = time.Second, 20 * time.Second
	// emptyPause keeps short polls, and a queue with too many messages in flight
	// (it answers at once, with nothing), from becoming a hot loop.
	emptyPause = time.Second
	// maxUnsettled stops receives while acknowledgements pile up, so that memory
	// stays bounded when SQS takes no deletes.
	maxUnsettled = 1000
)

// pollers is how many receives may be in flight: enough to fill the slots when a
// receive takes as long as the work of one slot in two.
func pollers(slots int) int { return max(1, min(64, slots/16)) }

// ahead is how many messages are held beyond the slots, so that batches are full
// and no slot idles while a receive is in flight: at most a batch a poller, and
// none while the gate lets only a few through.
func ahead(limit int) int { return min(BatchMax*pollers(limit), limit/4) }

// threshold is how much room a receive waits for. Receiving whenever one slot is
// free would cost a call a message.
func threshold(limit int) int { return max(1, min(8, limit/8)) }

// poll is one poller. How many of them receive at once follows what comes: one
// while the queue is empty, all while batches are full.
func (c *Consumer) poll(intake context.Context, loop int) {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for intake.Err() == nil {
		c.tick(loop)
		ask, wait := c.reserve()
		if ask > 0 {
			c.receive(ask)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-intake.Done():
		}
	}
}

// reserve takes room for one receive and says how many messages it may ask for;
// 0 is none now, try again after wait or when woken. The gate is asked each time:
// once it is closed, nothing more is received.
func (c *Consumer) reserve() (ask int, wait time.Duration) {
	c.admit()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := time.Until(c.notBefore); d > 0 {
		return 0, min(d, tick)
	}
	if !c.roomy() {
		return 0, tick
	}
	ask = min(BatchMax, c.room())
	c.polls++
	c.asked += ask
	c.pollsEnd = time.Now().Add(c.cfg.Wait)
	c.invite()
	return ask, 0
}

// room needs mu.
func (c *Consumer) room() int {
	return c.limit + ahead(c.limit) - len(c.running) - len(c.pending) - len(c.suspects) - c.asked
}

// roomy reports whether a receive may start; it needs mu.
func (c *Consumer) roomy() bool {
	return !c.draining && c.limit > 0 && !c.barred() &&
		c.polls < c.width && c.unsettled < maxUnsettled && c.room() >= threshold(c.limit)
}

// invite wakes a poller when there is room; it needs mu.
func (c *Consumer) invite() {
	if c.roomy() {
		poke(c.wake)
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// receive asks for up to ask messages and takes them in. The visibility timeout
// is the queue's own.
func (c *Consumer) receive(ask int) {
	ctx, cancel := context.WithTimeout(c.workCtx, c.cfg.Wait+receiveMargin)
	defer cancel()
	start := time.Now()
	out, err := c.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &c.cfg.URL, MaxNumberOfMessages: int32(ask), WaitTimeSeconds: int32(c.cfg.Wait / time.Second),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp},
	})
	now := time.Now()
	c.tel.SQSCall(c.cfg.Name, opReceive, result(err, nil))
	var leases []*lease
	if err == nil {
		c.lastReceive.Store(now.UnixNano())
		c.tel.LastReceive(c.cfg.Name, now)
		leases = c.take(out, now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polls--
	c.asked -= ask
	c.learn(err, len(leases), ask, now.Sub(start))
	for _, l := range leases {
		c.enqueue(l)
	}
	c.dispatch()
}

// take makes leases of what came and has them kept from now on.
func (c *Consumer) take(out *sqs.ReceiveMessageOutput, now time.Time) []*lease {
	if out == nil {
		return nil
	}
	leases := make([]*lease, 0, len(out.Messages))
	for _, m := range out.Messages {
		l, ok := newLease(m, now, c.beat.period())
		if !ok {
			continue
		}
		if !l.delivery.Sent.IsZero() {
			c.tel.ReceiveAge(c.cfg.Name, now.Sub(l.delivery.Sent))
		}
		leases = append(leases, l)
	}
	c.beat.add(leases)
	return leases
}

// learn sets how many receives may run at once, and when the next may start; it
// needs mu. A state that changes is logged, not each failure.
func (c *Consumer) learn(err error, got, ask int, took time.Duration) {
	if err != nil {
		if c.workCtx.Err() != nil {
			return
		}
		if c.failures++; c.failures == 1 {
			c.tel.Log.Warn().Str("queue", c.cfg.Name).Err(Classify(err, opReceive)).Msg("receives fail")
		}
		c.width = 1
		c.notBefore = time.Now().Add(backoff(c.failures, receiveMin, receiveMax))
		return
	}
	if c.failures > 0 {
		c.tel.Log.Info().Str("queue", c.cfg.Name).Int("failures", c.failures).Msg("receives succeed again")
		c.failures = 0
	}
	switch {
	case got > ask/2:
		c.width = min(2*c.width, pollers(c.cfg.Slots))
	case got == 0:
		c.width = 1
		if took < emptyPause {
			c.notBefore = time.Now().Add(emptyPause)
		}
	}
}
