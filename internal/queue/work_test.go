package queue

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

func strs(attributes map[string]types.MessageAttributeValue) map[string]string {
	out := map[string]string{}
	for k, v := range attributes {
		out[k] = deref(v.StringValue) + string(v.BinaryValue)
	}
	return out
}

func TestARetryAtTheOwnLimitBecomesADeadLetterWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		m := r.put(mainURL, "a body", 0, map[string]string{"traceparent": trace, "redriven": "2", "detail": "old", "team": "x"})
		var deliveries atomic.Int64
		r.start(func(_ context.Context, d *Delivery) Outcome {
			if int(deliveries.Add(1)) != d.Receives {
				t.Errorf("delivery %d says it was received %d times", deliveries.Load(), d.Receives)
			}
			return Outcome{Verb: Retry, Detail: "unavailable", Note: "no answer"}
		})
		r.until(24*time.Hour, "it is dead", r.deleted(m))
		if n := deliveries.Load(); n != 8 {
			t.Errorf("tried %d times, want the own limit of 8", n)
		}
		letters := r.letters()
		if len(letters) != 1 || letters[0].body != "a body" {
			t.Fatalf("%d letters", len(letters))
		}
		got := strs(letters[0].attributes)
		if _, err := time.Parse(time.RFC3339, got["dead_at"]); err != nil {
			t.Error(err)
		}
		delete(got, "dead_at")
		want := map[string]string{"end": "failed", "detail": "unavailable", "receives": "8", "traceparent": trace, "redriven": "2", "team": "x"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if v := r.metric(`objectferry_ends_total{detail="unavailable",end="failed",queue="main"}`); v != "1" {
			t.Errorf("counted %q", v)
		}
		if r.log.lines(`"message":"dead letter"`) != 1 || strings.Contains(r.log.String(), "a body") {
			t.Errorf("want one line without the body:\n%s", r.log)
		}
		r.mustStop()
	})
}

func TestHandBackNeverMakesADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 20, nil)
		last := make(chan struct{})
		r.start(func(_ context.Context, d *Delivery) Outcome {
			if d.Receives > 25 {
				close(last)
				return copied
			}
			return Outcome{Verb: HandBack}
		})
		<-last
		r.until(time.Minute, "it is settled", r.deleted(m))
		if n := len(r.letters()); n != 0 {
			t.Errorf("%d letters", n)
		}
		r.mustStop()
	})
}

// A gate that flaps may hand one message back again and again; the redrive policy
// counts each receive.
func TestThirtyHandBacksOutlastDays(t *testing.T) {
	for name, retried := range map[string]bool{"handed back": false, "retried": true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.cfg.Receives = 100
			m := r.put(mainURL, "a", 0, nil)
			start, last := time.Now(), make(chan struct{})
			r.start(func(_ context.Context, d *Delivery) Outcome {
				if d.Receives == 30 {
					close(last)
					return copied
				}
				if retried {
					return Outcome{Verb: Retry}
				}
				return Outcome{Verb: HandBack}
			})
			<-last
			if days := time.Since(start) > 72*time.Hour; days == retried {
				t.Errorf("%s: 30 receives took %s", name, time.Since(start))
			}
			r.until(time.Minute, "it is settled", r.deleted(m))
			for _, s := range r.look(m).changes {
				if time.Duration(s)*time.Second > maxVisibility {
					t.Errorf("%s for %d seconds, SQS allows %s", name, s, maxVisibility)
				}
			}
			r.mustStop()
		})
	}
}

func TestTheOriginalStaysWhileTheDeadLetterQueueCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var healed atomic.Bool
		r.fail = func(_ context.Context, op, url string) error {
			if op == opSend && !healed.Load() {
				return apiError("ServiceUnavailable")
			}
			return nil
		}
		m := r.put(mainURL, "a", 0, nil)
		r.start(func(context.Context, *Delivery) Outcome {
			return Outcome{Verb: Bury, End: "poison", Detail: "undecoded"}
		})
		time.Sleep(10 * time.Minute)
		if m := r.look(m); m.deleted || len(m.changes) < 2 || m.changes[0] < 5 {
			t.Errorf("deleted %t, given back %v", m.deleted, m.changes)
		}
		healed.Store(true)
		r.until(time.Hour, "it is dead", r.deleted(m))
		if got := r.letters(); len(got) != 1 || strs(got[0].attributes)["end"] != "poison" {
			t.Errorf("%d letters", len(got))
		}
		r.mustStop()
	})
}

func TestALetterThatCannotBeBuiltIsLeftToTheRedrivePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, strings.Repeat("x", MaxBytes), 0, nil)
		r.start(func(context.Context, *Delivery) Outcome { return Outcome{Verb: Bury, End: "poison"} })
		time.Sleep(time.Hour)
		r.mustStop()
		if m.deleted || r.count(opSend) != 0 || r.log.lines("left to the redrive policy") == 0 {
			t.Errorf("deleted %t after %d sends:\n%s", m.deleted, r.count(opSend), r.log)
		}
	})
}

func TestALetterKeepsForeignAttributesAsFarAsTheyFit(t *testing.T) {
	binary := "Binary"
	attributes := map[string]types.MessageAttributeValue{"traceparent": stringValue("tp"), "tracestate": stringValue("ts"), "redriven": stringValue("1"),
		"a": {DataType: &binary, BinaryValue: []byte{0, 1}}}
	for c := 'b'; c <= 'f'; c++ {
		attributes[string(c)] = stringValue("v")
	}
	l := &lease{delivery: &Delivery{Body: "body", Receives: 3}, attributes: attributes}
	got := letter(l, Outcome{End: "failed", Detail: "changed"}, time.Now())
	if len(got.MessageAttributes) != 10 {
		t.Errorf("%d attributes, want 10", len(got.MessageAttributes))
	}
	for _, name := range []string{"end", "detail", "receives", "dead_at", "traceparent", "tracestate", "redriven", "a", "b", "c"} {
		if _, ok := got.MessageAttributes[name]; !ok {
			t.Errorf("no %q", name)
		}
	}
	if !bytes.Equal(got.MessageAttributes["a"].BinaryValue, []byte{0, 1}) {
		t.Error("the binary attribute changed")
	}
	l.delivery.Body = strings.Repeat("x", MaxBytes-120)
	if got := letter(l, Outcome{End: "failed", Detail: "changed"}, time.Now()); SizeOf(got) > MaxBytes || len(got.MessageAttributes) < 4 {
		t.Errorf("%d bytes, %d attributes", SizeOf(got), len(got.MessageAttributes))
	}
}

func TestAPanicCostsOneDeliveryAndIsLoggedWithoutTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Receives = 2
		bad, good := r.put(mainURL, "secret body", 0, nil), r.put(mainURL, "b", 0, nil)
		r.start(func(_ context.Context, d *Delivery) Outcome {
			if d.Body == "secret body" {
				panic("cannot read " + d.Body)
			}
			return copied
		})
		r.until(time.Minute, "both end", r.deleted(bad, good))
		got := strs(r.letters()[0].attributes)
		if got["end"] != "failed" || got["detail"] != string(object.DetailInterrupted) {
			t.Errorf("letter says %v", got)
		}
		if log := r.log.String(); r.log.lines("handler panicked") != 2 || !strings.Contains(log, "work_test.go") || strings.Contains(log, "secret") {
			t.Errorf("want a line with a stack for each of two receives, without the body:\n%s", log)
		}
		r.mustStop()
	})
}

func TestASuspectIsWorkedOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 64
		r.latency = func(string) time.Duration { return 20 * time.Millisecond }
		var all []*fakeMessage
		for i := range 300 {
			earlier := 0
			if i%60 == 30 {
				earlier = 3 // this receive is its fourth
			}
			all = append(all, r.put(mainURL, fmt.Sprint(i), earlier, nil))
		}
		var running atomic.Int64
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			defer running.Add(-1)
			n := running.Add(1)
			if d.Receives < suspectFrom {
				return working(200*time.Millisecond)(ctx, d)
			}
			for range 20 {
				r.mu.Lock()
				flying, polling := len(r.queues[mainURL].flying), r.polling
				r.mu.Unlock()
				if n != 1 || running.Load() != 1 || polling != 0 {
					t.Errorf("%d run and %d receive beside a suspect", n-1, polling)
				}
				// Nothing else is held unless it is a suspect too: all is acknowledged.
				if suspects := r.c.suspectsNow(); flying > 1+suspects {
					t.Errorf("%d in flight beside a suspect, %d of them suspects", flying-1, suspects)
				}
				time.Sleep(10 * time.Millisecond)
			}
			return copied
		})
		r.until(time.Hour, "all are settled", r.deleted(all...))
		r.mustStop()
	})
}

func TestFurtherSuspectsWaitWithinTheRoomBesideALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		long := r.put(mainURL, "long", suspectFrom-1, nil)
		var running atomic.Int64
		began := make(chan struct{})
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			n := running.Add(1)
			defer running.Add(-1)
			switch {
			case d.Body == "long":
				close(began)
				pause(ctx, 10*time.Minute)
			case d.Receives >= suspectFrom && n != 1:
				t.Errorf("%d run beside another suspect", n-1)
			}
			return copied
		})
		<-began
		start := time.Now()
		var suspects []*fakeMessage
		for i := range 50 {
			suspects = append(suspects, r.put(mainURL, fmt.Sprint("suspect ", i), suspectFrom-1, nil))
		}
		r.until(10*time.Minute, "further suspects are received", func() bool { return r.c.suspectsNow() > 0 })
		if early := time.Since(start); early < suspectAlone {
			t.Errorf("received after %s beside a suspect", early)
		}
		time.Sleep(time.Minute)
		if held := r.c.Status().Held; held > 8+ahead(8) {
			t.Errorf("%d held, want no more than the slots and a batch ahead", held)
		}
		r.until(2*time.Hour, "the suspects are settled", r.deleted(append(suspects, long)...))
		r.mustStop()
	})
}

// A suspect's work may be long; only an instant killer must be alone for all of it.
func TestALongSuspectLetsTheOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		long := r.put(mainURL, "long", suspectFrom-1, nil)
		began := make(chan struct{})
		r.start(func(ctx context.Context, d *Delivery) Outcome {
			if d.Body == "long" {
				close(began)
				pause(ctx, 10*time.Minute)
			}
			return copied
		})
		<-began
		second := r.put(mainURL, "second", suspectFrom-1, nil)
		var others []*fakeMessage
		for i := range 20 {
			others = append(others, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.until(suspectAlone+time.Minute, "the others are settled", r.deleted(others...))
		if r.deleted(second)() || r.deleted(long)() {
			t.Error("a suspect was not waited for")
		}
		r.until(2*time.Hour, "the suspects are settled", r.deleted(second, long))
		r.mustStop()
	})
}

func (c *Consumer) suspectsNow() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.suspects)
}

// So that no innocent stands behind the culprit at every start, however often
// either of them was received.
func TestSuspectsWaitInOrderOfChance(t *testing.T) {
	seen := map[string]int{}
	for range 500 {
		c := &Consumer{}
		for _, d := range []Delivery{{ID: "a", Receives: 6}, {ID: "b", Receives: 5}, {ID: "c", Receives: 9}, {ID: "d", Receives: 5}} {
			c.enqueue(&lease{delivery: &d})
		}
		order := ""
		for _, l := range c.suspects {
			order += l.delivery.ID
		}
		seen[order]++
	}
	if len(seen) != 24 {
		t.Errorf("%d orders %v, want each of the 24", len(seen), seen)
	}
}

// A process that dies with whatever it works on takes nobody along twice: its
// life is one Run, its death the loss of all that it holds.
func TestAMessageThatKillsTheProcessTakesNobodyAlongForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Slots = 64
		r.cfg.Wait = time.Second
		var all []*fakeMessage
		for i := range 64 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		killer := all[40]
		for len(killer.received) < 25 {
			dead := make(chan struct{})
			var once atomic.Bool
			r.failWith(nil)
			r.start(func(ctx context.Context, d *Delivery) Outcome {
				if d.ID == killer.id && once.CompareAndSwap(false, true) {
					close(dead)
				}
				select {
				case <-dead:
					return Outcome{Verb: HandBack}
				case <-time.After(200 * time.Millisecond):
					return copied
				}
			})
			<-dead
			r.failWith(func(context.Context, string, string) error { return apiError("ServiceUnavailable") }) // nothing leaves a dead process
			r.work()
			<-r.done
			time.Sleep(time.Minute)
		}
		for _, m := range all {
			if m != killer && (!m.deleted || len(m.received) > 20) {
				t.Errorf("%s: deleted %t after %d receives", m.id, m.deleted, len(m.received))
			}
		}
	})
}
