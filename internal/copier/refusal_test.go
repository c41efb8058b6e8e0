package copier

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// access says which keys a store lets us at; it answers reads and references alike.
type access struct {
	mu      sync.Mutex
	revoked bool
	private map[string]bool
}

func (a *access) answer(side object.Side, key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revoked || a.private[key] {
		return &object.Error{Side: side, Op: "GetObject", Class: object.Denied, Code: "AccessDenied"}
	}
	return nil
}

func (a *access) set(revoked bool, private ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked, a.private = revoked, map[string]bool{}
	for _, key := range private {
		a.private[key] = true
	}
}

// guarded is a world with real guards, and what its source and its destination
// refuse.
type guarded struct {
	*world
	read, write access
	src, dst    *guard.Guard
	probeWrites func(context.Context) error // the destination's probe; nil finds it alive
}

func newGuarded(t *testing.T, change func(*config.Route)) *guarded {
	g := &guarded{}
	alive := func(context.Context) error { return nil }
	g.world = newWorld(t, options{route: change, guards: func(w *world) (src, dst Guard) {
		var err error
		cfg := guard.DefaultConfig()
		cfg.Name, cfg.Side = "source", object.Source
		if g.src, err = guard.New(cfg, alive, w.tel); err != nil {
			t.Fatal(err)
		}
		cfg.Name, cfg.Side = "destination", object.Destination
		if g.dst, err = guard.New(cfg, g.probeDestination, w.tel); err != nil {
			t.Fatal(err)
		}
		return g.src, g.dst
	}})
	g.world.src.onGet = func(_ int, got get, _ *object.Read) error { return g.read.answer(object.Source, got.key) }
	g.world.src.onReference = func(key string) error { return g.read.answer(object.Source, key) }
	g.world.dst.before = func(op string, _ int) error {
		switch op {
		case "Put", "Begin", "Part", "Complete", "WriteReference":
			return g.write.answer(object.Destination, "")
		}
		return nil
	}
	return g
}

func (g *guarded) probeDestination(ctx context.Context) error {
	if g.probeWrites == nil {
		return nil
	}
	return g.probeWrites(ctx)
}

// run probes closed gates until the test ends.
func (g *guarded) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.src.Run(ctx) })
	wg.Go(func() { _ = g.dst.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// reopens waits until a gate admits work.
func reopens(t *testing.T, g *guard.Guard) {
	t.Helper()
	late := time.After(time.Hour)
	for closed(g) {
		_, changed := g.Admit()
		select {
		case <-changed:
		case <-late:
			t.Fatal("the gate stays closed")
		}
	}
}

func closed(g *guard.Guard) bool {
	n, _ := g.Admit()
	return n == 0
}

// TestPermissionThatComesBackBeforeTheReferenceSettlesNothing: the reference
// passes although the refusal was that of the whole source.
func TestPermissionThatComesBackBeforeTheReferenceSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		g.world.src.put("k", content(10))
		g.read.set(true)
		g.world.src.onReference = func(key string) error {
			g.read.set(false)
			return g.read.answer(object.Source, key)
		}
		wantsEnd(t, g.ask(t.Context(), "k"), object.EndCopied)
	})
}

func TestPrivateObjectEndsDeniedAlone(t *testing.T) {
	for name, test := range map[string]struct {
		before string // a key that is copied before
		named  string // in the configuration
		want   []string
	}{
		"by the key that was last let through":      {before: "public", want: []string{"public"}},
		"by the key that the configuration names":   {named: "always", want: []string{"always"}},
		"by a key that need not exist, if no other": {want: []string{"a/.objectferry-probe"}},
		"last let through, before the named":        {before: "public", named: "always", want: []string{"public"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, func(r *config.Route) {
					r.Include = []string{"a/**", "public", "private"}
					r.Source.Reference = test.named
				})
				g.read.set(false, "private")
				g.world.src.put("private", content(10))
				if test.before != "" {
					g.world.src.put(test.before, content(10))
					wantsEnd(t, g.ask(t.Context(), test.before), object.EndCopied)
				}
				wantsEnd(t, g.ask(t.Context(), "private"), object.EndDenied)
				if diff := cmp.Diff(append(test.want, test.want...), g.world.src.refs); diff != "" { // twice, see answer
					t.Errorf("references (-want +got):\n%s", diff)
				}
				if closed(g.src) || g.world.dst.get("private") != nil {
					t.Error("the gate is closed, or the object visible")
				}
			})
		})
	}
}

func TestRevokedReadSettlesNothingAndHealsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		for i := range 20 {
			g.world.src.put(fmt.Sprint("k", i), content(10+i%3*part))
		}
		wantsEnd(t, g.ask(t.Context(), "k0"), object.EndCopied)
		g.read.set(true)
		for i := 1; i < 20; i++ {
			wants(t, g.ask(t.Context(), fmt.Sprint("k", i)), queue.HandBack, "", "")
		}
		if !closed(g.src) {
			t.Error("the gate is open")
		}
		g.run(t)
		g.read.set(false)
		reopens(t, g.src)
		for i := 1; i < 20; i++ {
			wantsEnd(t, g.ask(t.Context(), fmt.Sprint("k", i)), object.EndCopied)
		}
	})
}

func TestStrangersPrivateKeysHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		var private []string
		for i := range 50 {
			g.world.src.put(fmt.Sprint("public", i), content(10))
			private = append(private, fmt.Sprint("private", i))
			g.world.src.put(private[i], content(10))
		}
		g.read.set(false, private...)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { wantsEnd(t, g.ask(t.Context(), fmt.Sprint("public", i)), object.EndCopied) })
			wg.Go(func() { wantsEnd(t, g.ask(t.Context(), private[i]), object.EndDenied) })
		}
		wg.Wait()
		if closed(g.src) {
			t.Error("the gate is closed")
		}
	})
}

func TestLastKeyMadePrivateDoesNotHoldUpTheSourceForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		for _, key := range []string{"last", "private", "public"} {
			g.world.src.put(key, content(10))
		}
		wantsEnd(t, g.ask(t.Context(), "last"), object.EndCopied)
		g.read.set(false, "last", "private")
		// Nothing tells this from a revoked permission, so it goes back.
		wants(t, g.ask(t.Context(), "private"), queue.HandBack, "", "")
		g.run(t)
		reopens(t, g.src)
		wantsEnd(t, g.ask(t.Context(), "public"), object.EndCopied)
		wantsEnd(t, g.ask(t.Context(), "private"), object.EndDenied)
	})
}

func TestMissingKeySaysNothingWhileARealOneIsRefused(t *testing.T) {
	// A source that answers 404 for a missing key and refuses all that exist.
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		for _, key := range []string{"k1", "k2"} {
			g.world.src.put(key, content(10))
		}
		wantsEnd(t, g.ask(t.Context(), "k1"), object.EndCopied)
		g.read.set(false, "k1", "k2")
		wants(t, g.ask(t.Context(), "k2"), queue.HandBack, "", "")
	})
}

func TestRefusedWriteOfOneObjectEndsDenied(t *testing.T) {
	for op, size := range map[string]int{"Put": 10, "Begin": 3 * part, "Part": 3 * part, "Complete": 3 * part} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				g.world.src.put("k", content(size))
				g.world.dst.before = func(o string, _ int) error {
					if o == op {
						return g.write.answer(object.Destination, "k")
					}
					return nil
				}
				g.write.set(false, "k")
				wantsEnd(t, g.ask(t.Context(), "k"), object.EndDenied)
				g.wantsNothing(t)
				if diff := cmp.Diff([]string{".objectferry-probe", ".objectferry-probe"}, g.world.dst.refs); diff != "" {
					t.Errorf("references (-want +got):\n%s", diff)
				}
				if closed(g.dst) {
					t.Error("the gate is closed")
				}
			})
		})
	}
}

func TestRevokedWriteSettlesNothingAndHealsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		for i := range 10 {
			g.world.src.put(fmt.Sprint("k", i), content(10+i%3*part))
		}
		wantsEnd(t, g.ask(t.Context(), "k0"), object.EndCopied)
		g.write.set(true)
		for i := 1; i < 10; i++ {
			wants(t, g.ask(t.Context(), fmt.Sprint("k", i)), queue.HandBack, "", "")
		}
		if !closed(g.dst) {
			t.Error("the gate is open")
		}
		g.run(t)
		g.write.set(false)
		reopens(t, g.dst)
		for i := 1; i < 10; i++ {
			wantsEnd(t, g.ask(t.Context(), fmt.Sprint("k", i)), object.EndCopied)
		}
		for _, key := range g.world.dst.refs {
			if key != "k0" {
				t.Errorf("asked to write %q, not the key that was last written", key)
			}
		}
		g.wantsTidy(t)
	})
}

func TestDeniedHead(t *testing.T) {
	for name, test := range map[string]struct {
		listing bool // ListBucket is granted
		verb    queue.Verb
		end     string
	}{
		"with ListBucket this key alone is denied":     {true, queue.Settle, "denied"}, // were it there, Head would have found it listed
		"without it the destination refuses us wholly": {false, queue.HandBack, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				g.world.src.put("k", content(10))
				g.world.dst.before = func(op string, _ int) error {
					if op == "Head" || op == "ReadReference" && !test.listing {
						return &object.Error{Side: object.Destination, Op: "HeadObject", Class: object.Denied, Code: "AccessDenied"}
					}
					return nil
				}
				wants(t, g.ask(t.Context(), "k"), test.verb, test.end, "")
				if closed(g.dst) == test.listing {
					t.Errorf("the gate is closed: %v", closed(g.dst))
				}
				if len(g.world.src.gets) != 0 {
					t.Error("read the source")
				}
			})
		})
	}
}

func TestRefusalOfTheWholeSourceByItsCodeHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		g.world.src.onGet = func(int, get, *object.Read) error {
			return &object.Error{Side: object.Source, Op: "GetObject", Class: object.Refused, Code: "PathStyleDomainForbidden"}
		}
		wants(t, g.ask(t.Context(), "k"), queue.HandBack, "", "")
		if !closed(g.src) {
			t.Error("the gate is open")
		}
	})
}

func TestReferenceThatCannotBeAskedSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, nil)
		g.world.src.put("private", content(10))
		g.read.set(false, "private")
		g.world.src.onReference = func(string) error { return sourceFails(object.Unavailable) }
		if out := g.ask(t.Context(), "private"); out.Verb == queue.Settle {
			t.Errorf("outcome %+v", out)
		}
	})
}
