package queue

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Run consumes until intake ends, then drains: no receive is started, those in
// flight are let finish (aborting one would strand its messages with a receive
// counted) and what they bring goes straight back. The work in hand goes on until
// work ends, which cancels the handlers and aborts the receives. Acknowledgements
// outlive work by Config.Drain. At return nothing of ours is in flight; an error
// says what had to be left to the visibility timeout. Run is called once, after
// Open.
func (c *Consumer) Run(intake, work context.Context) error {
	if c.letters == nil {
		return fmt.Errorf("run queue %q: not opened", c.cfg.Name)
	}
	intake, stopIntake := context.WithCancel(intake)
	defer stopIntake()
	defer context.AfterFunc(work, stopIntake)()
	last, stopLast := context.WithCancel(context.WithoutCancel(work))
	defer stopLast()
	defer context.AfterFunc(work, func() { time.AfterFunc(c.cfg.Drain, stopLast) })()
	c.workCtx, c.last = work, last

	beating, stopBeat := context.WithCancel(last)
	defer stopBeat()
	var beat, receiving sync.WaitGroup
	beat.Go(func() { c.beat.run(beating) })
	receiving.Go(func() { c.watchGate(intake) })
	receiving.Go(func() { c.watchDepth(intake) })
	for i := range pollers(c.cfg.Slots) {
		receiving.Go(func() { c.poll(intake, 2+i) })
	}

	<-intake.Done()
	c.mu.Lock()
	c.draining = true
	c.dispatch()
	c.mu.Unlock()
	receiving.Wait()
	c.await(work, func() bool { return len(c.running) == 0 })
	// A handler that ignores its context gets half of the drain.
	grace, cancel := context.WithTimeout(last, c.cfg.Drain/2)
	defer cancel()
	c.await(grace, func() bool { return len(c.running) == 0 })
	stragglers := c.abandon()
	c.await(last, func() bool { return c.unsettled == 0 })
	c.deletes.wait()
	c.backs.wait()
	stopBeat()
	beat.Wait()
	if stragglers > 0 {
		return fmt.Errorf("drain queue %q: %d handlers did not end with their context", c.cfg.Name, stragglers)
	}
	c.workers.Wait()
	c.letters.Close(last)
	if n := c.left.Load(); n > 0 {
		return fmt.Errorf("drain queue %q: %d messages were left to their visibility timeout", c.cfg.Name, n)
	}
	return nil
}

// await returns when done, which needs mu, or when ctx has ended.
func (c *Consumer) await(ctx context.Context, done func() bool) {
	for {
		c.mu.Lock()
		ok := done()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.progress:
		case <-ctx.Done():
			return
		}
	}
}

// abandon gives back what still runs although its context has ended; what its
// handler returns later is not listened to.
func (c *Consumer) abandon() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.running)
	for l := range c.running {
		delete(c.running, l)
		c.giveBack(l, backoff(1, c.cfg.BackoffMin, c.cfg.BackoffMax))
	}
	return n
}

// watchGate follows the gate. It ticks while the gate is closed.
func (c *Consumer) watchGate(ctx context.Context) {
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		c.tick(0)
		changed := c.admit()
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// admit asks the gate and acts on a change. What it returns is closed at the next.
func (c *Consumer) admit() <-chan struct{} {
	n, changed := c.gate.Admit()
	n = max(0, min(n, c.cfg.Slots))
	c.mu.Lock()
	defer c.mu.Unlock()
	if n != c.limit {
		c.limit = n
		c.dispatch()
	}
	return changed
}

// watchDepth measures the queue, and follows a change of its visibility timeout.
// A call that fails is counted, and the gauges keep what they last showed.
func (c *Consumer) watchDepth(ctx context.Context) {
	states := map[types.QueueAttributeName]string{
		types.QueueAttributeNameApproximateNumberOfMessages:           "visible",
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: "in_flight",
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    "delayed",
	}
	names := []types.QueueAttributeName{types.QueueAttributeNameVisibilityTimeout}
	for name := range states {
		names = append(names, name)
	}
	for {
		attributes, err := c.attributes(ctx, names...)
		if err == nil && c.setVisibility(attributes) == nil {
			for name, state := range states {
				if n, err := strconv.ParseInt(attributes[string(name)], 10, 64); err == nil {
					c.tel.Waiting(c.cfg.Name, state, n)
				}
			}
		}
		if !pause(ctx, tick) {
			return
		}
	}
}
