package guard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

func TestJoinIsOpenWhenAllAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, destination := &dependency{}, &dependency{}
		wide := testConfig()
		wide.Limit = 100
		a := start(t, testConfig(), source.probe)
		b := start(t, wide, destination.probe)
		j := Join(Join(a, b), Slots(150))

		want := func(want int) <-chan struct{} {
			t.Helper()
			n, changed := j.Admit()
			if n != want {
				t.Fatalf("admits %d, want %d", n, want)
			}
			return changed
		}
		changed := want(128)
		for _, d := range []struct {
			dependency *dependency
			guard      *Guard
		}{{source, a}, {destination, b}} {
			d.dependency.set(failure(object.Unavailable, "http 503"))
			_ = d.guard.Do(t.Context(), "GetObject", 0, d.dependency.call)
			<-changed
			changed = want(0)
			d.dependency.set(nil)
			<-changed
			changed = want(1) // slow start
			for range 127 {
				if err := d.guard.Do(t.Context(), "GetObject", 0, d.dependency.call); err != nil {
					t.Fatal(err)
				}
			}
			<-changed
			changed = want(128)
		}
		select {
		case <-changed:
			t.Error("changed without a change")
		case <-time.After(time.Hour):
		}
		if n, _ := Join(a, Slots(7)).Admit(); n != 7 {
			t.Errorf("admits %d, want the narrowest, 7", n)
		}
	})
}
