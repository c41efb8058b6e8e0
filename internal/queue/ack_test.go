package queue

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestEachOfABatchIsDeletedInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 16
		var all []*fakeMessage
		for i := range 10 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(settle)
		r.until(time.Second, "all are deleted", r.deleted(all...))
		if got := r.sizes(opDelete); len(got) != 1 || got[0] != 10 {
			t.Errorf("deleted in batches of %v, want one of 10", got)
		}
		r.mustStop()
	})
}

func TestAFailedDeleteIsRetriedAloneAndEndsOnlyWhenAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 16
		refusals := 3
		r.refuse = func(op string, e fakeEntry) *types.BatchResultErrorEntry {
			if op == opDelete && e.receipt == "m3#1" && refusals > 0 {
				refusals--
				return refusal("InternalError", false)
			}
			return nil
		}
		var all []*fakeMessage
		for i := range 10 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(settle)
		time.Sleep(300 * time.Millisecond)
		const ends = `objectferry_ends_total{detail="",end="copied",queue="main"}`
		if v := r.metric(ends); v != "9" {
			t.Errorf("%s ends while one delete is refused, want 9", v)
		}
		r.until(time.Minute, "all are deleted", r.deleted(all...))
		if v := r.metric(ends); v != "10" {
			t.Errorf("%s ends, want 10", v)
		}
		if got := r.sizes(opDelete); !slices.Equal(got, []int{10, 1, 1, 1}) {
			t.Errorf("deleted in batches of %v, want the failed entry alone", got)
		}
		if len(all[3].received) != 1 {
			t.Errorf("received %d times", len(all[3].received))
		}
		r.mustStop()
	})
}

func TestADeleteThatComesTooLateIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.refuse = func(op string, _ fakeEntry) *types.BatchResultErrorEntry {
			if op == opDelete {
				return refusal("ReceiptHandleIsInvalid", true)
			}
			return nil
		}
		r.put(mainURL, "a", 0, nil)
		r.start(settle)
		time.Sleep(10 * time.Second)
		if v := r.metric(`objectferry_ends_total{detail="",end="copied",queue="main"}`); v != "" {
			t.Errorf("%s ends", v)
		}
		if n := r.count(opDelete); n != 1 || r.c.Status().Held != 0 {
			t.Errorf("%d deletes, %d held: what is not ours is let go", n, r.c.Status().Held)
		}
		if r.log.lines("lease lost") != 1 {
			t.Errorf("want one warning:\n%s", r.log)
		}
		r.mustStop()
	})
}

func TestADeleteRefusedForLongerThanTheVisibilityKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var healed atomic.Bool
		r.fail = func(_ context.Context, op, _ string) error {
			if op == opDelete && !healed.Load() {
				return apiError("RequestThrottled")
			}
			return nil
		}
		m := r.put(mainURL, "a", 0, nil)
		r.start(settle)
		time.Sleep(5 * time.Minute)
		healed.Store(true)
		r.until(time.Minute, "it is deleted", r.deleted(m))
		if n := len(m.received); n != 1 {
			t.Errorf("received %d times", n)
		}
		r.mustStop()
	})
}

func TestPartialFailuresOfEveryBatchCallCostNothingButTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 64
		r.attributes["VisibilityTimeout"] = "10"
		n := 0
		r.refuse = func(string, fakeEntry) *types.BatchResultErrorEntry {
			if n++; n%3 == 0 {
				return refusal("InternalError", false)
			}
			return nil
		}
		var all []*fakeMessage
		for i := range 300 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			if d.ID == "m7" {
				return Outcome{Verb: Bury, End: "poison"}
			}
			return working(15*time.Second)(ctx, d)
		})
		r.until(time.Hour, "all are settled", r.deleted(all...))
		for _, m := range all {
			if len(m.received) != 1 {
				t.Errorf("%s was received %d times", m.id, len(m.received))
			}
		}
		if n := len(r.letters()); n != 1 {
			t.Errorf("%d letters", n)
		}
		r.mustStop()
	})
}

func TestNothingIsDeletedOnRetryOrHandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Receives = 1000
		r.put(mainURL, "retry", 0, nil)
		r.put(mainURL, "hand back", 0, nil)
		r.start(func(_ context.Context, d *Delivery) Outcome {
			if d.Body == "retry" {
				return Outcome{Verb: Retry, Detail: "unavailable"}
			}
			return Outcome{Verb: HandBack}
		})
		time.Sleep(6 * time.Hour)
		r.mustStop()
		if r.count(opDelete) != 0 || len(r.letters()) != 0 {
			t.Errorf("%d deletes, %d letters", r.count(opDelete), len(r.letters()))
		}
	})
}

func TestHandedBackMessagesBackOffByReceiveCountAndNeverByZero(t *testing.T) {
	for verb, high := range map[Verb]int{Retry: 900, HandBack: int(handBackMax.Seconds())} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.cfg.Receives = 1000
			m := r.put(mainURL, "a", 0, nil)
			r.start(func(context.Context, *Delivery) Outcome { return Outcome{Verb: verb} })
			time.Sleep(48 * time.Hour)
			waits := r.look(m).changes // before the drain, which hands back at once
			r.mustStop()
			if len(waits) < 14 {
				t.Fatalf("given back %d times", len(waits))
			}
			for i, w := range waits {
				low := min(5<<min(i, 20), high*2/3)
				if int(w) < low || int(w) > high {
					t.Errorf("receive %d: given back for %d s, want %d to %d", i+1, w, low, high)
				}
			}
		})
	}
}

// Rule 7: what waits for SQS to take its acknowledgement keeps no body.
func TestBodiesAreNotKeptWhileAcknowledgementsAreRefused(t *testing.T) {
	for _, verb := range []Verb{Settle, Bury, HandBack} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.fail = func(_ context.Context, op, _ string) error {
				if op == opDelete {
					return apiError("ServiceUnavailable")
				}
				return nil
			}
			for i := range 8 {
				r.put(mainURL, fmt.Sprint("body ", i), 0, map[string]string{"a": "b"})
			}
			r.start(func(context.Context, *Delivery) Outcome { return Outcome{Verb: verb, End: "poison"} })
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			r.c.beat.mu.Lock()
			if n := len(r.c.beat.heap); n != 8 {
				t.Errorf("%d leases, want 8", n)
			}
			for _, l := range r.c.beat.heap {
				if l.delivery.Body != "" || l.delivery.Attributes != nil || l.attributes != nil {
					t.Errorf("verb %d: a lease keeps %q", verb, l.delivery.Body)
				}
			}
			r.c.beat.mu.Unlock()
			if verb == Bury {
				for _, l := range r.letters() {
					if l.body == "" {
						t.Error("a letter without its body")
					}
				}
			}
			r.work()
			r.stop()
		})
	}
}

func TestBacksAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 16
		for i := range 10 {
			r.put(mainURL, fmt.Sprint(i), 0, nil)
		}
		r.start(func(context.Context, *Delivery) Outcome { return Outcome{Verb: HandBack} })
		time.Sleep(time.Second)
		if got := r.sizes(opChange); !slices.Equal(got, []int{10}) {
			t.Errorf("given back in batches of %v, want one of 10", got)
		}
		r.mustStop()
	})
}

// An extension in flight that arrives after the hand-back would undo it.
func TestAHandBackWaitsForTheExtensionInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.attributes["VisibilityTimeout"] = "20"
		first := true
		r.latency = func(op string) time.Duration {
			if op == opChange && first {
				first = false
				return 2 * time.Second
			}
			return 0
		}
		m := r.put(mainURL, "a", 0, nil)
		r.start(func(ctx context.Context, _ *Delivery) Outcome {
			pause(ctx, 10*time.Second+500*time.Millisecond) // the extension is sent at 10 s
			return Outcome{Verb: HandBack}
		})
		time.Sleep(15 * time.Second)
		if c := r.look(m).changes; len(c) != 2 || c[0] != 20 || c[1] > 12 {
			t.Errorf("visibility %v, want the extension, then the hand-back", c)
		}
		r.work()
		r.mustStop()
	})
}

func TestBackoffGrowsWithJitterWithinItsLimits(t *testing.T) {
	const low, high = 5 * time.Second, 15 * time.Minute
	for times := 1; times < 40; times++ {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := backoff(times, low, high)
			if d < low || d > high {
				t.Fatalf("%s after %d times", d, times)
			}
			if doubled := low << min(times-1, 7); d < min(doubled, high*2/3) {
				t.Fatalf("%s after %d times, want at least %s", d, times, doubled)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Errorf("%d times: no jitter", times)
		}
	}
	if d := backoff(9, time.Second, time.Second); d != time.Second {
		t.Errorf("%s between equal limits", d)
	}
	if s := seconds(time.Millisecond); s != 1 {
		t.Errorf("a millisecond is %d s, want 1: never 0", s)
	}
}
