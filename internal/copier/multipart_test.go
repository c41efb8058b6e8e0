package copier

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func TestPartsGrowSoThat10000Suffice(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct{ size, part, want int64 }{
		{61_150_874_773, 5 * mib, 6 * mib},
		{5 * mib * maxParts, 5 * mib, 5 * mib},
		{5*mib*maxParts + 1, 5 * mib, 6 * mib},
		{20 << 30, 16 * mib, 16 * mib},
		{50 << 40, 16 * mib, 5244 * mib},
		{16*mib + 1, 16 * mib, 16 * mib},
	} {
		ranges := split(test.size, test.part)
		if len(ranges) > maxParts {
			t.Errorf("%d bytes in %d parts", test.size, len(ranges))
		}
		if ranges[0] != (object.Range{Length: test.part}) {
			t.Errorf("first part %+v: it is read before the size is known", ranges[0])
		}
		if got := partLength(test.size, test.part); got != test.want {
			t.Errorf("%d bytes: parts of %d, want %d", test.size, got, test.want)
		}
		var at int64
		for i, r := range ranges {
			if r.Offset != at || r.Length < 1 || i > 0 && i < len(ranges)-1 && r.Length != test.want {
				t.Fatalf("part %d is %+v, want one from %d", i, r, at)
			}
			at += r.Length
		}
		if at != test.size {
			t.Errorf("parts of %d bytes end at %d", test.size, at)
		}
	}
}

func TestObjectOfGrownPartsIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{memory: 2 << 20, maxSize: 12 << 20})
		most := watchMemory(w)
		w.src.latency, w.dst.latency = time.Second, time.Second
		w.src.put("k", content(part*maxParts+5))
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		w.wantsCopy(t, "k")
		w.wantsTidy(t)
		if most.Load() > 2<<20 {
			t.Errorf("%d bytes were held", most.Load())
		}
	})
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	ok := DefaultConfig()
	if err := ok.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"less memory than two parts":        {func(c *Config) { c.Memory = 2*c.PartSize - 1 }, "two parts"},
		"no part size":                      {func(c *Config) { c.PartSize = 0 }, "part size"},
		"parts larger than S3 takes":        {func(c *Config) { c.PartSize, c.Memory = 5<<30+1, 1<<40 }, "part size"},
		"no max size":                       {func(c *Config) { c.MaxSize = 0 }, "max size"},
		"max size with parts beyond memory": {func(c *Config) { c.MaxSize = 50 << 40 }, "more than memory"},
	} {
		c := ok
		test.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneFailedPartIsTriedAgainAlone(t *testing.T) {
	const bad, parts = 148, 200
	offset := int64(bad-1) * part
	cut := func(r *object.Read) { r.Body = io.NopCloser(io.LimitReader(r.Body, 1)) }
	for name, test := range map[string]struct {
		read  func(tries int, r *object.Read) error
		write func(n int) bool
		reads int
	}{
		"its read times out twice": {read: func(tries int, _ *object.Read) error {
			if tries <= 2 {
				return sourceFails(object.Unavailable)
			}
			return nil
		}, reads: 3},
		"its body is cut twice": {read: func(tries int, r *object.Read) error {
			if tries <= 2 {
				cut(r)
			}
			return nil
		}, reads: 3},
		"its write is unclear twice": {write: func(n int) bool { return n == 50 || n == 51 }, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.src.put("k", content(parts*part))
				tries := 0
				w.src.onGet = func(_ int, g get, r *object.Read) error {
					if g.r.Offset != offset || test.read == nil {
						return nil
					}
					tries++
					return test.read(tries, r)
				}
				w.dst.before = func(op string, n int) error {
					if op == "Part" && test.write != nil && test.write(n) {
						return destFails(object.Ambiguous)
					}
					return nil
				}
				wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
				w.wantsCopy(t, "k")
				if n := len(w.src.gets); n != parts-1+test.reads {
					t.Errorf("%d reads for %d parts", n, parts)
				}
				want := parts
				if test.write != nil {
					want += 2
				}
				if n := w.dst.calls["Part"]; n != want {
					t.Errorf("%d part writes, want %d", n, want)
				}
			})
		})
	}
}

func TestFirstPartIsTriedAgainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.src.put("k", content(5*part))
		w.src.onGet = func(n int, g get, r *object.Read) error {
			if n == 1 {
				r.Body = io.NopCloser(io.LimitReader(r.Body, 1))
			}
			return nil
		}
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		w.wantsCopy(t, "k")
		firsts := w.src.countGets(func(g get) bool { return g.r.Offset == 0 })
		if pinned := w.src.countGets(func(g get) bool { return g.r.Offset == 0 && g.pin != "" }); firsts != 2 || pinned != 1 {
			t.Errorf("first part read %d times, %d of them pinned", firsts, pinned)
		}
	})
}

func TestFirstReadThatTheGuardRepeatsIsPinnedOnceTheSizeIsKnown(t *testing.T) {
	for name, replaced := range map[string]bool{"same version": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, nil)
				etag := g.world.src.put("k", content(5*part)).a.ETag
				g.world.src.onGet = func(n int, _ get, r *object.Read) error {
					if n > 1 || r == nil {
						return nil
					}
					r.Body = io.NopCloser(io.LimitReader(r.Body, 1))
					if replaced {
						g.world.src.put("k", content(4*part+1))
					}
					return nil
				}
				wantsEnd(t, g.ask(t.Context(), "k"), object.EndCopied)
				g.wantsCopy(t, "k")
				g.wantsTidy(t)
				pinned := g.world.src.countGets(func(got get) bool { return got.r.Offset == 0 && got.pin == etag })
				if !replaced && pinned != 1 {
					t.Errorf("%d pinned reads of the first part", pinned)
				}
			})
		})
	}
}

func TestPartThatKeepsFailingFailsTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.src.put("k", content(50*part))
		w.src.onGet = func(_ int, g get, _ *object.Read) error {
			if g.r.Offset == 20*part {
				return sourceFails(object.Unavailable)
			}
			return nil
		}
		wants(t, w.ask(t.Context(), "k"), queue.Retry, "", object.DetailUnavailable)
		w.wantsNothing(t)
		if w.dst.aborts != 1 {
			t.Errorf("%d aborts", w.dst.aborts)
		}
	})
}

func TestOtherPartsDoNotWaitForTheFirstBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.src.latency, w.src.transfer = time.Second, 10*time.Second
		w.src.put("k", content(partsAtOnce*part))
		began := time.Now()
		wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
		if took := time.Since(began); took != 12*time.Second {
			t.Errorf("took %v, want two answers and one body: 12s", took)
		}
	})
}

// stuck is a body of which nothing comes for a long time.
type stuck struct{ *fakeBody }

func (b stuck) Read([]byte) (int, error) {
	return 0, errors.Join(sleep(b.ctx, time.Hour), sourceFails(object.Unavailable))
}

func TestFailedCopyDoesNotWaitForItsFirstPart(t *testing.T) {
	for name, test := range map[string]struct {
		lasts  time.Duration // the delivery
		read   error         // of another part
		write  error
		verb   queue.Verb
		detail object.Detail
	}{
		"another part cannot be read":    {lasts: time.Hour, read: sourceFails(object.Unknown), verb: queue.Retry, detail: object.DetailUnknown},
		"another part cannot be written": {lasts: time.Hour, write: destFails(object.Unknown), verb: queue.Retry, detail: object.DetailUnknown},
		"the delivery ends":              {lasts: time.Second, verb: queue.HandBack},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.src.put("k", content(5*part))
				w.src.onGet = func(_ int, g get, r *object.Read) error {
					if g.r.Offset == 0 {
						r.Body = stuck{r.Body.(*fakeBody)}
						return nil
					}
					return test.read
				}
				w.dst.before = func(op string, _ int) error {
					if op == "Part" {
						return test.write
					}
					return nil
				}
				ctx, cancel := contextFor(t, test.lasts)
				defer cancel()
				began := time.Now()
				wants(t, w.ask(ctx, "k"), test.verb, "", test.detail)
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				w.wantsNothing(t)
			})
		})
	}
}

func TestPartsOfOneCopyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			limit, want int
			memory      int64
		}{{1000, partsAtOnce, 64 * part}, {4, 4, 64 * part}, {1000, 3, 3 * part}} {
			w := newWorld(t, options{memory: test.memory})
			w.srcGuard.limit = make(chan struct{}, test.limit)
			w.src.latency = time.Second
			w.src.put("k", content(100*part))
			wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
			if w.srcGuard.max != test.want {
				t.Errorf("%d reads at once, want %d", w.srcGuard.max, test.want)
			}
		}
	})
}

func TestUploadIsAbortedOnEveryOtherWayOut(t *testing.T) {
	failing := func(op string, class object.Class) func(*world) {
		return func(w *world) {
			w.dst.before = func(o string, _ int) error {
				if o == op {
					return destFails(class)
				}
				return nil
			}
		}
	}
	for name, spoil := range map[string]func(*world){
		"a part cannot be written": failing("Part", object.Unavailable),
		"a part is refused":        failing("Part", object.Denied),
		"completion fails":         failing("Complete", object.Unavailable),
		"completion is refused":    failing("Complete", object.Denied),
		"completion stays unclear": failing("Complete", object.Ambiguous),
		"somebody else came first": failing("Complete", object.Exists),
		"a part cannot be read":    func(w *world) { w.src.onGet = failAt(3*part, object.Unavailable) },
		"the object changed":       func(w *world) { w.src.onGet = failAt(3*part, object.Changed) },
		"the sum is another":       func(w *world) { w.src.objects["k"].a.CRC64++ },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.src.put("k", content(5*part))
				spoil(w)
				if got := w.ask(t.Context(), "k"); got.End == string(object.EndCopied) {
					t.Errorf("outcome %+v", got)
				}
				w.wantsNothing(t)
				if w.dst.aborts != w.dst.calls["Begin"] || w.dst.aborts == 0 {
					t.Errorf("%d aborts of %d uploads", w.dst.aborts, w.dst.calls["Begin"])
				}
			})
		})
	}
}

func failAt(offset int64, class object.Class) func(int, get, *object.Read) error {
	return func(_ int, g get, _ *object.Read) error {
		if g.r.Offset == offset {
			return sourceFails(class)
		}
		return nil
	}
}

func TestAbortThatHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.src.put("k", content(5*part))
		w.src.objects["k"].a.CRC64++
		w.dst.before = func(op string, _ int) error {
			if op == "Complete" {
				t.Error("completed with a wrong sum")
			}
			return nil
		}
		w.dst.hangs = "Abort"
		began := time.Now()
		wants(t, w.ask(t.Context(), "k"), queue.Retry, "", object.DetailCorrupt)
		if took := time.Since(began); took != abortTimeout {
			t.Errorf("took %v", took)
		}
	})
}
