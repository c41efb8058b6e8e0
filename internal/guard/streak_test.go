package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
		for name, at := range map[string]int{"one after the other": 1, "all at once": 100} {
			bubble(t, string(class)+" "+name, func(t *testing.T) {
				g := start(t, testConfig(), answer(nil))
				var mu sync.Mutex
				failed, heldBack := 0, 0
				for round := range 100 / at {
					var all sync.WaitGroup
					for i := range at {
						all.Go(func() {
							// As a copy does, and it goes well, it looks before it writes.
							_ = g.Do(t.Context(), "HeadObject", 0, answer(nil))
							err := g.Do(t.Context(), "PutObject", 0, of(class, fmt.Sprint("k", round*at+i)))
							mu.Lock()
							defer mu.Unlock()
							if errors.Is(err, ErrClosed) {
								heldBack++
							} else {
								wantClass(t, err, class, false)
								failed++
							}
						})
					}
					all.Wait()
				}
				if failed >= sickKeys {
					t.Errorf("%d of 100 failed, %d were handed back", failed, heldBack)
				}
				wantState(t, g, StateClosed)
				if got, want := g.Status().Reason, string(class)+": test"; got != want {
					t.Errorf("reason is %q, want %q", got, want)
				}

				// Open again it takes one answer to know, and lasts longer each time.
				wait := g.cfg.ProbeMin
				for i := range 8 {
					at := time.Now()
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
			between func(context.Context) error // after each seven, or nil
		}{
			"one key":                         {keys: 1},
			"seven keys":                      {keys: sickKeys - 1},
			"many, with good answers":         {keys: 100, between: answer(nil)},
			"many, with answers of an object": {keys: 100, between: of(object.Absent, "other")},
		} {
			bubble(t, string(class)+" "+name, func(t *testing.T) {
				g := start(t, testConfig(), answer(nil))
				for i := range 300 {
					if test.between != nil && i%(sickKeys-1) == 0 {
						_ = g.Do(t.Context(), "GetObject", 0, test.between)
					}
					wantClass(t, g.Do(t.Context(), "GetObject", 0, of(class, fmt.Sprint("k", i%test.keys))), class, false)
				}
				wantState(t, g, StateOpen)
				if n := len(g.streaks["GetObject"]); n > sickKeys {
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
			wantClass(t, g.Do(t.Context(), "PutObject", 0, of(object.Mangled, fmt.Sprint("k", i))), object.Mangled, false)
		}
		wantState(t, g, StateClosed)
	})
}
