package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// counting is a guard that lets calls through, as long as it is open.
type counting struct {
	mu    sync.Mutex
	calls int
	errs  []error
	shut  error
}

func (g *counting) Do(ctx context.Context, op string, bytes int64, call func(context.Context) error) error {
	if g.shut != nil {
		return g.shut
	}
	err := call(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	g.errs = append(g.errs, err)
	return err
}

func newSender(t *testing.T, caller Caller) (*fakeSQS, *Sender) {
	f := newFakeSQS(t)
	s := NewSender(f, caller, SenderConfig{Name: "main", URL: mainURL}, telemetry.Nop())
	t.Cleanup(func() { s.Close(context.Background()) })
	return f, s
}

func entries(n int) []Entry {
	out := make([]Entry, n)
	for i := range out {
		out[i].Body = fmt.Sprint(i)
	}
	return out
}

func (f *fakeSQS) bodies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, m := range f.queues[mainURL].all {
		out = append(out, m.body)
	}
	return out
}

func TestCallersShareBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		f.latency = func(string) time.Duration { return 200 * time.Millisecond }
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if err := s.Send(t.Context(), entries(1))[0]; err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		// Ten batches of ten, eight at once: two rounds, not a hundred.
		if d := time.Since(start); d > 450*time.Millisecond {
			t.Errorf("took %s", d)
		}
		if got := f.sizes(opSend); len(got) != 10 {
			t.Errorf("batches of %v", got)
		}
	})
}

func TestOnlyTheEntriesThatFailedAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counting{}
		f, s := newSender(t, g)
		failed := map[string]int{}
		f.refuse = func(_ string, e fakeEntry) *types.BatchResultErrorEntry {
			if e.body == "3" || e.body == "7" {
				if failed[e.body]++; failed[e.body] < 3 {
					return refusal("InternalError", false)
				}
			}
			return nil
		}
		for i, err := range s.Send(t.Context(), entries(10)) {
			if err != nil {
				t.Errorf("entry %d: %v", i, err)
			}
		}
		if got := f.sizes(opSend); !slices.Equal(got, []int{10, 2, 2}) {
			t.Errorf("batches of %v, want the two failed ones alone", got)
		}
		got := f.bodies()
		slices.Sort(got)
		if !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
			t.Errorf("sent %v", got)
		}
		synctest.Wait() // the last call is answered before its guard has counted it
		if g.calls != 3 {
			t.Errorf("%d calls through the guard, want each attempt", g.calls)
		}
		if g.errs[0] != nil || object.ClassOf(g.errs[1]) != object.Unavailable {
			t.Errorf("the guard saw %v: single entries must not count, a batch without one accepted must", g.errs)
		}
	})
}

func TestAnEntryThatFailsForEverIsToldToItsCallerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		f.refuse = func(_ string, e fakeEntry) *types.BatchResultErrorEntry {
			switch e.body {
			case "3":
				return refusal("InternalError", false)
			case "4":
				return refusal("InvalidMessageContents", true)
			case "5":
				return refusal("KMS.AccessDeniedException", true)
			}
			return nil
		}
		got := s.Send(t.Context(), entries(10))
		for i, class := range map[int]object.Class{3: object.Unavailable, 4: object.Unfit, 5: object.Refused, 6: ""} {
			if object.ClassOf(got[i]) != class {
				t.Errorf("entry %d: %v, want class %q", i, got[i], class)
			}
		}
		if got := f.sizes(opSend); !slices.Equal(got, []int{10, 2, 2, 2}) {
			t.Errorf("batches of %v, want a few attempts and none for the invalid entry", got)
		}
	})
}

// Unfit costs a miss for good, so nothing that nobody foresaw may be it.
func TestOnlyACodeOfTheTableMakesAnEntryUnfit(t *testing.T) {
	for code, class := range map[string]object.Class{
		"SomethingNew": object.Unknown, "InvalidParameterValue": object.Unfit, "InvalidMessageContents": object.Unfit,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, s := newSender(t, nil)
			f.refuse = func(string, fakeEntry) *types.BatchResultErrorEntry { return refusal(code, true) }
			if err := s.Send(t.Context(), entries(1))[0]; object.ClassOf(err) != class {
				t.Errorf("an entry: %v, want class %q", err, class)
			}
			if n := f.count(opSend); class == object.Unknown && n < 2 {
				t.Errorf("%s: %d attempts", code, n)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			f, s := newSender(t, nil)
			f.failWith(func(context.Context, string, string) error {
				return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 400}}, Err: apiError(code)}
			})
			for i, err := range s.Send(t.Context(), entries(2)) {
				if object.ClassOf(err) != object.Unknown {
					t.Errorf("entry %d of a batch refused as a whole: %v, want class unknown", i, err)
				}
			}
		})
	}
}

func TestACallThatFailsIsRetriedAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		calls := 0
		f.fail = func(context.Context, string, string) error {
			if calls++; calls < 3 {
				return apiError("KmsThrottled")
			}
			return nil
		}
		if err := s.Send(t.Context(), entries(1))[0]; err != nil {
			t.Error(err)
		}
		f.failWith(func(context.Context, string, string) error { return apiError("OverLimit") })
		if err := s.Send(t.Context(), entries(1))[0]; object.ClassOf(err) != object.Throttled {
			t.Errorf("%v", err)
		}
	})
}

func TestAGuardThatIsShutIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shut := &object.Error{Side: object.Queue, Op: opSend, Class: object.Refused}
		f, s := newSender(t, &counting{shut: shut})
		start := time.Now()
		for _, err := range s.Send(t.Context(), entries(3)) {
			if !errors.Is(err, shut) {
				t.Error(err)
			}
		}
		if d := time.Since(start); d > 100*time.Millisecond || f.total() != 0 {
			t.Errorf("%d calls in %s", f.total(), d)
		}
	})
}

func TestBatchesKeepToOneMebibyteInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil) // the fake refuses larger ones
		list := make([]Entry, 25)
		for i := range list {
			list[i] = Entry{Body: strings.Repeat("x", 300_000), Attributes: map[string]string{"a": strings.Repeat("y", 30_000)}}
		}
		for _, err := range s.Send(t.Context(), list) {
			if err != nil {
				t.Error(err)
			}
		}
		if got := f.sizes(opSend); len(got) != 9 {
			t.Errorf("batches of %v, want three in each", got)
		}
	})
}

func TestAnEntryThatSQSCannotCarryFailsAtOnceAndAlone(t *testing.T) {
	many := map[string]string{}
	for i := range 11 {
		many[fmt.Sprint("a", i)] = "v"
	}
	bad := []Entry{
		{Body: ""},
		{Body: "null\x00"}, {Body: "broken\xff"}, {Body: "\uffff"}, {Body: "\ufffe"}, {Body: "\x1f"},
		{Body: strings.Repeat("x", MaxBytes+1)},
		{Body: strings.Repeat("x", MaxBytes-5), Attributes: map[string]string{"a": "b"}},
		{Body: "a", Attributes: many},
		{Body: "a", Attributes: map[string]string{"a": ""}},
		{Body: "a", Delay: 16 * time.Minute},
	}
	good := []Entry{{Body: "\t\n\r \ud7ff\ue000\ufffd𐀀\U0010ffff测"}, {Body: "a", Attributes: map[string]string{"k": "v"}, Delay: 15 * time.Minute}}
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		got := s.Send(t.Context(), append(slices.Clone(bad), good...))
		for i := range bad {
			if object.ClassOf(got[i]) != object.Unfit {
				t.Errorf("entry %d: %v, want class unfit", i, got[i])
			}
		}
		for i := range good {
			if err := got[len(bad)+i]; err != nil {
				t.Error(err)
			}
		}
		if n := len(f.bodies()); n != len(good) {
			t.Errorf("%d sent", n)
		}
	})
}

func TestACallerThatGivesUpIsAnsweredAndTheOthersAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		f.latency = func(string) time.Duration { return time.Second }
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Send(ctx, entries(1))[0]; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up: %v", err)
			}
		})
		wg.Go(func() {
			if err := s.Send(t.Context(), entries(1))[0]; err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	})
}

func TestCloseGivesUpWhatSQSDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newSender(t, nil)
		f.fail = func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Send(t.Context(), entries(1))[0]; object.ClassOf(err) != object.Canceled {
				t.Errorf("%v", err)
			}
		})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Close(ctx)
		wg.Wait()
	})
}
