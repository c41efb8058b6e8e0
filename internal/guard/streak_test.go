package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// of answers a class for a key.
func of(c object.Class, key string) func(context.Context) error {
	return answer(&object.Error{Side: object.Source, Op: "GetObject", Key: key, Class: c, Code: "test"})
}

var sick = []object.Class{object.Corrupt, object.Unknown}

func TestNoKeyServedWellClosesTheGate(t *testing.T) {
	for _, class := range sick {
		for name, workers := range map[string]int{"one after the other": 1, "many at once": 64} {
			bubble(t, string(class)+" "+name, func(t *testing.T) {
				g := start(t, testConfig(), answer(nil))
				began := time.Now()
				var failed, key atomic.Int64
				var all sync.WaitGroup
				for range workers {
					all.Go(func() {
						for range 100 {
							// As a copy does, and it goes well, it looks before it writes.
							_ = g.Do(t.Context(), "HeadObject", 0, answer(nil))
							time.Sleep(time.Second)
							err := g.Do(t.Context(), "PutObject", 0, of(class, fmt.Sprint("k", key.Add(1))))
							if errors.Is(err, ErrClosed) {
								return
							}
							wantClass(t, err, class, false)
							failed.Add(1)
						}
						t.Error("the gate stays open")
					})
				}
				all.Wait()
				if took, most := time.Since(began), max(20*time.Second, 2*g.cfg.ProbeMin); took > most || failed.Load() > int64(7*workers) {
					t.Errorf("the gate closed after %v and %d failures", took, failed.Load())
				}
				wantState(t, g, StateClosed)
				if got, want := g.Status().Reason, string(class)+": test"; got != want {
					t.Errorf("reason is %q, want %q", got, want)
				}

				// Open again it takes one answer to know, and lasts longer each time.
				wait := g.cfg.ProbeMin
				for i := range 8 {
					at := g.Status().Since
					_, changed := g.Admit()
					<-changed
					if took := time.Since(at); took < wait {
						t.Errorf("return %d after %v, want at least %v", i, took, wait)
					}
					wait = min(2*wait, g.cfg.ProbeMax/3*2)
					_ = g.Do(t.Context(), "HeadObject", 0, answer(nil))
					wantClass(t, g.Do(t.Context(), "PutObject", 0, of(class, fmt.Sprint("again", i))), object.Canceled, true)
				}
				_, changed := g.Admit()
				<-changed
				for range 200 {
					if err := g.Do(t.Context(), "PutObject", 0, answer(nil)); err != nil {
						t.Fatal(err)
					}
				}
				wantState(t, g, StateOpen)
			})
		}
	}
}

func TestSickKeysAmongOthersFailAlone(t *testing.T) {
	for _, class := range sick {
		for name, test := range map[string]struct {
			keys    int
			every   time.Duration
			between func(context.Context) error // after each ten, or nil
		}{
			"one key":                         {keys: 1, every: time.Second},
			"seven keys":                      {keys: sickKeys - 1, every: time.Second},
			"many in a row, for a moment":     {keys: 300},
			"many, with good answers":         {keys: 300, every: time.Second / 4, between: answer(nil)},
			"many, with answers of an object": {keys: 300, every: time.Second / 4, between: of(object.Absent, "other")},
		} {
			bubble(t, string(class)+" "+name, func(t *testing.T) {
				cfg := testConfig()
				cfg.Attempts = 1
				g := start(t, cfg, answer(nil))
				for i := range 300 {
					time.Sleep(test.every)
					if test.between != nil && i%10 == 0 {
						_ = g.Do(t.Context(), "GetObject", 0, test.between)
					}
					wantClass(t, g.Do(t.Context(), "GetObject", 0, of(class, fmt.Sprint("k", i%test.keys))), class, false)
				}
				wantState(t, g, StateOpen)
				if n := len(g.streaks["GetObject"].keys); n > sickKeys {
					t.Errorf("%d keys are remembered", n)
				}
			})
		}
	}
}

// What says nothing of keys neither makes a row of sick ones nor ends it.
func TestOtherFailuresAreNoSickKeys(t *testing.T) {
	for class, closes := range map[object.Class]bool{object.Unavailable: true, object.Ambiguous: true, object.Absent: false} {
		bubble(t, string(class), func(t *testing.T) {
			cfg := testConfig()
			cfg.Attempts = 1
			g := start(t, cfg, answer(nil))
			for i := range 100 {
				_ = g.Do(t.Context(), "GetObject", 0, of(class, fmt.Sprint("other", i)))
			}
			wantState(t, g, StateOpen)
			for i := range sickKeys {
				time.Sleep(cfg.ProbeMin)
				_ = g.Do(t.Context(), "GetObject", 0, of(class, "other"))
				_ = g.Do(t.Context(), "GetObject", 0, of(object.Corrupt, fmt.Sprint("k", i)))
			}
			if got := g.Status().State == StateClosed; got != closes {
				t.Errorf("the gate is closed: %v, want %v", got, closes)
			}
		})
	}
}

// Objects that were stored wrongly are each for a human to see to, and no more of
// them are written.
func TestMangledWritesCloseTheGateAndAreNotHandedBack(t *testing.T) {
	bubble(t, "mangled", func(t *testing.T) {
		g := start(t, testConfig(), answer(nil))
		for i := range sickKeys {
			wantState(t, g, StateOpen)
			time.Sleep(g.cfg.ProbeMin)
			wantClass(t, g.Do(t.Context(), "PutObject", 0, of(object.Mangled, fmt.Sprint("k", i))), object.Mangled, false)
		}
		wantState(t, g, StateClosed)
	})
}
