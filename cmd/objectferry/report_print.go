package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/objectferry/objectferry/internal/report"
)

// printReport prints a block for each bucket.
func printReport(w io.Writer, r *report.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range r.Buckets {
		printBucket(t, b, r.Delay)
	}
	fmt.Fprintf(t, "%s rows in all\n", grouped(float64(r.Rows)))
	return t.Flush()
}

func printBucket(t io.Writer, b *report.Bucket, delay string) {
	fmt.Fprintf(t, "%s\n", plain(b.Bucket))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	period := ""
	if b.From != nil {
		period = fmt.Sprintf(" from %s to %s", b.From.Format(time.RFC3339), b.To.Format(time.RFC3339))
	}
	line("rows", "%s%s", grouped(float64(b.Rows)), period)
	for _, c := range b.Counts {
		line("", "%s %s %s", grouped(float64(c.Rows)), c.Verdict, plain(string(c.Why)))
	}
	if b.Mode == "" { // no route, so nothing is carried
		return
	}
	line("visitors' reads", "%s, of which S3 answered %s", grouped(float64(b.S3+b.Miss)), percent(b.ShareNow))
	line("would be copied", "%s distinct keys, missed %s times", estimate(b.Keys), grouped(float64(b.Missed)))
	line("would be saved", "%s of these misses, if the source has every key and each is there %s after its first miss", estimate(b.Saved), delay)
	line("S3 would answer", "%s", percent(b.ShareThen))
	if s := b.Sizes; s != nil {
		line("asked of the source", "%d random keys: %s there%s", s.Asked, percentage(s.Share), missing(s))
		line("so would be saved", "%s of these misses, and S3 would answer %s", estimate(s.Saved), percent(s.ShareThen))
		line("bytes", "%s", estimate(s.Bytes))
	} else {
		line("bytes", "unknown; --config FILE --sizes N asks the source for a sample")
	}
	for i, c := range b.Costs {
		name := ""
		if i == 0 {
			name = "it would use"
		}
		quantity, cost := "unknown", "no price given"
		if c.Quantity != nil {
			quantity = estimate(*c.Quantity) + " " + c.Unit
			if c.Cost != nil {
				cost = strings.TrimSpace(money(*c.Cost) + " " + plain(c.Currency))
			}
		} else {
			cost = "unknown"
		}
		line(name, "%s: %s, cost: %s (%s)", c.What, quantity, cost, c.Note)
	}
	if len(b.Days) > 0 {
		fmt.Fprintf(t, "  DAY\tS3\tMISSED\tSHARE\tNEW KEYS\tSAVED\tSHARE THEN\n")
	}
	for _, d := range b.Days {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Day, grouped(float64(d.S3)), grouped(float64(d.Miss)), percent(d.ShareNow),
			estimate(d.Keys), estimate(d.Saved), percent(d.ShareThen))
	}
}

// missing says why sampled keys are not to be had.
func missing(s *report.Sizes) string {
	var text strings.Builder
	for _, state := range slices.Sorted(maps.Keys(s.Not)) {
		fmt.Fprintf(&text, ", %d %s", s.Not[state], state)
	}
	return text.String()
}

// estimate is a number, and by how much it may be off where it is not exact.
func estimate(e report.Estimate) string {
	if e.PlusMinus == 0 {
		return grouped(e.Value)
	}
	return fmt.Sprintf("about %s (± %s)", grouped(e.Value), grouped(e.PlusMinus))
}

func money(e report.Estimate) string {
	if e.PlusMinus == 0 {
		return fmt.Sprintf("%.2f", e.Value)
	}
	return fmt.Sprintf("about %.2f (± %.2f)", e.Value, e.PlusMinus)
}

func percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100**share)
}

func percentage(share report.Estimate) string {
	if share.PlusMinus == 0 {
		return percent(&share.Value)
	}
	return fmt.Sprintf("about %.1f %% (± %.1f)", 100*share.Value, 100*share.PlusMinus)
}

// grouped is a number with its thousands apart; a small one that is not whole has
// its decimals.
func grouped(x float64) string {
	if x != math.Trunc(x) && x < 1000 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
