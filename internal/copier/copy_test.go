package copier

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

func TestBodyThatIsNoRequestIsBuried(t *testing.T) {
	w := newWorld(t, options{})
	for _, body := range []string{"", "hello", "null", `{"foo":1}`, strings.Repeat("x", 200<<10), `{"v":1,"bucket":"b"}`} {
		got := w.Handle(t.Context(), &queue.Delivery{Body: body})
		wants(t, got, queue.Bury, "poison", object.DetailUndecoded)
		if len([]rune(got.Note)) > 401 {
			t.Errorf("note of %d bytes", len(got.Note))
		}
	}
}

func TestUnroutedWaitsForASlowRolloutBeforeItFails(t *testing.T) {
	w := newWorld(t, options{})
	for name, body := range map[string]string{
		"newer version":  `{"v":2,"what":"ever"}`,
		"unknown bucket": `{"v":1,"bucket":"another","key":"a","seen":"2026-09-04T08:03:42Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			for receives, verb := range map[int]queue.Verb{1: queue.HandBack, 8: queue.HandBack, 11: queue.HandBack, 12: queue.Retry, 30: queue.Retry} {
				wants(t, w.Handle(t.Context(), &queue.Delivery{Body: body, Receives: receives}), verb, "", object.DetailUnrouted)
			}
		})
	}
}

func TestFilteredRequestsTouchNoStore(t *testing.T) {
	for name, test := range map[string]struct {
		route func(*config.Route)
		want  object.Detail
	}{
		"excluded": {func(r *config.Route) { r.Exclude = []string{"a/**"} }, ""},
		"observed": {func(r *config.Route) { r.Mode = config.ModeObserve }, object.DetailObserved},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{route: test.route})
			w.src.put("a/b", content(10))
			wants(t, w.ask(t.Context(), "a/b"), queue.Settle, "filtered", test.want)
			if len(w.src.gets)+len(w.dst.calls) != 0 {
				t.Errorf("asked the stores: %v, %v", w.src.gets, w.dst.calls)
			}
		})
	}
}

func TestObjectIsCopiedAsStored(t *testing.T) {
	for name, size := range map[string]int{"56 gzip bytes": 56, "a whole part": part, "several parts": 5*part + 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			src := w.src.put("m/a", content(size))
			src.a.ContentEncoding = "gzip"
			src.a.CacheControl = "max-age=60"
			src.a.Metadata = map[string]string{"owner": "münchen"}
			wantsEnd(t, w.ask(t.Context(), "m/a"), object.EndCopied)

			w.wantsCopy(t, "m/a")
			w.wantsTidy(t)
			got := w.dst.get("m/a")
			if diff := cmp.Diff(src.a, got.a); diff != "" {
				t.Errorf("attributes (-source +destination):\n%s", diff)
			}
			want := object.Provenance{CopyID: got.p.CopyID, ETag: src.a.ETag, CRC64: fmt.Sprint(src.a.CRC64), LastModified: "2026-09-04T08:03:42Z"}
			if diff := cmp.Diff(want, got.p); diff != "" || len(got.p.CopyID) < 20 {
				t.Errorf("provenance, id %q (-want +got):\n%s", got.p.CopyID, diff)
			}
		})
	}
}

func TestOnePartIsOnePutSoThatTheETagStays(t *testing.T) {
	w := newWorld(t, options{})
	w.src.put("k", content(part))
	w.ask(t.Context(), "k")
	if w.dst.calls["Put"] != 1 || w.dst.calls["Begin"] != 0 {
		t.Errorf("calls %v", w.dst.calls)
	}
}

func TestEmptyObjectIsCopied(t *testing.T) {
	w := newWorld(t, options{})
	w.src.put("k", nil)
	wantsEnd(t, w.ask(t.Context(), "k"), object.EndCopied)
	w.wantsCopy(t, "k")
	w.wantsTidy(t)
}

func TestKeysStayAsTheyAre(t *testing.T) {
	w := newWorld(t, options{})
	keys := []string{
		"2026/1//1d8c", "a//", "/img.jpg", "a+b", "a b", "100%.txt", "x[1]", "Artik & ASTI $1.wav", "测试.jpg",
		"line\nbreak", "not utf-8 \xff\xfe", "a/./b",
	}
	for _, key := range keys {
		w.src.put(key, content(len(key)))
	}
	for _, key := range keys {
		wantsEnd(t, w.ask(t.Context(), key), object.EndCopied)
		w.wantsCopy(t, key)
	}
	if len(w.dst.objects) != len(keys) {
		t.Errorf("%d objects for %d keys", len(w.dst.objects), len(keys))
	}
}

func TestWhatIsThereWins(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "multipart": 3 * part} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.put("k", content(size))
			theirs := bytes.Repeat([]byte("T"), size) // as large, but another
			w.dst.objects["k"] = &stored{body: theirs}
			wantsEnd(t, w.ask(t.Context(), "k"), object.EndPresent)
			if !bytes.Equal(w.dst.get("k").body, theirs) {
				t.Error("overwritten")
			}
			if len(w.src.gets) != 0 {
				t.Error("read the source for nothing")
			}
		})
	}
}

func TestDeletedOverseasStaysDeleted(t *testing.T) {
	w := newWorld(t, options{})
	w.src.put("k", content(10))
	w.dst.deleted["k"] = true
	wants(t, w.ask(t.Context(), "k"), queue.Settle, "filtered", object.DetailDeleted)
	w.wantsNothing(t)
}

func TestEndByTheSourcesAnswer(t *testing.T) {
	for class, end := range map[object.Class]object.End{
		object.Absent: object.EndAbsent, object.Archived: object.EndArchived, object.Unfit: object.EndUnfit,
	} {
		t.Run(string(class), func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.onGet = func(int, get, *object.Read) error { return sourceFails(class) }
			wantsEnd(t, w.ask(t.Context(), "k"), end)
			w.wantsNothing(t)
		})
	}
}

func TestOneArchivedAmongTen(t *testing.T) {
	w := newWorld(t, options{})
	w.src.onGet = func(_ int, g get, _ *object.Read) error {
		if g.key == "k4" {
			return sourceFails(object.Archived)
		}
		return nil
	}
	ends := map[string]int{}
	for i := range 10 {
		key := fmt.Sprint("k", i)
		w.src.put(key, content(10))
		ends[w.ask(t.Context(), key).End]++
	}
	if ends["copied"] != 9 || ends["archived"] != 1 {
		t.Errorf("ends %v", ends)
	}
}

func TestOnlyTheSourceSaysAbsentOrArchived(t *testing.T) {
	for _, class := range []object.Class{object.Absent, object.Archived} {
		w := newWorld(t, options{})
		w.src.put("k", content(10))
		w.dst.before = func(string, int) error { return destFails(class) }
		if got := w.ask(t.Context(), "k"); got.Verb != queue.Retry {
			t.Errorf("%s from the destination: %+v", class, got)
		}
	}
}

func TestKeyOver1024BytesIsUnfit(t *testing.T) {
	w := newWorld(t, options{})
	fits, long := strings.Repeat("k", 1024), strings.Repeat("k", 1025)
	w.src.put(fits, content(1))
	w.src.put(long, content(1))
	wantsEnd(t, w.ask(t.Context(), fits), object.EndCopied)
	wantsEnd(t, w.ask(t.Context(), long), object.EndUnfit)
}

func TestObjectOverMaxSizeIsUnfitBeforeItsBodyIsRead(t *testing.T) {
	for name, test := range map[string]struct{ max, size int64 }{
		"a part": {part - 1, part}, "parts": {10 * part, 10*part + 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{maxSize: test.max})
			w.src.put("k", content(int(test.size)))
			wantsEnd(t, w.ask(t.Context(), "k"), object.EndUnfit)
			if w.src.bodies != 0 {
				t.Error("read the body")
			}
			w.wantsNothing(t)

			w.src.put("fits", content(int(test.max)))
			wantsEnd(t, w.ask(t.Context(), "fits"), object.EndCopied)
		})
	}
}

func TestSizeComesFromThisAnswerOnly(t *testing.T) {
	// A request names no size, and a key that is not there makes no object.
	w := newWorld(t, options{})
	wantsEnd(t, w.ask(t.Context(), "gone"), object.EndAbsent)
	w.wantsNothing(t)
}

func TestObjectWithoutCRCIsCopiedAndCounted(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "multipart": 3 * part} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.put("with", content(size))
			o := w.src.put("without", content(size))
			o.a.HasCRC64, o.a.CRC64 = false, 0
			wantsEnd(t, w.ask(t.Context(), "with"), object.EndCopied)
			wantsEnd(t, w.ask(t.Context(), "without"), object.EndCopied)
			w.wantsCopy(t, "without")
			if p := w.dst.get("without").p; p.CRC64 != "" {
				t.Errorf("provenance has CRC %q", p.CRC64)
			}
			if got, want := w.metric("objectferry_unverified"), "objectferry_unverified_total{bucket=\"overseas-media\"} 1\n"; got != want {
				t.Errorf("metric %q, want %q", got, want)
			}
		})
	}
}

func TestTransientFailureKeepsTheMessage(t *testing.T) {
	details := map[object.Class]object.Detail{
		object.Throttled: object.DetailThrottled, object.Unavailable: object.DetailUnavailable,
		object.Changed: object.DetailChanged, object.Corrupt: object.DetailCorrupt, object.Unknown: object.DetailUnknown,
	}
	for class, detail := range details {
		t.Run("source "+string(class), func(t *testing.T) {
			w := newWorld(t, options{})
			w.src.onGet = func(int, get, *object.Read) error { return sourceFails(class) }
			wants(t, w.ask(t.Context(), "k"), queue.Retry, "", detail)
			w.wantsNothing(t)
		})
		for _, op := range []string{"Head", "Put"} {
			t.Run("destination "+op+" "+string(class), func(t *testing.T) {
				w := newWorld(t, options{})
				w.src.put("k", content(10))
				w.dst.before = func(o string, _ int) error {
					if o == op {
						return destFails(class)
					}
					return nil
				}
				wants(t, w.ask(t.Context(), "k"), queue.Retry, "", detail)
				w.wantsNothing(t)
			})
		}
	}
}

func TestClosedGateHandsBack(t *testing.T) {
	for name, closed := range map[string]error{
		"plain":    guard.ErrClosed,
		"by class": &object.Error{Class: object.Canceled, Err: fmt.Errorf("%w: unavailable", guard.ErrClosed)},
	} {
		for side, shut := range map[string]func(*world){
			"source":      func(w *world) { w.srcGuard.closed = closed },
			"destination": func(w *world) { w.dstGuard.closed = closed },
		} {
			t.Run(name+" "+side, func(t *testing.T) {
				w := newWorld(t, options{})
				w.src.put("k", content(3*part))
				shut(w)
				wants(t, w.ask(t.Context(), "k"), queue.HandBack, "", "")
				w.wantsNothing(t)
			})
		}
	}
}

func TestCancelledWorkIsHandedBackAndLeavesNothing(t *testing.T) {
	sizes := map[string]int{"small": 10, "multipart": 40 * part}
	calls := map[string]int{"small": 3, "multipart": 2 + 40*2 + 1} // of both stores, without abort
	for name, size := range sizes {
		for at := 1; at <= calls[name]; at++ {
			w := newWorld(t, options{})
			w.src.put("k", content(size))
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int32
			call := func(op string) error {
				if op != "Abort" && int(n.Add(1)) == at {
					cancel()
				}
				return ctx.Err()
			}
			w.src.onGet = func(int, get, *object.Read) error { return call("Get") }
			w.dst.before = func(op string, _ int) error {
				if op == "Abort" {
					return nil
				}
				return call(op)
			}
			if got := w.ask(ctx, "k"); got.Verb != queue.HandBack {
				t.Errorf("%s cancelled at call %d: outcome %+v", name, at, got)
			}
			w.wantsNothing(t)
			cancel()
		}
	}
}

func TestMeasuresOfACopy(t *testing.T) {
	w := newWorld(t, options{})
	secret := "key-" + rand.Text()
	w.src.put(secret, content(3*part))
	w.askSeen(t.Context(), secret, time.Now().Add(-2*time.Hour))
	w.askSeen(t.Context(), secret, time.Now().Add(-2*time.Hour)) // present: not measured again
	for name, want := range map[string]string{
		"objectferry_copied_bytes_total":          fmt.Sprintf("objectferry_copied_bytes_total{bucket=%q} %d\n", bucket, 3*part),
		"objectferry_heal_duration_seconds_count": fmt.Sprintf("objectferry_heal_duration_seconds_count{bucket=%q} 1\n", bucket),
		"objectferry_copy_duration_seconds_count": fmt.Sprintf("objectferry_copy_duration_seconds_count{bucket=%q} 1\n", bucket),
		"objectferry_memory_reserved_bytes":       "objectferry_memory_reserved_bytes 0\n",
	} {
		if got := w.metric(name); got != want {
			t.Errorf("metric %q, want %q", got, want)
		}
	}
	if sum := w.metric("objectferry_heal_duration_seconds_sum"); !strings.Contains(sum, "} 7200") {
		t.Errorf("time to heal is not the row's age: %q", sum)
	}
	if all := w.metric(""); strings.Contains(all, secret) {
		t.Error("the key is on the metrics page")
	}
}

func TestSpanTellsHowACopyEnded(t *testing.T) {
	w := newWorld(t, options{})
	spans := tracetest.NewSpanRecorder()
	w.tel.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	w.src.put("a\xffb", content(10))
	w.ask(t.Context(), "a\xffb")
	w.src.onGet = func(int, get, *object.Read) error { return sourceFails(object.Throttled) }
	w.ask(t.Context(), "k")

	var got []map[string]string
	for _, s := range spans.Ended() {
		attributes := map[string]string{"name": s.Name()}
		for _, a := range s.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		got = append(got, attributes)
	}
	want := []map[string]string{
		{"name": "copy object", "aws.s3.bucket": bucket, "aws.s3.key": "a\uFFFDb", "objectferry.end": "copied", "objectferry.detail": "", "objectferry.size": "10"},
		{"name": "copy object", "aws.s3.bucket": bucket, "aws.s3.key": "k", "objectferry.end": "", "objectferry.detail": "throttled"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
