package copier

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// watchMemory returns the most that was reserved at once.
func watchMemory(w *world) *atomic.Int64 {
	var most atomic.Int64
	w.memory.report = func(n int64) {
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
	}
	return &most
}

func TestManyLargeCopiesInTwoPartsOfMemoryAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a deadlock fails the test
		w := newWorld(t, options{memory: 2 * part})
		w.src.latency, w.src.transfer, w.dst.latency = time.Second, time.Second, time.Second
		w.srcGuard.limit = make(chan struct{}, 3)
		most := watchMemory(w)
		var wg sync.WaitGroup
		for i := range 30 {
			key := fmt.Sprint("k", i)
			w.src.put(key, content(i%8*part+i))
			wg.Go(func() { wantsEnd(t, w.ask(t.Context(), key), object.EndCopied) })
		}
		wg.Wait()
		for i := range 30 {
			w.wantsCopy(t, fmt.Sprint("k", i))
		}
		w.wantsTidy(t)
		if m := most.Load(); m > 2*part {
			t.Errorf("%d bytes were held, %d are the budget", m, 2*part)
		}
	})
}

func TestSmallObjectsFillTheSlotsOfASmallBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{memory: 2 << 20, part: 1 << 20})
		w.src.latency, w.src.transfer = time.Second, time.Second
		most := watchMemory(w)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 128 {
			key := fmt.Sprint("k", i)
			w.src.put(key, content(5000))
			wg.Go(func() { wantsEnd(t, w.ask(t.Context(), key), object.EndCopied) })
		}
		wg.Wait()
		if w.srcGuard.max != 128 || time.Since(began) != 2*time.Second {
			t.Errorf("%d reads at once, took %v", w.srcGuard.max, time.Since(began))
		}
		if len(w.src.gets) != 128 {
			t.Errorf("%d reads of 128 objects", len(w.src.gets))
		}
		if m := most.Load(); m > 2<<20 {
			t.Errorf("%d bytes were held", m)
		}
	})
}

func TestNobodyWaitsForMemoryWithASlotOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{memory: 2 * part})
		w.srcGuard.limit = make(chan struct{}, 1)
		w.dst.latency = time.Minute // writes hold all memory
		var wg sync.WaitGroup
		for i := range 4 {
			key := fmt.Sprint("k", i)
			w.src.put(key, content(part))
			wg.Go(func() { wantsEnd(t, w.ask(t.Context(), key), object.EndCopied) })
		}
		time.Sleep(90 * time.Second) // all have looked; two write, two have no memory
		synctest.Wait()
		if held := w.memory.held.Load(); held != 2*part {
			t.Errorf("%d bytes held, the test expects %d", held, 2*part)
		}
		w.srcGuard.mu.Lock()
		if w.srcGuard.busy != 0 {
			t.Errorf("%d slots are held by those who wait", w.srcGuard.busy)
		}
		w.srcGuard.mu.Unlock()
		w.src.mu.Lock()
		if w.src.bodies != 2 {
			t.Errorf("%d bodies are read", w.src.bodies)
		}
		w.src.mu.Unlock()
		wg.Wait()
	})
}

func TestTypicalLengthIsReservedBeforeAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{memory: 4 * part})
		w.src.latency, w.dst.latency = time.Second, time.Second
		for round := range 20 {
			var wg sync.WaitGroup
			for i := range 16 {
				key := fmt.Sprintf("k%d-%d", round, i)
				w.src.put(key, content(part))
				wg.Go(func() { wantsEnd(t, w.ask(t.Context(), key), object.EndCopied) })
			}
			wg.Wait()
		}
		if n, most := len(w.src.gets), 320+64; n > most {
			t.Errorf("%d reads of 320 objects: memory is only asked for after the answer", n)
		}
	})
}

func TestWaitForMemoryEndsWithItsContext(t *testing.T) {
	w := newWorld(t, options{memory: 2 * part})
	b, err := w.memory.wait(t.Context(), 2*part)
	if err != nil {
		t.Fatal(err)
	}
	w.src.put("k", content(part))
	ctx, cancel := contextFor(t, 20*time.Millisecond)
	defer cancel()
	wants(t, w.ask(ctx, "k"), queue.HandBack, "", "")
	b.free()
	w.wantsNothing(t)
}

func TestBufferOfAFailedWriteIsNotWrittenInto(t *testing.T) {
	for op, size := range map[string]int{"Put": part, "Part": 3 * part} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.put("failing", content(size))
			w.dst.before = func(o string, _ int) error {
				if o == op {
					return destFails(object.Unavailable)
				}
				return nil
			}
			w.ask(t.Context(), "failing")
			w.dst.before = nil
			var want [][]byte
			handed := w.dst.bodies
			for _, b := range handed {
				want = append(want, bytes.Clone(b))
			}
			for i := range 20 {
				key := fmt.Sprint("k", i)
				w.src.put(key, bytes.Repeat([]byte{0xee}, size))
				wantsEnd(t, w.ask(t.Context(), key), object.EndCopied)
			}
			for i, b := range handed {
				if !bytes.Equal(b, want[i]) {
					t.Errorf("%s: the body of a failed write was written into", op)
				}
			}
		})
	}
}

func TestResizedBlockReservesWhatItHas(t *testing.T) {
	w := newWorld(t, options{memory: 64 << 10, part: 16 << 10})
	b, err := w.memory.wait(t.Context(), 12<<10)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{8 << 10, 16 << 10, 0, 4 << 10} {
		b.bytes()
		if !b.resize(n) || int64(len(b.bytes())) != n || w.memory.held.Load() != n {
			t.Errorf("resized to %d: %d bytes, %d reserved", n, len(b.bytes()), w.memory.held.Load())
		}
		rest := 64<<10 - n
		if !w.memory.budget.TryAcquire(rest) {
			t.Fatalf("resized to %d: the rest is not free", n)
		}
		if b.resize(n + 4<<10) {
			t.Errorf("grew beyond the budget")
		}
		w.memory.budget.Release(rest)
	}
	b.free()
	b.free()
	w.wantsTidy(t)
}

func TestReservationIsLittleMoreThanTheLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const part = 16 << 20
		m := newMemory(1<<30, part, nil)
		n := rapid.Int64Range(0, 2*part).Draw(t, "n")
		r := m.round(n)
		switch {
		case r < n:
			t.Fatalf("%d bytes reserve %d", n, r)
		case n >= part && r != n:
			t.Fatalf("a part of %d reserves %d", n, r)
		case r > n+max(n/8, smallest):
			t.Fatalf("%d bytes reserve %d", n, r)
		case m.round(r) != r:
			t.Fatalf("%d is rounded to %d, and that to %d", n, r, m.round(r))
		}
	})
}
