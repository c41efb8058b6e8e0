package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

func refused(c object.Class) error { return &object.Error{Side: object.Source, Class: c} }

// missesOf makes a report of keys 0 to n-1, each missed twice: the second time it
// would be there.
func missesOf(t *testing.T, n, keys, sample int, seed uint64) (*Report, *Bucket) {
	t.Helper()
	r := newReport(t, func(c *Config) { c.Keys, c.Sample, c.Seed = keys, sample, seed })
	for _, at := range []time.Time{noon, noon.AddDate(0, 0, 1)} {
		for i := range n {
			r.take(line("media", "-", strconv.Itoa(i), miss, at))
		}
	}
	return r, r.Result(false).Buckets[0]
}

func TestAllKeysAskedForLeavesNothingToChance(t *testing.T) {
	r, b := missesOf(t, 10, 1000, 100, 1)
	err := r.Measure(t.Context(), b, func(_ context.Context, key string) (int64, error) {
		switch key {
		case "0":
			return 0, refused(object.Absent)
		case "1":
			return 0, refused(object.Denied)
		case "2":
			return 0, refused(object.Archived)
		case "3":
			return 5000, nil // larger than may be copied
		case "4":
			return 250, nil // three parts
		}
		return 10, nil
	}, 100, 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := &Sizes{Asked: 10, There: 6, Not: map[string]int{"absent": 1, "denied": 1, "archived": 1, "unfit": 1},
		Share: Estimate{Value: 0.6}, Bytes: Estimate{Value: 300}, Saved: Estimate{Value: 6}, ShareThen: ptr(0.3)}
	if diff := cmp.Diff(want, b.Sizes, cmp.AllowUnexported(Sizes{}), cmp.FilterPath(func(p cmp.Path) bool {
		return strings.HasPrefix(p.Last().String(), ".single") || p.Last().String() == ".multi" || p.Last().String() == ".parts"
	}, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKeysWithoutAnAnswerAreLeftOut(t *testing.T) {
	r, b := missesOf(t, 10, 1000, 100, 1)
	down := func(_ context.Context, key string) (int64, error) {
		if key == "0" {
			return 0, refused(object.Unavailable)
		}
		return 10, nil
	}
	if err := r.Measure(t.Context(), b, down, 100, 1000); err != nil || b.Sizes.Asked != 9 || b.Sizes.Not["no answer"] != 1 || b.Sizes.Bytes.Value != 100 {
		t.Errorf("%v, %+v", err, b.Sizes)
	}
	b.Sizes = nil
	err := r.Measure(t.Context(), b, func(context.Context, string) (int64, error) { return 0, refused(object.Refused) }, 100, 1000)
	if object.ClassOf(err) != object.Refused || b.Sizes != nil {
		t.Errorf("no answer at all: %v, %+v", err, b.Sizes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Measure(ctx, b, down, 100, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Bytes and the share that is there hold their error, also with the number of keys
// itself estimated.
func TestSizesAreOffByNoMoreThanTheySay(t *testing.T) {
	const seeds, distinct = 80, 2500
	size := func(i int) int64 { return 1000 + int64(i%97)*50 }
	truth, there := 0.0, 0.0
	for i := range distinct {
		if i%5 > 0 {
			truth, there = truth+float64(size(i)), there+1
		}
	}
	bytes, share := 0, 0
	for seed := range uint64(seeds) {
		r, b := missesOf(t, distinct, 1000, 200, seed)
		if err := r.Measure(t.Context(), b, func(_ context.Context, key string) (int64, error) {
			i, err := strconv.Atoi(key)
			if err != nil || i%5 == 0 {
				return 0, refused(object.Absent)
			}
			return size(i), nil
		}, 1<<20, 1<<20); err != nil {
			t.Fatal(err)
		}
		if s := b.Sizes; math.Abs(s.Bytes.Value-truth) <= s.Bytes.PlusMinus {
			bytes++
		}
		if s := b.Sizes; math.Abs(s.Share.Value-there/distinct) <= s.Share.PlusMinus {
			share++
		}
	}
	if bytes < seeds*90/100 || share < seeds*90/100 {
		t.Errorf("of %d estimates of bytes %d held, of shares %d", seeds, bytes, share)
	}
}

func TestPricesAreTheOperatorsOrNone(t *testing.T) {
	r, b := missesOf(t, 100, 1000, 100, 1)
	b.Mode = "copy"
	if err := r.Measure(t.Context(), b, func(_ context.Context, key string) (int64, error) {
		if len(key) == 1 { // ten of them
			return 25e8, nil // in three parts
		}
		return 0, refused(object.Absent)
	}, 1e9, 1e10); err != nil {
		t.Fatal(err)
	}
	prices, err := ReadPrices(strings.NewReader("currency: EUR\nsource_egress_gb: 2\ns3_writes_1000: 10\nqueue_requests_1000000: 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	b.Price(prices)
	var got []string
	for _, c := range b.Costs {
		cost := "-"
		if c.Cost != nil {
			cost = fmt.Sprint(c.Cost.Value, " ", c.Currency)
		}
		got = append(got, fmt.Sprint(c.What, ": ", c.Quantity.Value, " ", c.Unit, ", ", cost))
	}
	want := []string{"read from the source: 25 GB, 50 EUR", "requests to the source: 120 requests, -", "writes to S3: 50 requests, 0.5 EUR",
		"looks at S3: 100 requests, -", "kept in S3: 25 GB, -", "requests to SQS: 300 requests, 0 EUR"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.Sizes = nil
	b.Price(prices)
	if b.Costs[0].Quantity != nil || b.Costs[0].Cost != nil || b.Costs[1].Quantity.Value != 100 {
		t.Errorf("without sizes: %+v", b.Costs)
	}
}

func TestPricesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"source_egress_gb: -1", "source_egress_gb: .inf", "source_egress_gb: .nan", "source_egress_gb: much", "egress: 1", strings.Repeat("#", maxPrices+1)} {
		if _, err := ReadPrices(strings.NewReader(text)); err == nil {
			t.Errorf("%.40s: no error", text)
		}
	}
	if p, err := ReadPrices(strings.NewReader("")); err != nil || p != (Prices{}) {
		t.Errorf("an empty file: %v", err)
	}
}
