package report

import (
	"maps"
	"slices"
	"time"
)

// Result is what a report says.
type Result struct {
	Rows    int64     `json:"rows"`
	Delay   string    `json:"delay"` // that was assumed
	Buckets []*Bucket `json:"buckets"`
}

// Bucket is what would have become of one bucket. Numbers without an Estimate are
// counted.
type Bucket struct {
	Bucket string     `json:"bucket"`
	Mode   string     `json:"mode,omitempty"` // of its route
	From   *time.Time `json:"from"`           // of the rows; null where there are none
	To     *time.Time `json:"to"`
	Rows   int64      `json:"rows"`
	Counts []Count    `json:"counts"`
	Answers
	// Missed is how many rows would be acted on, Keys how many distinct keys they
	// name.
	Missed int64    `json:"missed"`
	Keys   Estimate `json:"keys"`
	Days   []Day    `json:"days,omitempty"`
	Sizes  *Sizes   `json:"sizes,omitempty"`
	Costs  []Cost   `json:"costs,omitempty"`
}

// Answers are the visitors' reads by who answered, and what would have become of
// those that were missed.
type Answers struct {
	S3   int64 `json:"s3"`
	Miss int64 `json:"miss"`
	// Still would be missed all the same: a key's first miss and those within the
	// delay after it. Saved would be answered by S3, if the source has them all.
	Still Estimate `json:"still_missed"`
	Saved Estimate `json:"saved"`
	// The share that S3 answers, now and then; null where nothing was read.
	ShareNow  *float64 `json:"share_now"`
	ShareThen *float64 `json:"share_then"`
}

// Day is one day, in UTC. What a key still misses counts on the day of its first
// miss.
type Day struct {
	Day  string   `json:"day"` // 2026-09-04, or "other"
	Keys Estimate `json:"keys"`
	Answers
}

// Result says what was found so far. perDay asks for a line a day.
func (r *Report) Result(perDay bool) *Result {
	out := &Result{Rows: r.rows, Delay: r.cfg.Delay.String(), Buckets: []*Bucket{}}
	for _, b := range r.order {
		out.Buckets = append(out.Buckets, b.result(perDay))
	}
	return out
}

func (b *bucket) result(perDay bool) *Bucket {
	out := &Bucket{Bucket: b.name, Rows: b.rows, Counts: slices.Clone(b.counts)}
	if b.route != nil {
		out.Mode = b.route.Mode
	}
	if !b.from.IsZero() {
		from, to := b.from.UTC(), b.to.UTC()
		out.From, out.To = &from, &to
	}
	for _, d := range b.days {
		out.Missed += d.missed
	}
	out.Keys = b.keys.sum(func(missed) float64 { return 1 })
	out.Answers = answers(b.s3, b.miss, out.Missed, b.keys.sum(func(m missed) float64 { return float64(m.still) }))
	if perDay {
		out.Days = b.perDay()
	}
	return out
}

func (b *bucket) perDay() []Day {
	var days []Day
	for _, n := range slices.Sorted(maps.Keys(b.days)) {
		d := b.days[n]
		first := func(m missed) bool {
			at := int64(m.first) / secondsADay
			return at == n || n == otherDays && b.days[at] == nil
		}
		day := Day{Day: "other", Keys: b.keys.sum(func(m missed) float64 { return number(first(m), 1) })}
		if n != otherDays {
			day.Day = time.Unix(n*secondsADay, 0).UTC().Format(time.DateOnly)
		}
		day.Answers = answers(d.s3, d.miss, d.missed, b.keys.sum(func(m missed) float64 { return number(first(m), float64(m.still)) }))
		days = append(days, day)
	}
	return days
}

func number(counts bool, x float64) float64 {
	if counts {
		return x
	}
	return 0
}

// answers says what becomes of reads. How many rows would be acted on is known, so
// only those that would be missed all the same are estimated.
func answers(s3, miss, missed int64, still Estimate) Answers {
	still.Value = min(still.Value, float64(missed)) // a day's may have begun the day before
	a := Answers{S3: s3, Miss: miss, Still: still, Saved: Estimate{Value: float64(missed) - still.Value, PlusMinus: still.PlusMinus}}
	if s3+miss > 0 {
		a.ShareNow = share(float64(s3), s3+miss)
		a.ShareThen = share(float64(s3)+a.Saved.Value, s3+miss)
	}
	return a
}

// share is part of all, which is not 0. More may be saved than was missed by
// visitors, as copies within S3 are carried, too, and are nobody's reads.
func share(part float64, all int64) *float64 {
	s := min(1, part/float64(all))
	return &s
}
