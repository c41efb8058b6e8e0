package copier

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/queue"
)

// backlog works a queue off as its consumer does: no more at once than the gates
// admit, and what is handed back goes to the end. It returns each key's end.
func (g *guarded) backlog(t *testing.T, keys []string, atMost time.Duration) map[string]string {
	t.Helper()
	ends := map[string]string{}
	gate := guard.Join(g.src, g.dst)
	for began := time.Now(); len(keys) > 0 && time.Since(began) < atMost; {
		n, changed := gate.Admit()
		if n == 0 {
			select {
			case <-changed:
			case <-time.After(atMost):
			}
			continue
		}
		outs := make([]queue.Outcome, min(n, len(keys)))
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() { outs[i] = g.ask(t.Context(), keys[i]) })
		}
		wg.Wait()
		for i, out := range outs {
			switch key := keys[i]; out.Verb {
			case queue.Settle:
				ends[key] = out.End
			case queue.HandBack:
				keys = append(keys, key)
			default:
				t.Errorf("%s: outcome %+v", key, out)
			}
		}
		keys = keys[len(outs):]
	}
	return ends
}

// privateBucket is a source that refuses missing keys as well, to a process that
// knows no key yet.
func privateBucket(t *testing.T, keys ...string) *guarded {
	g := newGuarded(t, nil)
	for _, key := range keys {
		g.world.src.put(key, content(10))
	}
	g.run(t)
	return g
}

func TestStrangerCannotHoldUpASourceThatNoKeyIsKnownOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := privateBucket(t, "private", "public")
		g.read.set(false, ".objectferry-probe", "private")
		ends := g.backlog(t, []string{"private", "public"}, time.Hour)
		if diff := cmp.Diff(map[string]string{"private": "denied", "public": "copied"}, ends); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if closed(g.src) {
			t.Error("the gate is closed")
		}
	})
}

func TestRevokedReadSettlesNothingThoughNoKeyIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprint("k", i))
		}
		g := privateBucket(t, keys...)
		g.read.set(true)
		if ends := g.backlog(t, keys, 24*time.Hour); len(ends) != 0 {
			t.Errorf("ends while everything is refused: %v", ends)
		}
		if n := len(g.world.src.gets); n > 24*60/3 {
			t.Errorf("%d trials in a day", n)
		}
		g.read.set(false)
		ends := g.backlog(t, keys, time.Hour)
		for _, key := range keys {
			if ends[key] != "copied" {
				t.Errorf("%s ended %q", key, ends[key])
			}
		}
	})
}

func TestRevokedWriteSettlesNothingThoughNoKeyIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := []string{"k1", "k2", "k3", "k4"}
		g := privateBucket(t, keys...)
		g.write.set(true)
		if ends := g.backlog(t, keys, 24*time.Hour); len(ends) != 0 {
			t.Errorf("ends while everything is refused: %v", ends)
		}
		g.write.set(false)
		if ends := g.backlog(t, keys, time.Hour); len(ends) != len(keys) {
			t.Errorf("ends %v", ends)
		}
	})
}
