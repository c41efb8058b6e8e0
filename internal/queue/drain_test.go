package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestADrainFinishesTheWorkAndHandsBackTheRestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.attributes["VisibilityTimeout"] = "4"
		var all []*fakeMessage
		for i := range 30 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(working(10 * time.Second))
		time.Sleep(time.Second)
		held := r.c.Status().Held
		r.mustStop() // the heartbeat lives until the last worker is done
		done, back := 0, 0
		for _, m := range all {
			switch {
			case m.deleted && len(m.received) == 1:
				done++
			case len(m.received) == 1 && len(m.changes) == 1 && m.changes[0] == 0:
				back++
			case len(m.received) > 0:
				t.Errorf("%s: received %d times, visibility %v", m.id, len(m.received), m.changes)
			}
		}
		if done != 8 || done+back != held {
			t.Errorf("%d done and %d handed back of %d held", done, back, held)
		}
		if r.aborted != 0 {
			t.Errorf("%d long polls aborted", r.aborted)
		}
	})
}

func TestADrainLetsLongPollsFinishAndHandsBackWhatTheyBring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(settle)
		time.Sleep(5 * time.Second)
		r.intake()
		time.Sleep(5 * time.Second)
		m := r.put(mainURL, "late", 0, nil)
		r.mustStop()
		if r.aborted != 0 || len(m.received) != 1 || fmt.Sprint(m.changes) != "[0]" {
			t.Errorf("%d aborted; received %d times, visibility %v", r.aborted, len(m.received), m.changes)
		}
	})
}

func TestTheEndOfWorkCancelsHandsBackAndAbortsPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var all []*fakeMessage
		for i := range 5 {
			all = append(all, r.put(mainURL, fmt.Sprint(i), 0, nil))
		}
		r.start(working(time.Hour))
		time.Sleep(time.Second)
		r.intake()
		time.Sleep(time.Second)
		second := time.Now()
		r.work()
		r.mustStop()
		if d := time.Since(second); d > time.Second {
			t.Errorf("took %s after the second signal", d)
		}
		for _, m := range all {
			if m.deleted || len(m.changes) != 1 || m.changes[0] < 5 || m.changes[0] > 8 {
				t.Errorf("%s: deleted %t, visibility %v, want the shortest back-off", m.id, m.deleted, m.changes)
			}
		}
		if r.aborted != 1 {
			t.Errorf("%d polls aborted, want the one that was running", r.aborted)
		}
	})
}

func TestWhatSettledAtTheEndOfWorkIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 0, nil)
		r.start(func(ctx context.Context, _ *Delivery) Outcome {
			<-ctx.Done()
			return copied
		})
		time.Sleep(time.Second)
		r.work()
		r.mustStop()
		if !m.deleted {
			t.Error("not deleted")
		}
	})
}

func TestAHandlerThatIgnoresItsContextDoesNotHoldUpTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 0, nil)
		release := make(chan struct{})
		r.start(func(context.Context, *Delivery) Outcome {
			<-release
			return copied
		})
		time.Sleep(time.Second)
		start := time.Now()
		r.work()
		err := r.stop()
		if err == nil || !strings.Contains(err.Error(), "1 handlers") {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(start); d > r.cfg.Drain {
			t.Errorf("took %s", d)
		}
		if m.deleted || len(m.changes) != 1 {
			t.Errorf("deleted %t, visibility %v: want it handed back", m.deleted, m.changes)
		}
		close(release)
		r.c.workers.Wait()
	})
}

func TestADrainEndsAlthoughSQSDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put(mainURL, "a", 0, nil)
		r.start(settle)
		r.failWith(func(ctx context.Context, op, _ string) error {
			if op != opReceive {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		time.Sleep(time.Second)
		r.work()
		start := time.Now()
		err := r.stop()
		if err == nil || !strings.Contains(err.Error(), "1 messages were left") {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(start); d > r.cfg.Drain+time.Second {
			t.Errorf("took %s", d)
		}
	})
}

func TestADrainWhileTheGateIsClosedAndWhileASuspectWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put(mainURL, "a", 0, nil)
		suspect := r.put(mainURL, "b", 5, nil)
		r.start(working(30 * time.Second))
		time.Sleep(time.Second)
		r.mustStop()
		if suspect.deleted || fmt.Sprint(suspect.changes) != "[0]" {
			t.Errorf("the suspect: deleted %t, visibility %v, want it handed back unstarted", suspect.deleted, suspect.changes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.gate.n = 0
		r.start(settle)
		time.Sleep(time.Minute)
		r.mustStop()
	})
}
