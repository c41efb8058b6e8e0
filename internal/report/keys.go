package report

import (
	"container/heap"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
)

// keys holds the distinct keys of a bucket that were missed: all of them while
// they are few. When they are more than limit it goes on with half of them, those
// whose hash begins with one more zero bit, and so on. The hash does not know how
// often a key is asked for, so what is held is a random part of all distinct keys
// at any time, each with all its misses; sums over it, divided by the part's share,
// are sums over all, with an error that is known.
type keys struct {
	limit  int
	seed   uint64
	delay  uint32 // seconds
	level  uint   // 1 in 2^level of the hashes is held
	held   map[uint64]missed
	sample sample
}

// missed is what is known of one key. Times are in seconds since 1970.
type missed struct {
	first uint32 // the earliest miss seen
	all   uint32 // misses
	still uint32 // those no later than delay after the first: before the object is there
}

func newKeys(c Config) *keys {
	return &keys{limit: c.Keys, seed: c.Seed, delay: uint32(c.Delay / time.Second), held: map[uint64]missed{}, sample: sample{size: c.Sample}}
}

// add counts a miss. Rows come nearly in order of time; one that comes later than
// younger ones only makes still larger than it is.
func (k *keys) add(key []byte, at time.Time) {
	h := k.hash(key)
	if !k.holds(h) {
		return
	}
	t := uint32(at.Unix())
	m, known := k.held[h]
	switch {
	case !known:
		m = missed{first: t}
		k.sample.offer(h, key)
	case t < m.first:
		m.first = t
	}
	m.all = increased(m.all)
	if t-m.first <= k.delay {
		m.still = increased(m.still)
	}
	k.held[h] = m
	for len(k.held) > k.limit {
		k.level++
		for h := range k.held {
			if !k.holds(h) {
				delete(k.held, h)
			}
		}
	}
}

func increased(n uint32) uint32 {
	if n == math.MaxUint32 {
		return n
	}
	return n + 1
}

// holds reports whether the hash is one of those that are held.
func (k *keys) holds(h uint64) bool { return h>>(64-k.level) == 0 }

// hash mixes the seed in: keys that share one are no more likely than by chance.
func (k *keys) hash(key []byte) uint64 {
	h := xxhash.Sum64(key) ^ k.seed*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Estimate is a number, and how far it may be off in 19 of 20 cases.
type Estimate struct {
	Value     float64 `json:"value"`
	PlusMinus float64 `json:"plus_minus"` // 0 where it is exact
}

// in95 is how many standard errors hold 95 % of the cases.
const in95 = 1.96

// sum adds of over all distinct keys. Each key is held with the same probability p,
// independent of the others, so the sum's variance is that of the keys left out.
func (k *keys) sum(of func(missed) float64) Estimate {
	p := math.Ldexp(1, -int(k.level))
	var total, squares float64
	for _, m := range k.held {
		x := of(m)
		total += x
		squares += x * x
	}
	return Estimate{Value: math.Round(total / p), PlusMinus: math.Ceil(in95 * math.Sqrt((1-p)*squares) / p)}
}

// sample holds the keys with the smallest hashes, which are among the held ones
// whatever happens: a random part of the distinct keys.
type sample struct {
	size  int
	drawn draws
}

type draw struct {
	hash uint64
	key  string
}

// offer takes a key that was not seen before, or was and is held no longer: then
// its hash is too large for the sample, too.
func (s *sample) offer(h uint64, key []byte) {
	switch {
	case len(s.drawn) < s.size:
		heap.Push(&s.drawn, draw{h, string(key)})
	case s.size > 0 && h < s.drawn[0].hash:
		s.drawn[0] = draw{h, string(key)}
		heap.Fix(&s.drawn, 0)
	}
}

// draws is a heap with the largest hash at its top.
type draws []draw

func (d draws) Len() int           { return len(d) }
func (d draws) Less(i, j int) bool { return d[i].hash > d[j].hash }
func (d draws) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *draws) Push(x any)        { *d = append(*d, x.(draw)) }
func (d *draws) Pop() any          { panic("never popped") }
