package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestExtensionsFollowTheQueuesOwnVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 0, nil)
		r.start(working(100 * time.Second))
		time.Sleep(29 * time.Second)
		if n := r.count(opChange); n != 0 {
			t.Errorf("%d extensions before half of the visibility", n)
		}
		time.Sleep(2 * time.Second)
		if c := r.look(m).changes; len(c) != 1 || c[0] != 60 {
			t.Errorf("extended by %v, want 60 once", c)
		}
		r.mu.Lock()
		r.attributes["VisibilityTimeout"] = "20" // changed by an operator
		r.mu.Unlock()
		r.until(2*time.Minute, "it is settled", r.deleted(m))
		if c := r.look(m).changes; c[len(c)-1] != 20 {
			t.Errorf("extended by %v, want 20 in the end", c)
		}
		r.mustStop()
	})
}

func TestWorkLongerThanTheVisibilityIsReceivedOnce(t *testing.T) {
	for _, tc := range []struct {
		visibility      string
		messages, slots int
		work            time.Duration
	}{
		{"2", 1, 8, 7 * time.Second},
		{"5", 10, 1, 2 * time.Second},
		{"1", 40, 32, 3 * time.Second},
	} {
		t.Run(tc.visibility, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.cfg.Slots = tc.slots
				r.attributes["VisibilityTimeout"] = tc.visibility
				r.latency = func(string) time.Duration { return 50 * time.Millisecond }
				var all []*fakeMessage
				for i := range tc.messages {
					all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
				}
				r.start(working(tc.work))
				r.until(time.Minute, "all are settled", r.deleted(all...))
				for _, m := range all {
					if len(m.received) != 1 {
						t.Errorf("%s was received %d times", m.id, len(m.received))
					}
				}
				r.mustStop()
			})
		})
	}
}

func TestOneSlowMessageHoldsUpNoQuickOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.attributes["VisibilityTimeout"] = "30"
		slow := r.put(mainURL, "slow", 0, nil)
		var quick []*fakeMessage
		for i := range 50 {
			quick = append(quick, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			if d.Body == "slow" {
				return working(90*time.Second)(ctx, d)
			}
			return working(time.Second)(ctx, d)
		})
		r.until(15*time.Second, "the quick ones are settled", r.deleted(quick...))
		r.until(90*time.Second, "the slow one is settled", r.deleted(slow))
		if len(slow.received) != 1 {
			t.Errorf("the slow one was received %d times", len(slow.received))
		}
		r.mustStop()
	})
}

func TestOneHeartbeatServesAnyNumberInBatchesOfTen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		r := newRig(t)
		r.cfg.Slots = n
		r.latency = func(string) time.Duration { return 30 * time.Millisecond }
		var all []*fakeMessage
		for i := range n {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(working(170 * time.Second))
		r.until(5*time.Minute, "all are settled", r.deleted(all...))
		for _, m := range all {
			if len(m.received) != 1 {
				t.Fatalf("%s was received %d times", m.id, len(m.received))
			}
		}
		// 170 s of work with V = 60 s is five or six extensions each.
		if calls := r.count(opChange); calls > 6*n/10*12/10 {
			t.Errorf("%d calls to extend %d messages", calls, n)
		}
		r.mustStop()
	})
}

func TestALostLeaseIsOneWarningAndFreesTheWorker(t *testing.T) {
	for _, code := range []string{"ReceiptHandleIsInvalid", "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", "InvalidParameterValue"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.cfg.Slots = 1
				r.attributes["VisibilityTimeout"] = "10"
				r.refuse = func(op string, e fakeEntry) *types.BatchResultErrorEntry {
					if op == opChange && e.receipt == "m0#1" {
						return refusal(code, true)
					}
					return nil
				}
				gone := r.put(mainURL, "gone", 0, nil)
				next := r.put(mainURL, "next", 0, nil)
				var cause atomic.Value
				r.start(func(ctx context.Context, d *Delivery) Outcome {
					if d.Body == "gone" {
						r.mu.Lock()
						gone.deleted = true // behind its back
						delete(r.queues[mainURL].flying, gone.receipt)
						r.mu.Unlock()
						<-ctx.Done()
						cause.Store(context.Cause(ctx))
						return Outcome{Verb: Retry, Detail: "unavailable"}
					}
					return copied
				})
				r.until(30*time.Second, "the worker is free for the next", r.deleted(next))
				if cause.Load() != ErrLeaseLost {
					t.Errorf("cause %v, want ErrLeaseLost", cause.Load())
				}
				time.Sleep(time.Minute)
				if n := r.log.lines("lease lost"); n != 1 {
					t.Errorf("%d warnings, want 1:\n%s", n, r.log)
				}
				if v := r.metric(`objectferry_leases_lost_total{queue="main"}`); v != "1" {
					t.Errorf("counted %q", v)
				}
				if n := r.count(opChange); n != 1 {
					t.Errorf("%d calls for a message that is gone, want 1", n)
				}
				r.mustStop()
			})
		})
	}
}

func TestALeaseWithoutAnAcceptedExtensionIsLostAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.fail = func(_ context.Context, op, _ string) error {
			if op == opChange {
				return apiError("InternalError")
			}
			return nil
		}
		r.put(mainURL, "a", 0, nil)
		var ended atomic.Int64
		start := time.Now()
		r.start(func(ctx context.Context, _ *Delivery) Outcome {
			<-ctx.Done()
			ended.CompareAndSwap(0, int64(time.Since(start)))
			return Outcome{Verb: HandBack}
		})
		time.Sleep(70 * time.Second)
		if d := time.Duration(ended.Load()).Round(time.Second); d != 60*time.Second {
			t.Errorf("its work ended after %s, want 60 s", d)
		}
		if n := r.count(opChange); n < 4 || n > 12 {
			t.Errorf("%d attempts to extend it within its last half minute", n)
		}
		r.failWith(nil)
		r.work()
		r.mustStop()
	})
}

func TestAnUnknownErrorNeverEndsTheHeartbeatAndIsRetriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.attributes["VisibilityTimeout"] = "10"
		var refused int
		r.refuse = func(op string, e fakeEntry) *types.BatchResultErrorEntry {
			if op == opChange && e.receipt == "m1#1" && refused < 2 {
				refused++
				return refusal("SomethingNew", false)
			}
			return nil
		}
		var all []*fakeMessage
		for i := range 4 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(working(12 * time.Second))
		time.Sleep(8 * time.Second)
		if got := fmt.Sprint(r.sizes(opChange)); got != "[4 1 1]" {
			t.Errorf("batches of %s, want the failed entry alone: [4 1 1]", got)
		}
		if r.metric(`objectferry_sqs_calls_total{call="ChangeMessageVisibilityBatch",queue="main",result="partial"}`) != "2" {
			t.Error("the failures were not counted")
		}
		r.until(10*time.Second, "all are settled", r.deleted(all...))
		for _, m := range all {
			if len(m.received) != 1 {
				t.Errorf("%s was received %d times", m.id, len(m.received))
			}
		}
		r.mustStop()
	})
}

func TestAStubbornWorkerHoldsUpNobodysHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.attributes["VisibilityTimeout"] = "4"
		r.refuse = func(op string, e fakeEntry) *types.BatchResultErrorEntry {
			if op == opChange && e.receipt == "m0#1" {
				return refusal("ReceiptHandleIsInvalid", true)
			}
			return nil
		}
		r.put(mainURL, "stubborn", 0, nil)
		others := []*fakeMessage{r.put(mainURL, "a", 0, nil), r.put(mainURL, "b", 0, nil)}
		release := make(chan struct{})
		var once atomic.Bool
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			if d.Body == "stubborn" {
				if once.CompareAndSwap(false, true) {
					<-release // whatever its context says
				}
				return copied
			}
			return working(30*time.Second)(ctx, d)
		})
		r.until(time.Minute, "the others are settled", r.deleted(others...))
		for _, m := range others {
			if len(m.received) != 1 {
				t.Errorf("%s was received %d times", m.body, len(m.received))
			}
		}
		close(release)
		r.mustStop()
	})
}

func TestCallsThatHangHoldUpNoOtherExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		r := newRig(t)
		r.cfg.Slots = n
		r.attributes["VisibilityTimeout"] = "20"
		var calls atomic.Int64
		r.fail = func(ctx context.Context, op, _ string) error {
			if op == opChange && calls.Add(1) <= n/BatchMax {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		var all []*fakeMessage
		for i := range n {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(working(time.Minute))
		r.until(5*time.Minute, "all are settled", r.deleted(all...))
		for _, m := range all {
			if len(m.received) != 1 {
				t.Errorf("%s was received %d times", m.id, len(m.received))
			}
		}
		r.mustStop()
	})
}

func TestExtensionsEndBeforeTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 2, nil)
		type ending struct {
			cause error
			after time.Duration
		}
		ended := make(chan ending, 2)
		start := time.Now()
		r.start(func(ctx context.Context, _ *Delivery) Outcome {
			<-ctx.Done()
			ended <- ending{context.Cause(ctx), time.Since(start)}
			return Outcome{Verb: HandBack}
		})
		time.Sleep(12*time.Hour - time.Second)
		if e := <-ended; e.cause != ErrHeldTooLong || e.after < 12*time.Hour-2*time.Minute {
			t.Errorf("ended after %s with %v", e.after, e.cause)
		}
		if m := r.look(m); m.changes[len(m.changes)-1] == 60 || len(m.received) != 2 {
			t.Errorf("not handed back: last visibility %d, received %d times", m.changes[len(m.changes)-1], len(m.received))
		}
		if r.log.lines("lease lost") != 0 {
			t.Errorf("its lease was lost before it was handed back:\n%s", r.log)
		}
		r.work()
		r.mustStop()
	})
}
