package report

import (
	"context"
	"errors"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/objectferry/objectferry/internal/object"
)

// measureAtOnce is how many keys are asked for at once.
const measureAtOnce = 8

// Look asks the source for one byte of a key and returns the object's size. Its
// errors are *object.Error.
type Look func(ctx context.Context, key string) (size int64, err error)

// Sizes is what the source says of a random part of the distinct keys, and what
// that means for all of them.
type Sizes struct {
	Asked int `json:"asked"` // keys
	There int `json:"there"` // of them, at the source and not too large
	// Not are the others, by the class of the answer.
	Not map[string]int `json:"not,omitempty"`
	// Share of the distinct keys that are there, and what those have, all together.
	Share Estimate `json:"share"`
	Bytes Estimate `json:"bytes"`
	// Saved requests are those for keys that are there.
	Saved     Estimate `json:"saved"`
	ShareThen *float64 `json:"share_then"`

	single, multi int // keys that are written by one PUT, and in parts
	parts         int // of multi
}

// Measure asks for the sampled keys of a bucket. A key whose answer says nothing of
// it, because the source is down or throttles, is left out; it is an error when
// that is so of every key.
func (r *Report) Measure(ctx context.Context, into *Bucket, look Look, partSize, maxSize int64) error {
	b := r.buckets[into.Bucket]
	if b == nil || len(b.keys.sample.drawn) == 0 {
		return nil
	}
	drawn := slices.Clone(b.keys.sample.drawn)
	sizes, errs := make([]int64, len(drawn)), make([]error, len(drawn))
	g := errgroup.Group{}
	g.SetLimit(measureAtOnce)
	for i, d := range drawn {
		g.Go(func() error {
			sizes[i], errs[i] = look(ctx, d.key)
			return nil
		})
	}
	_ = g.Wait() // none fails
	if err := ctx.Err(); err != nil {
		return err
	}
	t := tally{Sizes: Sizes{Not: map[string]int{}}}
	for i, d := range drawn {
		class := object.ClassOf(errs[i])
		if class == "" && sizes[i] > maxSize {
			class = object.Unfit
		}
		t.add(class, sizes[i], b.keys.held[d.hash], partSize)
	}
	if t.Asked == 0 {
		return errors.Join(errs[0], errors.New("no key of the sample could be asked for"))
	}
	into.Sizes = t.of(into)
	return nil
}

// tally adds up what the sampled keys have.
type tally struct {
	Sizes
	bytes, squares float64 // of those that are there
	saved          float64 // misses that a copy would have saved, of all that were asked for
	savedThere     float64
}

func (t *tally) add(class object.Class, size int64, m missed, partSize int64) {
	switch class {
	case "":
	case object.Absent, object.Denied, object.Archived, object.Unfit:
		t.Not[string(class)]++
	default: // says nothing of the key
		t.Not["no answer"]++
		return
	}
	t.Asked++
	saved := float64(m.all - m.still)
	t.saved += saved
	if class != "" {
		return
	}
	t.There++
	t.savedThere += saved
	t.bytes += float64(size)
	t.squares += float64(size) * float64(size)
	if size <= partSize {
		t.single++
	} else {
		t.multi++
		t.parts += int((size + partSize - 1) / partSize)
	}
}

// of says what the sample means for all keys.
func (t *tally) of(b *Bucket) *Sizes {
	s := t.Sizes
	n, all := float64(s.Asked), max(b.Keys.Value, float64(s.Asked))
	// The more of all keys were asked for, the less is left to chance.
	left := 0.0
	if all > 1 {
		left = math.Sqrt((all - n) / (all - 1))
	}
	there := float64(s.There) / n
	s.Share = Estimate{Value: there, PlusMinus: left * wilson(there, n)}
	mean := t.bytes / n // of absent keys it is 0
	deviation := math.Sqrt(max(0, t.squares/n-mean*mean))
	s.Bytes = Estimate{Value: math.Round(all * mean),
		PlusMinus: math.Ceil(all*in95*left*deviation/math.Sqrt(n) + b.Keys.PlusMinus*mean)}
	weight := there
	if t.saved > 0 {
		weight = t.savedThere / t.saved
	}
	s.Saved = Estimate{Value: math.Round(b.Saved.Value * weight), PlusMinus: math.Ceil(b.Saved.PlusMinus*weight + b.Saved.Value*left*wilson(weight, n))}
	if b.S3+b.Miss > 0 {
		s.ShareThen = share(float64(b.S3)+s.Saved.Value, b.S3+b.Miss)
	}
	return &s
}

// wilson is half of the interval that holds a share which was found in n samples,
// in 19 of 20 cases; unlike the usual one it is not 0 for a share of none or all.
func wilson(share, n float64) float64 {
	const z2 = in95 * in95
	return in95 / (1 + z2/n) * math.Sqrt(share*(1-share)/n+z2/(4*n*n))
}
