package copier

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

func TestWrongBytesAreNeverVisible(t *testing.T) {
	flip := func(r *object.Read) {
		b, _ := io.ReadAll(r.Body)
		b[len(b)/2] ^= 1
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	cut := func(r *object.Read) {
		r.Body = io.NopCloser(io.LimitReader(r.Body, r.Range.Length/2))
	}
	cutWithError := func(r *object.Read) {
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.Range.Length/2), failing{sourceFails(object.Unavailable)}))
	}
	longer := func(r *object.Read) {
		r.Body = io.NopCloser(io.MultiReader(r.Body, strings.NewReader("x")))
	}
	elsewhere := func(r *object.Read) { r.Range.Offset++ }
	shorter := func(r *object.Read) { r.Range.Length-- }
	listing := func(r *object.Read) {
		b := bytes.Repeat([]byte("<"), int(r.Range.Length))
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	lies := map[string]struct {
		lie  func(*object.Read)
		want object.Detail
	}{
		"flipped byte": {flip, object.DetailCorrupt}, "cut": {cut, object.DetailUnavailable},
		"cut with an error": {cutWithError, object.DetailUnavailable}, "longer": {longer, object.DetailCorrupt},
		"wrong offset": {elsewhere, object.DetailCorrupt}, "wrong length": {shorter, object.DetailCorrupt},
		"another body": {listing, object.DetailCorrupt},
	}
	places := map[string]struct {
		size   int
		offset int64
	}{
		"small": {100, 0}, "first part": {5 * part, 0}, "middle part": {5 * part, 2 * part}, "last part": {4*part + 50, 4 * part},
	}
	for what, l := range lies {
		for where, p := range places {
			t.Run(what+" in "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, options{})
					w.src.put("k", content(p.size))
					w.src.onGet = func(_ int, g get, r *object.Read) error {
						if g.r.Offset == p.offset {
							l.lie(r)
						}
						return nil
					}
					wants(t, w.ask(t.Context(), "k"), queue.Retry, "", l.want)
					w.wantsNothing(t)

					w.src.onGet = nil // it tells the truth again
					wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
					w.wantsCopy(t, "k")
				})
			})
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestObjectThatChangesIsStartedOverOnce(t *testing.T) {
	for _, at := range []int64{1, 4} { // the part before which it is replaced
		w := newWorld(t, options{})
		w.src.put("k", content(5*part))
		replaced := false
		w.src.onGet = func(_ int, g get, _ *object.Read) error {
			if g.r.Offset == at*part && !replaced {
				replaced = true
				w.src.put("k", bytes.Repeat([]byte("new"), 2*part))
				return sourceFails(object.Changed)
			}
			return nil
		}
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		w.wantsCopy(t, "k")
		w.wantsTidy(t)
		if o := w.dst.get("k"); o != nil && o.a.ETag != w.src.objects["k"].a.ETag {
			t.Error("attributes of the old version")
		}
	}
}

func TestNeverAMixtureOfTwoVersions(t *testing.T) {
	// A source that ignores the pin and serves another version half way through.
	w := newWorld(t, options{})
	w.src.put("k", content(5*part)).a.HasCRC64 = false
	other := bytes.Repeat([]byte("y"), 5*part)
	w.src.onGet = func(_ int, g get, r *object.Read) error {
		if g.r.Offset >= 2*part {
			r.ETag = `"other"`
			r.Body = io.NopCloser(bytes.NewReader(other[g.r.Offset:][:r.Range.Length]))
		}
		return nil
	}
	wants(t, w.ask(t.Context(), "k"), queue.Retry, "", object.DetailChanged)
	w.wantsNothing(t)
}

func TestObjectThatKeepsChangingIsRetriedLater(t *testing.T) {
	w := newWorld(t, options{})
	w.src.put("k", content(5*part))
	w.src.onGet = func(_ int, g get, _ *object.Read) error {
		if g.r.Offset > 0 {
			return sourceFails(object.Changed)
		}
		return nil
	}
	wants(t, w.ask(t.Context(), "k"), queue.Retry, "", object.DetailChanged)
	if n := w.src.countGets(func(g get) bool { return g.r.Offset == 0 }); n != 2 {
		t.Errorf("started %d times, want 2", n)
	}
	w.wantsNothing(t)
}

func TestPartsArePinnedAndTheFirstReadIsNot(t *testing.T) {
	w := newWorld(t, options{})
	etag := w.src.put("k", content(5*part)).a.ETag
	w.ask(t.Context(), "k")
	for _, g := range w.src.gets {
		if want := map[bool]string{true: "", false: etag}[g.r.Offset == 0]; g.pin != want {
			t.Errorf("read of %+v pinned to %q, want %q", g.r, g.pin, want)
		}
	}
}

func TestWithoutETagOnlyOnePartIsCopied(t *testing.T) {
	w := newWorld(t, options{})
	w.src.put("small", content(part)).a.ETag = ""
	w.src.put("large", content(part+1)).a.ETag = ""
	wantsEnd(t, w.ask(t.Context(), "small"), object.EndCopied)
	wants(t, w.ask(t.Context(), "large"), queue.Retry, "", object.DetailCorrupt)
}

func TestPanicOfAnAdapterCostsOneDelivery(t *testing.T) {
	const secret = "a secret"
	for name, test := range map[string]struct {
		size int
		get  func(get) bool // the read that panics
		op   string         // the write that panics
	}{
		"the only read":   {size: 10, get: func(get) bool { return true }},
		"the first read":  {size: 5 * part, get: func(g get) bool { return g.r.Offset == 0 }},
		"a later read":    {size: 5 * part, get: func(g get) bool { return g.r.Offset == 3*part }},
		"a part's write":  {size: 5 * part, op: "Part"},
		"several of them": {size: 5 * part, get: func(g get) bool { return g.r.Offset > 0 }, op: "Part"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				var log bytes.Buffer
				g.tel.Log = zerolog.New(zerolog.SyncWriter(&log))
				g.world.src.put("k", content(test.size))
				var panics atomic.Int64
				g.world.src.onGet = func(_ int, got get, _ *object.Read) error {
					if test.get != nil && test.get(got) {
						panics.Add(1)
						panic(secret)
					}
					return nil
				}
				g.world.dst.before = func(op string, _ int) error {
					if op == test.op {
						panics.Add(1)
						panic(secret)
					}
					return nil
				}
				out := g.ask(t.Context(), "k")
				wants(t, out, queue.Retry, "", object.DetailUnknown)
				if all := out.Note + log.String(); strings.Contains(all, secret) || !strings.Contains(out.Note, "string") {
					t.Errorf("note %q, log %s", out.Note, log.String())
				}
				if n := int64(strings.Count(log.String(), `"stack":`)); n != panics.Load() || n == 0 {
					t.Errorf("%d stacks in the log, want one for each of %d panics", n, panics.Load())
				}
				g.wantsNothing(t)
				if closed(g.src) || closed(g.dst) {
					t.Error("a gate is closed")
				}
				g.world.src.onGet, g.world.dst.before = nil, nil
				wantsEnd(t, g.ask(t.Context(), "k"), object.EndCopied)
			})
		})
	}
}
