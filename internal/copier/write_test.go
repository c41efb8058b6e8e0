package copier

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// writes are the calls that make an object visible.
var writes = map[string]int{"Put": 10, "Complete": 3 * part} // with a size that leads there

func TestUnclearWriteIsSettledByLooking(t *testing.T) {
	theirs := &stored{body: []byte("theirs"), p: object.Provenance{CopyID: "another copy"}}
	for op, size := range writes {
		for name, test := range map[string]struct {
			// before and after the n-th write
			before, after func(w *world, n int) error
			verb          queue.Verb
			end           object.End
			detail        object.Detail
		}{
			"committed, the answer was lost": {
				after: func(*world, int) error { return destFails(object.Ambiguous) }, verb: queue.Settle, end: object.EndCopied,
			},
			"committed, the repetition was told it exists": {
				after: func(*world, int) error { return destFails(object.Exists) }, verb: queue.Settle, end: object.EndCopied,
			},
			"somebody else came first": {
				before: func(w *world, _ int) error { w.dst.objects["k"] = theirs; return nil }, verb: queue.Settle, end: object.EndPresent,
			},
			"somebody else came first, the answer was lost": {
				before: func(w *world, _ int) error { w.dst.objects["k"] = theirs; return destFails(object.Ambiguous) },
				verb:   queue.Settle, end: object.EndPresent,
			},
			"somebody deleted it": {
				before: func(w *world, _ int) error { w.dst.deleted["k"] = true; return destFails(object.Ambiguous) },
				verb:   queue.Settle, end: object.EndFiltered, detail: object.DetailDeleted,
			},
			"not committed, the next one is": {
				before: func(_ *world, n int) error {
					if n < commitTries {
						return destFails(object.Ambiguous)
					}
					return nil
				}, verb: queue.Settle, end: object.EndCopied,
			},
			"never committed": {
				before: func(*world, int) error { return destFails(object.Ambiguous) }, verb: queue.Retry, detail: object.DetailUnavailable,
			},
			"told that it exists, and nothing is there": {
				before: func(*world, int) error { return destFails(object.Exists) }, verb: queue.Retry, detail: object.DetailUnavailable,
			},
		} {
			t.Run(op+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, options{})
					w.src.put("k", content(size))
					hook := func(f func(*world, int) error) func(string, int) error {
						return func(o string, n int) error {
							if o != op || f == nil {
								return nil
							}
							return f(w, n)
						}
					}
					w.dst.before, w.dst.after = hook(test.before), hook(test.after)
					wants(t, w.ask(t.Context(), "k"), test.verb, string(test.end), test.detail)
					if test.end == object.EndCopied {
						w.wantsCopy(t, "k")
					} else if o := w.dst.get("k"); o != nil && o != theirs {
						t.Error("wrote nevertheless")
					}
					if n := w.dst.calls[op]; n > commitTries {
						t.Errorf("%d writes", n)
					}
					w.wantsTidy(t)
				})
			})
		}
	}
}

func TestLookingThatFailsDecides(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		verb   queue.Verb
		detail object.Detail
	}{
		"throttled":   {destFails(object.Throttled), queue.Retry, object.DetailThrottled},
		"gate closed": {guard.ErrClosed, queue.HandBack, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.put("k", content(10))
			w.dst.before = func(op string, n int) error {
				if op == "Head" && n > 1 {
					return test.err
				}
				return nil
			}
			w.dst.after = func(op string, _ int) error {
				if op == "Put" {
					return destFails(object.Ambiguous)
				}
				return nil
			}
			wants(t, w.ask(t.Context(), "k"), test.verb, "", test.detail)
			if w.dst.calls["Put"] != 1 {
				t.Errorf("%d writes", w.dst.calls["Put"])
			}
			w.dst.before, w.dst.after = nil, nil
			wantsEnd(t, w.ask(t.Context(), "k"), object.EndPresent) // what we wrote is found
		})
	}
}

func TestObjectStoredWronglyIsNeverTakenForCopied(t *testing.T) {
	for op, size := range writes {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				key := strings.Repeat("k", object.MaxKey)
				g.world.src.put(key, content(size))
				g.world.dst.after = func(o string, _ int) error {
					if o == op {
						return &object.Error{Side: object.Destination, Op: o, Key: key, Class: object.Mangled, Hint: "delete it"}
					}
					return nil
				}
				out := g.ask(t.Context(), key)
				wants(t, out, queue.Bury, "failed", object.DetailCorrupt)
				if !strings.Contains(out.Note, "delete it") {
					t.Errorf("the note does not say what to do: %s", out.Note)
				}
				if g.world.dst.calls[op] != 1 || g.world.dst.calls["Head"] != 1 {
					t.Errorf("calls %v, want one write and no look after it", g.world.dst.calls)
				}
			})
		})
	}
}

func TestOutageOfWritesAloneHandsBack(t *testing.T) {
	for op, size := range writes {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				g.probeWrites = func(context.Context) error { return destFails(object.Unavailable) }
				g.world.dst.before = func(o string, _ int) error {
					if o == op { // while HEAD goes on working
						return destFails(object.Ambiguous)
					}
					return nil
				}
				var wg sync.WaitGroup
				for i := range 8 {
					key := fmt.Sprint("k", i)
					g.world.src.put(key, content(size))
					wg.Go(func() { wants(t, g.ask(t.Context(), key), queue.HandBack, "", "") })
				}
				wg.Wait()
				if !closed(g.dst) {
					t.Error("the gate is open")
				}
				g.wantsNothing(t)
			})
		})
	}
}

func TestUsefulAnswersToNoKeySpareTheBacklog(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*guarded)
		gate  func(*guarded) *guard.Guard
	}{
		"no write is understood": {func(g *guarded) {
			g.world.dst.before = func(op string, n int) error {
				if op == "Put" {
					return &object.Error{Side: object.Destination, Op: "PutObject", Key: fmt.Sprint(n), Class: object.Unknown, Code: "InvalidArgument"}
				}
				return nil
			}
		}, func(g *guarded) *guard.Guard { return g.dst }},
		"no body has its sum": {func(g *guarded) {
			g.world.src.onGet = func(_ int, _ get, r *object.Read) error {
				r.CRC64++
				return nil
			}
		}, func(g *guarded) *guard.Guard { return g.src }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				g.world.src.latency, g.world.dst.latency = time.Second, time.Second
				var keys []string
				for i := range 40 {
					keys = append(keys, fmt.Sprint("k", i))
					g.world.src.put(keys[i], content(10))
				}
				test.spoil(g)
				failed := 0
				for _, key := range keys {
					if out := g.ask(t.Context(), key); out.Verb != queue.HandBack {
						failed++
					}
				}
				if failed > 7 || !closed(test.gate(g)) {
					t.Errorf("%d of %d failed, the gate is closed: %v", failed, len(keys), closed(test.gate(g)))
				}
				g.run(t)
				g.backlog(t, keys, 24*time.Hour) // an outcome but HandBack is an error
				g.world.dst.before, g.world.src.onGet = nil, nil
				if ends := g.backlog(t, keys, time.Hour); len(ends) != len(keys) {
					t.Errorf("%d of %d have an end", len(ends), len(keys))
				}
			})
		})
	}
}

func TestEachCopyHasAnIDOfItsOwn(t *testing.T) {
	w := newWorld(t, options{})
	ids := map[string]bool{}
	for _, key := range strings.Split("abcdefgh", "") {
		w.src.put(key, content(10))
		w.ask(t.Context(), key)
		ids[w.dst.get(key).p.CopyID] = true
	}
	if len(ids) != 8 {
		t.Errorf("%d ids for 8 copies", len(ids))
	}
}

func TestMetadataThatDoesNotFitIsUnfit(t *testing.T) {
	for op, size := range map[string]int{"Put": 10, "Begin": 3 * part} {
		w := newWorld(t, options{})
		w.src.put("k", content(size))
		w.dst.before = func(o string, _ int) error {
			if o == op {
				return destFails(object.Unfit)
			}
			return nil
		}
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndUnfit)
		w.wantsNothing(t)
	}
}
