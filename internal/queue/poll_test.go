package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestNothingIsReceivedWhileTheGateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.gate.n = 0
		m := r.put(mainURL, "a", 0, nil)
		r.start(settle)
		time.Sleep(time.Hour)
		if n := r.count(opReceive); n != 0 {
			t.Errorf("%d receives while the gate is closed", n)
		}
		if age := time.Since(r.c.Status().Tick); age > time.Minute {
			t.Errorf("the last tick is %s ago", age)
		}
		opened := time.Now()
		r.gate.set(8)
		r.until(time.Second, "the message is settled", r.deleted(m))
		if got := r.look(m).received[0]; !got.Equal(opened) {
			t.Errorf("received %s after the gate opened", got.Sub(opened))
		}
		r.gate.set(0)
		r.put(mainURL, "b", 0, nil)
		time.Sleep(time.Hour) // a long poll that was running may bring b once
		before := r.count(opReceive)
		time.Sleep(time.Hour)
		if n := r.count(opReceive); n != before {
			t.Errorf("%d receives after the gate closed again", n-before)
		}
		r.mustStop()
	})
}

// The channel of a gate tells a consumer to look again; it is not what the
// consumer relies on before it receives.
func TestTheGateIsAskedBeforeEachReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 500 {
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(working(time.Second))
		time.Sleep(5500 * time.Millisecond)
		r.gate.mu.Lock()
		r.gate.n = 0 // without a signal
		r.gate.mu.Unlock()
		before := r.count(opReceive)
		time.Sleep(5 * time.Second)
		if n := r.count(opReceive); n != before {
			t.Errorf("%d receives after the gate closed", n-before)
		}
		r.mustStop()
	})
}

func TestWhatWaitsWhenTheGateClosesGoesBackWithABackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 10 {
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(working(time.Minute))
		time.Sleep(time.Second)
		if s := r.c.Status(); s.Running != 8 || s.Held != 10 {
			t.Fatalf("running %d, held %d, want 8 and 10", s.Running, s.Held)
		}
		r.gate.set(0)
		time.Sleep(time.Second)
		if s := r.c.Status(); s.Running != 8 || s.Held != 8 {
			t.Errorf("running %d, held %d, want 8 and 8", s.Running, s.Held)
		}
		for _, m := range r.queues[mainURL].all[8:] {
			if c := r.look(m).changes; len(c) != 1 || c[0] < 5 {
				t.Errorf("given back with %v, want one back-off of at least 5 s", c)
			}
		}
		r.mustStop()
	})
}

// TestAMessageHandedBackIsNotReceivedByAPollThatOutlivedTheGate: a long poll that
// is in flight when the gate closes still brings what becomes visible meanwhile.
func TestAMessageHandedBackIsNotReceivedByAPollThatOutlivedTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.BackoffMin = time.Second
		m := r.put(mainURL, "only", 0, nil)
		r.start(func(context.Context, *Delivery) Outcome {
			r.gate.set(0)
			time.Sleep(time.Second) // a poll is under way
			return Outcome{Verb: HandBack}
		})
		time.Sleep(time.Minute)
		if n := len(r.look(m).received); n != 1 {
			t.Errorf("received %d times while the gate is closed", n)
		}
		r.mustStop()
	})
}

func TestTheGateBoundsTheWorkInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 32
		r.gate.n = 1
		for i := range 3000 {
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(working(time.Second))
		for _, n := range []int{1, 4, 32, 500, 3, 1, 0, 16} {
			r.gate.set(n)
			time.Sleep(5 * time.Second)
			most := 0
			for range 100 {
				time.Sleep(13 * time.Millisecond)
				most = max(most, r.c.Status().Running)
				if waiting := len(r.c.pendingNow()); waiting > BatchMax {
					t.Errorf("the gate admits %d: %d wait", n, waiting)
				}
			}
			if want := min(n, 32); most != want {
				t.Errorf("the gate admits %d: %d run", n, most)
			}
		}
		r.work()
		r.mustStop()
	})
}

func TestTenThousandMessagesTakeFewCallsAndKeepTheSlotsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, slots = 10_000, 64
		r := newRig(t)
		r.cfg.Slots = slots
		r.latency = func(string) time.Duration { return 10*time.Millisecond + rand.N(30*time.Millisecond) }
		var all []*fakeMessage
		for i := range messages {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		var busy atomic.Int64
		start := time.Now()
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			took := 100*time.Millisecond + rand.N(200*time.Millisecond)
			busy.Add(int64(took))
			time.Sleep(took)
			return copied
		})
		r.until(time.Hour, "all are settled", r.deleted(all...))
		took := time.Since(start)
		ideal := time.Duration(busy.Load() / slots)
		r.mustStop()
		if share := float64(ideal) / float64(took); share < 0.92 {
			t.Errorf("%.3f of the ideal throughput, want 0.92", share)
		}
		if calls := float64(r.total()) / messages; calls > 0.35 {
			t.Errorf("%.3f calls a message, want 0.35 at most: %v", calls, r.calls)
		} else {
			t.Logf("%.3f of the ideal, %.3f calls a message", float64(ideal)/float64(took), calls)
		}
		for _, m := range all {
			if len(m.received) != 1 {
				t.Fatalf("%s was received %d times", m.id, len(m.received))
			}
		}
	})
}

func TestAReceiveWaitsForAnEighthOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 64
		var few, most atomic.Int64
		r.receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			if in.MaxNumberOfMessages < 8 {
				few.Add(1)
			}
			time.Sleep(20 * time.Millisecond)
			r.mu.Lock()
			defer r.mu.Unlock()
			q := r.queues[mainURL]
			out := &sqs.ReceiveMessageOutput{}
			for range in.MaxNumberOfMessages {
				m := &fakeMessage{id: fmt.Sprint(len(q.all))}
				q.all = append(q.all, m)
				out.Messages = append(out.Messages, r.fly(q, m, time.Now()))
			}
			return out, nil
		}
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			s := r.c.Status()
			most.Store(max(most.Load(), int64(s.Running)))
			if held := len(r.c.pendingNow()); held > BatchMax*pollers(64) {
				t.Errorf("%d held beyond the slots", held)
			}
			return working(100*time.Millisecond+rand.N(200*time.Millisecond))(ctx, d)
		})
		time.Sleep(10 * time.Second)
		r.mustStop()
		if few.Load() != 0 || most.Load() != 64 {
			t.Errorf("%d receives for fewer than 8, at most %d running", few.Load(), most.Load())
		}
	})
}

func (c *Consumer) pendingNow() []*lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}

func TestOneWorkerWithABatchOfOneFinishesFiveMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 1
		var all []*fakeMessage
		for i := range 5 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), i, nil)) // two of them are suspects
		}
		r.start(working(2 * time.Second))
		r.until(5*time.Minute, "all are settled", r.deleted(all...))
		for _, m := range all {
			if len(m.received) != 1 {
				t.Errorf("%s was received %d times", m.id, len(m.received))
			}
		}
		r.mustStop()
	})
}

func TestAReceiveThatHangsHasADeadlineAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var healed atomic.Bool
		r.fail = func(ctx context.Context, op, _ string) error {
			if op == opReceive && !healed.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		m := r.put(mainURL, "a", 0, nil)
		r.start(settle)
		time.Sleep(90 * time.Second)
		if s := r.c.Status(); s.Failures == 0 || !s.LastReceive.IsZero() || time.Since(s.Tick) > time.Minute {
			t.Errorf("while receives hang: %+v", s)
		}
		healed.Store(true)
		r.until(time.Minute, "it resumes by itself", r.deleted(m))
		if s := r.c.Status(); s.Failures != 0 || time.Since(s.LastReceive) > time.Minute {
			t.Errorf("after receives hung: %+v", s)
		}
		r.mustStop()
	})
}

func TestFailingReceivesBackOffAndRecover(t *testing.T) {
	for name, err := range map[string]error{"403": apiError("AccessDenied"), "reset": errors.New("connection reset by peer"), "throttled": apiError("RequestThrottled")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.cfg.Slots = 64
				var healed atomic.Bool
				r.fail = func(ctx context.Context, op, _ string) error {
					if op == opReceive && !healed.Load() {
						return err
					}
					return nil
				}
				m := r.put(mainURL, "a", 0, nil)
				r.start(settle)
				time.Sleep(time.Minute)
				if n := r.count(opReceive); n < 3 || n > 10 {
					t.Errorf("%d receives in a minute of failures, want 3 to 10", n)
				}
				healed.Store(true)
				r.until(30*time.Second, "it recovers", r.deleted(m))
				if r.log.lines("receives fail") != 1 || r.log.lines("receives succeed again") != 1 {
					t.Errorf("want one line a change of state:\n%s", r.log)
				}
				if r.metric(`objectferry_last_receive_timestamp_seconds{queue="main"}`) == "" {
					t.Error("no last receive in the metrics")
				}
				r.mustStop()
			})
		})
	}
}

func TestEmptyAndNilAnswersAreNoHotLoop(t *testing.T) {
	for name, out := range map[string]*sqs.ReceiveMessageOutput{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.cfg.Slots = 64
				r.receive = func(context.Context, *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) { return out, nil }
				r.start(settle)
				time.Sleep(time.Minute)
				if n := r.count(opReceive); n < 50 || n > 70 {
					t.Errorf("%d receives in a minute of answers with nothing, want about one a second", n)
				}
				r.mustStop()
			})
		})
	}
}

func TestAnIdleQueueCostsOneLongPollAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 1000
		for i := range 5000 { // many pollers while there is something
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(working(time.Second))
		time.Sleep(time.Minute)
		before := r.count(opReceive)
		time.Sleep(10 * time.Minute)
		if n := r.count(opReceive) - before; n > 32 {
			t.Errorf("%d receives in ten idle minutes, want 30", n)
		}
		r.mustStop()
	})
}

func TestMessagesReceivedAreBoundedWhileNoDeleteIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 64
		r.fail = func(_ context.Context, op, _ string) error {
			if op == opDelete {
				return apiError("AccessDenied")
			}
			return nil
		}
		for i := range 5000 {
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(settle)
		time.Sleep(10 * time.Minute)
		if s := r.c.Status(); s.Held > maxUnsettled+2*64 {
			t.Errorf("%d messages held", s.Held)
		}
		r.work()
		if err := r.stop(); err == nil {
			t.Error("Run does not say that messages were left to their visibility timeout")
		}
	})
}
