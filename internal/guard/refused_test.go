package guard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

func TestRefusedReferenceDecides(t *testing.T) {
	denied := failure(object.Denied, "AccessDenied")
	for _, test := range []struct {
		name      string
		reference func(context.Context) error
		probe     error
		class     object.Class
		closed    bool
		reason    string
	}{
		{"reference passes", answer(nil), nil, "", false, ""},
		{"reference is absent", answer(failure(object.Absent, "NoSuchKey")), nil, "", false, ""},
		{"reference is denied", answer(failure(object.Denied, "AccessDenied")), nil, object.Canceled, true, "refused: AccessDenied"},
		{"reference is refused", answer(failure(object.Refused, "InvalidAccessKeyId")), nil, object.Canceled, true, "refused: InvalidAccessKeyId"},
		{"no reference", nil, nil, object.Canceled, true, "refused: AccessDenied"},
		{"reference unavailable, source alive", answer(failure(object.Unavailable, "http 500")), nil, object.Unavailable, false, ""},
		{"reference unavailable, source down", answer(failure(object.Unavailable, "http 500")), failure(object.Unavailable, "http 503"), object.Canceled, true, "unavailable: http 503"},
		{"reference hangs, source alive", hang, nil, object.Unavailable, false, ""},
		{"reference throttled", answer(failure(object.Throttled, "SlowDown")), nil, object.Throttled, false, ""},
		{"reference unknown", answer(failure(object.Unknown, "Odd")), nil, object.Unknown, false, ""},
	} {
		bubble(t, test.name, func(t *testing.T) {
			g := start(t, testConfig(), answer(test.probe))
			err := g.Refused(t.Context(), denied, test.reference)
			wantClass(t, err, test.class, test.closed)
			s := g.Status()
			if s.Reason != test.reason || (s.State == StateClosed) != test.closed {
				t.Errorf("gate is %q because of %q", s.State, s.Reason)
			}
			if strings.Contains(s.Reason, "private") {
				t.Errorf("reason %q holds a key", s.Reason)
			}
		})
	}
}

// While the reference is refused nothing else opens the gate, and nothing else is
// asked.
func TestRefusedGateAsksReference(t *testing.T) {
	for name, shutFirst := range map[string]bool{"closed by the reference": false, "closed by a call that had none": true} {
		bubble(t, name, func(t *testing.T) {
			var probes, references atomic.Int64
			var granted atomic.Bool
			g := start(t, testConfig(), func(context.Context) error { probes.Add(1); return nil })
			reference := func(context.Context) error {
				references.Add(1)
				if granted.Load() {
					return nil
				}
				return failure(object.Denied, "AccessDenied")
			}
			if shutFirst {
				wantClass(t, g.Do(t.Context(), "PutObject", 0, answer(failure(object.Refused, "KMS.DisabledException"))), object.Canceled, true)
				if s := g.Status(); s.Reason != "refused: KMS.DisabledException" {
					t.Errorf("reason is %q", s.Reason)
				}
			}
			err := g.Refused(t.Context(), failure(object.Denied, "AccessDenied"), reference)
			wantClass(t, err, object.Canceled, true)
			time.Sleep(time.Hour)
			if s := g.Status().State; s != StateClosed && s != StateProbing {
				t.Errorf("gate is %q", s)
			}
			if probes.Load() != 0 || references.Load() < 10 {
				t.Errorf("%d probes and %d references", probes.Load(), references.Load())
			}
			granted.Store(true)
			time.Sleep(5 * time.Minute)
			wantState(t, g, StateSlowStart)
		})
	}
}

// A stranger who asks for private keys holds up nobody, and costs one reference
// at once.
func TestRefusedSharesOneReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		var running, references atomic.Int64
		reference := func(context.Context) error {
			references.Add(1)
			if running.Add(1) > 1 {
				t.Error("two references at once")
			}
			time.Sleep(200 * time.Millisecond)
			running.Add(-1)
			return nil
		}
		var all sync.WaitGroup
		began := time.Now()
		for range 64 {
			all.Go(func() {
				if err := g.Refused(t.Context(), failure(object.Denied, "AccessDenied"), reference); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 400*time.Millisecond || references.Load() > 2 {
			t.Errorf("%d references in %v", references.Load(), took)
		}
	})
}

// A reference that was let through before the refusal says nothing: the grant
// may have been revoked in between.
func TestReferenceMustBeginAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		answers := make(chan error)
		reference := func(context.Context) error { return <-answers }
		first, second := make(chan error), make(chan error)
		ask := func(verdict chan<- error) {
			verdict <- g.Refused(t.Context(), failure(object.Denied, "AccessDenied"), reference)
		}
		go ask(first)
		synctest.Wait()
		go ask(second)
		synctest.Wait()
		answers <- nil
		if err := <-first; err != nil {
			t.Errorf("the first was told the whole is refused: %v", err)
		}
		answers <- failure(object.Denied, "AccessDenied")
		if !errors.Is(<-second, ErrClosed) {
			t.Error("the second was settled by a reference from before its refusal")
		}
	})
}

func TestRefusedProbeKeepsGateClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{down: failure(object.Refused, "NoSuchBucket")}
		g := start(t, testConfig(), d.probe)
		wantClass(t, g.Do(t.Context(), "GetObject", 0, d.call), object.Canceled, true)
		time.Sleep(time.Hour)
		wantState(t, g, StateClosed)
		if calls, _ := d.counts(); calls != 1 {
			t.Errorf("%d calls", calls)
		}
		d.set(nil)
		time.Sleep(5 * time.Minute)
		wantState(t, g, StateSlowStart)
	})
}
