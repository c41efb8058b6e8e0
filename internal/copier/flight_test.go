package copier

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// slow is a world in which a read and a write take a second each.
func slow(t *testing.T) *world {
	w := newWorld(t, options{})
	w.src.latency, w.dst.latency = time.Second, time.Second
	w.src.put("k", content(10))
	return w
}

func TestRequestsForOneKeyMakeOneCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		ends := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				out := w.ask(t.Context(), "k")
				mu.Lock()
				defer mu.Unlock()
				ends[out.End]++
			})
		}
		wg.Wait()
		if ends["copied"] != 1 || ends["present"] != 9 {
			t.Errorf("ends %v", ends)
		}
		if len(w.src.gets) != 1 || w.dst.calls["Head"] != 1 || w.dst.calls["Put"] != 1 {
			t.Errorf("%d reads, calls %v", len(w.src.gets), w.dst.calls)
		}
	})
}

func TestDifferentKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			key := fmt.Sprint("k", i)
			w.src.put(key, content(10))
			wg.Go(func() { wantsEnd(t, w.ask(t.Context(), key), object.EndCopied) })
		}
		wg.Wait()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestWaitingRequestIsEndedByItsOwnContextAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		var first queue.Outcome
		var wg sync.WaitGroup
		wg.Go(func() { first = w.ask(t.Context(), "k") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		began := time.Now()
		wants(t, w.ask(ctx, "k"), queue.HandBack, "", "")
		if took := time.Since(began); took != time.Second/2 {
			t.Errorf("waited %v", took)
		}
		wg.Wait()
		wantsEnd(t, first, object.EndCopied)
	})
}

func TestCopyThatLostItsLeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var first queue.Outcome
		var wg sync.WaitGroup
		wg.Go(func() { first = w.ask(ctx, "k") })
		synctest.Wait()
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		wg.Wait()
		wants(t, first, queue.HandBack, "", "")
		w.wantsTidy(t)
	})
}

func TestFailureIsSharedNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		w.src.onGet = func(int, get, *object.Read) error { return sourceFails(object.Unavailable) }
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { wants(t, w.ask(t.Context(), "k"), queue.Retry, "", object.DetailUnavailable) })
		}
		wg.Wait()
		if len(w.src.gets) != 1 {
			t.Errorf("%d reads", len(w.src.gets))
		}
		w.ask(t.Context(), "k")
		if len(w.src.gets) != 2 {
			t.Error("a failure was remembered")
		}
	})
}

func TestPanicDoesNotStrandThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		w.dst.before = func(op string, n int) error {
			if op == "Head" && n == 1 {
				w.dst.mu.Unlock()
				defer w.dst.mu.Lock()
				panic("bug")
			}
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			w.ask(t.Context(), "k")
		})
		synctest.Wait()
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		wg.Wait()
	})
}

func TestEndSettlesOnlyRowsOlderThanTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		delete(w.src.objects, "k")
		began := time.Now()
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndAbsent)
		for name, test := range map[string]struct {
			seen  time.Time
			asked bool
		}{
			"an hour older": {began.Add(-time.Hour), false},
			"just older":    {began.Add(-1001 * time.Millisecond), false},
			"perhaps younger, rows have no fractions": {began.Add(-time.Second), true},
			"as old":  {began, true},
			"younger": {began.Add(time.Minute), true},
		} {
			// Each asks the table as it was after the first answer.
			w.ends.Put(bucket, "k", result{End: object.EndAbsent}, began)
			before := len(w.src.gets)
			wantsEnd(t, w.askSeen(t.Context(), "k", test.seen), object.EndAbsent)
			if asked := len(w.src.gets) > before; asked != test.asked {
				t.Errorf("a row that is %s: asked again %v, want %v", name, asked, test.asked)
			}
		}
	})
}

func TestEndSpeaksOfWhenTheCopierBeganToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		began := time.Now()
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied) // takes three seconds
		wantsEnd(t, w.askSeen(t.Context(), "k", began.Add(time.Second)), object.EndPresent)
		if w.dst.calls["Head"] != 2 {
			t.Error("a row that came during the copy was settled by what was found before it")
		}
	})
}

func TestLaterMissIsCopiedAlthoughAnEndIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndPresent) // remembered
		if w.dst.calls["Head"] != 1 {
			t.Errorf("%d HEADs for a remembered end", w.dst.calls["Head"])
		}
		delete(w.dst.objects, "k") // it is gone, and missed again
		time.Sleep(time.Minute)
		wantsEnd(t, w.askSeen(t.Context(), "k", time.Now()), object.EndCopied)
	})
}

func TestWaitingRowThatIsYoungerThanTheAnswerAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		delete(w.src.objects, "k")
		var wg sync.WaitGroup
		wg.Go(func() { wantsEnd(t, w.ask(t.Context(), "k"), object.EndAbsent) })
		time.Sleep(1100 * time.Millisecond) // it asks the source now
		wg.Go(func() { wantsEnd(t, w.askSeen(t.Context(), "k", time.Now()), object.EndAbsent) })
		wg.Wait()
		if len(w.src.gets) != 2 {
			t.Errorf("%d reads, want 2", len(w.src.gets))
		}
	})
}

func TestRememberedEndHasItsName(t *testing.T) {
	for class, end := range map[object.Class]object.End{object.Absent: object.EndAbsent, object.Archived: object.EndArchived,
		object.Unfit: object.EndUnfit, object.Denied: object.EndDenied} {
		synctest.Test(t, func(t *testing.T) {
			w := slow(t)
			w.src.onGet = func(int, get, *object.Read) error { return sourceFails(class) }
			wantsEnd(t, w.ask(t.Context(), "k"), end)
			before := len(w.src.gets)
			wantsEnd(t, w.ask(t.Context(), "k"), end)
			if len(w.src.gets) != before {
				t.Errorf("%s was not remembered", end)
			}
		})
	}
}

func TestEndsAreForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slow(t)
		w.ask(t.Context(), "k")
		time.Sleep(rememberFor)
		w.ask(t.Context(), "k")
		if w.dst.calls["Head"] != 2 {
			t.Errorf("%d HEADs", w.dst.calls["Head"])
		}
	})
}
