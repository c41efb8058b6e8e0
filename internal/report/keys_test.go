package report

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/objectferry/objectferry/pkg/accesslog"
)

func TestDistinctKeysAreExactUpToTheBound(t *testing.T) {
	k := newKeys(Config{Keys: 1000, Seed: 1})
	for i := range 3000 {
		k.add(fmt.Append(nil, i%1000), noon)
	}
	if got := k.sum(func(missed) float64 { return 1 }); got != (Estimate{Value: 1000}) {
		t.Errorf("1,000 keys are told as %+v", got)
	}
	if got := k.sum(func(m missed) float64 { return float64(m.all) }); got != (Estimate{Value: 3000}) {
		t.Errorf("3,000 misses are told as %+v", got)
	}
	k.add([]byte("one more"), noon)
	if got := k.sum(func(missed) float64 { return 1 }); got.PlusMinus == 0 {
		t.Errorf("beyond the bound it claims to be exact: %+v", got)
	}
}

// An error that does not hold is worse than none.
func TestEstimatesAreOffByNoMoreThanTheySay(t *testing.T) {
	const seeds, distinct = 200, 5000
	right, rightStill, still := 0, 0, 0.0
	for seed := range uint64(seeds) {
		k := newKeys(Config{Keys: 500, Seed: seed, Delay: time.Hour})
		still = 0
		for i := range distinct {
			for n := range 1 + i%5 { // some are asked for more often than others
				k.add(fmt.Append(nil, i), noon.Add(time.Duration(n)*20*time.Minute))
			}
			still += float64(min(1+i%5, 4))
		}
		if len(k.held) > 500 {
			t.Fatalf("%d keys are held", len(k.held))
		}
		if e := k.sum(func(missed) float64 { return 1 }); e.Value-e.PlusMinus <= distinct && distinct <= e.Value+e.PlusMinus {
			right++
		}
		if e := k.sum(func(m missed) float64 { return float64(m.still) }); e.Value-e.PlusMinus <= still && still <= e.Value+e.PlusMinus {
			rightStill++
		}
	}
	// 95 of 100 are meant; the seeds are fixed, so this does not change from run to run.
	if right < seeds*92/100 || rightStill < seeds*92/100 {
		t.Errorf("of %d estimates of keys %d held, of misses %d", seeds, right, rightStill)
	}
}

// Logs are nearly in order of time. Whatever the order, no miss is promised to be
// saved that would not have been.
func TestLateRowsNeverPromiseMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 20).Draw(t, "minutes")
		k := newKeys(Config{Keys: 1000, Delay: time.Hour})
		first := minutes[0]
		for _, m := range minutes {
			k.add([]byte("a"), noon.Add(time.Duration(m)*time.Minute))
			first = min(first, m)
		}
		still := 0
		for _, m := range minutes {
			if m-first <= 60 {
				still++
			}
		}
		if got := k.sum(func(m missed) float64 { return float64(m.still) }); got.Value < float64(still) || got.Value > float64(len(minutes)) {
			t.Fatalf("still missed %v, in order it would be %d of %d", got.Value, still, len(minutes))
		}
	})
}

func TestTheSampleIsARandomPartOfTheKeys(t *testing.T) {
	const distinct = 2000
	drawn := map[string]int{}
	for seed := range uint64(200) {
		k := newKeys(Config{Keys: 1000, Sample: 100, Seed: seed})
		for i := range distinct {
			for range 1 + 9*(i%2) { // every other one is asked for often
				k.add(fmt.Append(nil, i), noon)
			}
		}
		if len(k.sample.drawn) != 100 {
			t.Fatalf("%d keys are drawn", len(k.sample.drawn))
		}
		for _, d := range k.sample.drawn {
			if _, held := k.held[d.hash]; !held {
				t.Fatalf("%q is drawn and not held", d.key)
			}
			drawn[d.key]++
		}
	}
	often, most := 0, 0
	for key, n := range drawn {
		most = max(most, n)
		if key[len(key)-1]%2 == 1 {
			often += n
		}
	}
	// 10,000 of 20,000 are expected, with a standard deviation of 71, and 10 of each key.
	if often < 9600 || often > 10400 || most > 30 {
		t.Errorf("%d of 20,000 draws are keys that are asked for often; one is drawn %d times", often, most)
	}
}

func TestASeedRepeatsTheChoice(t *testing.T) {
	choose := func(seed uint64) string {
		k := newKeys(Config{Keys: 1000, Sample: 5, Seed: seed})
		for i := range 5000 {
			k.add(fmt.Append(nil, i), noon)
		}
		return fmt.Sprint(k.sample.drawn)
	}
	if choose(1) != choose(1) || choose(1) == choose(2) {
		t.Error("the same seed must choose the same keys, another one others")
	}
}

// Rule 7: memory depends on the configuration, never on the logs. OBJECTFERRY_LONG=1
// makes it 20 million keys.
func TestMemoryIsFlatForMillionsOfKeys(t *testing.T) {
	rows := 2_000_000
	switch {
	case os.Getenv("OBJECTFERRY_LONG") != "":
		rows = 20_000_000
	case testing.Short(): // the race detector's run
		rows = 200_000
	}
	r := newReport(t, func(c *Config) { c.Keys, c.Sample = 1<<16, 1000 })
	// Writing a row costs more than taking it, so only its key is written anew.
	row0 := line("media", "-", strings.Repeat("0", 16)+strings.Repeat("x", 300), miss, noon)
	at := bytes.Index(row0, []byte("0000000000000000x"))
	var row accesslog.Row
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range rows {
		hex.Encode(row0[at:], binary.BigEndian.AppendUint64(nil, uint64(i)))
		row.Parse(row0)
		r.Add(&row, time.Time{})
	}
	grown := int64(heap()) - int64(before)
	t.Logf("%d distinct keys: the heap has grown by %d KiB", rows, grown>>10)
	if grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	e := r.Result(false).Buckets[0].Keys
	if e.Value < float64(rows)*0.97 || e.Value > float64(rows)*1.03 {
		t.Errorf("%d keys are told as %+v", rows, e)
	}
}
