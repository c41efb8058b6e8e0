package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/report"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

// reportFlags are the command line of report.
type reportFlags struct {
	config, since, prices    string
	days                     int
	fromBucket, perDay, json bool
	take                     report.Config
	stdin                    io.Reader
	cfg                      *config.Config // nil without --config
	partly                   []error        // what could not be read or measured
}

func newReportCommand() *cobra.Command {
	f := reportFlags{take: report.DefaultConfig()}
	c := &cobra.Command{
		Use:   "report [FILE...|-]",
		Short: "Say of old logs what would be copied, saved and paid, before anything is switched on",
		Long: `Say of old S3 access logs, plain or gzip, what the service would have done with
them: which share of the visitors' reads S3 answered, how many distinct keys would
be copied, how many requests that would have saved, and what it would cost. Nothing
is requested and nothing is changed.

With --config, rows are judged by its routes and filters; without, each bucket is
taken for one whose every key is carried. Without a FILE, or for -, standard input is
read; --from-bucket reads the log buckets of the configuration. Age is judged by the
time a log was delivered: only --from-bucket knows that, and of a FILE no row is too
old.

What is assumed: the source has every key, and an object is there --delay after its
key's first miss; so a key misses until then and never again. Give logs in order of
time. Distinct keys are counted up to --keys by bucket; where there are more, numbers
are estimates, and say by how much they may be off in 19 of 20 cases.

Rows of misses carry no size. --sizes asks the source, as the route reads it, for one
byte of that many random keys a bucket, which also tells how many are there at all.
--prices is YAML with prices of your own contracts; what has no price has no cost:

  currency: EUR
  source_egress_gb: …          # a GB is 10^9 bytes
  source_requests_10000: …
  s3_writes_1000: …
  s3_reads_1000: …
  s3_storage_gb_month: …
  queue_requests_1000000: …

Exit code 3 says that some logs could not be read, or some keys not be asked for.`,
		Example: `  objectferry report access/*
  objectferry report --config objectferry.yaml --per-day access/*
  objectferry report --config objectferry.yaml --from-bucket --days 7 --sizes 400 --prices prices.yaml`,
		RunE: func(c *cobra.Command, files []string) error {
			f.stdin = c.InOrStdin()
			result, err := f.run(c.Context(), files)
			if err != nil {
				return err
			}
			if f.json {
				err = printJSON(c.OutOrStdout(), result)
			} else {
				err = printReport(c.OutOrStdout(), result)
			}
			if err == nil && len(f.partly) > 0 {
				return partlyError{errors.Join(f.partly...)}
			}
			return err
		},
	}
	c.Flags().StringVar(&f.config, "config", "", "configuration `file`; without one every key counts")
	c.Flags().BoolVar(&f.fromBucket, "from-bucket", false, "read the log buckets of the configuration")
	c.Flags().StringVar(&f.since, "since", "", "only rows of this `time` or later (RFC 3339)")
	c.Flags().IntVar(&f.days, "days", 0, "only rows of so many days back from now")
	c.Flags().BoolVar(&f.perDay, "per-day", false, "a line a day, too")
	c.Flags().DurationVar(&f.take.Delay, "delay", f.take.Delay, "from a key's first miss until its object is there: the log's delivery and the copy")
	c.Flags().IntVar(&f.take.Keys, "keys", f.take.Keys, "distinct keys that are held, by bucket")
	c.Flags().IntVar(&f.take.Sample, "sizes", 0, "ask the source for so many random keys, by bucket")
	c.Flags().Uint64Var(&f.take.Seed, "seed", f.take.Seed, "of the choice of keys")
	c.Flags().BoolVar(&f.take.ForbiddenIsMiss, "forbidden-is-miss", false, "without --config: 403 AccessDenied means a missing key")
	c.Flags().StringVar(&f.prices, "prices", "", "`file` with prices")
	c.Flags().BoolVar(&f.json, "json", false, "print one line of JSON")
	return c
}

// run does all but the printing. What could not be done of it is in f.partly.
func (f *reportFlags) run(ctx context.Context, files []string) (*report.Result, error) {
	prices, err := f.prepare(files)
	if err != nil {
		return nil, err
	}
	r, err := report.New(f.take)
	if err != nil {
		return nil, usageError{err}
	}
	if err := f.read(ctx, r, files); err != nil {
		return nil, err
	}
	result := r.Result(f.perDay)
	for _, b := range result.Buckets {
		if f.take.Sample > 0 {
			if err := f.measure(ctx, r, b); err != nil {
				return nil, err
			}
		}
		b.Price(prices)
	}
	return result, nil
}

// prepare checks the command line and reads what it names.
func (f *reportFlags) prepare(files []string) (report.Prices, error) {
	var none report.Prices
	switch {
	case f.config == "" && (f.fromBucket || f.take.Sample > 0):
		return none, usageError{errors.New("report: --from-bucket and --sizes need --config")}
	case f.config != "" && f.take.ForbiddenIsMiss:
		return none, usageError{errors.New("report: with --config, its routes say forbidden_is_miss")}
	case f.fromBucket && len(files) > 0:
		return none, usageError{errors.New("report: files and --from-bucket exclude each other")}
	case f.days < 0 || f.days > math.MaxInt16:
		return none, usageError{fmt.Errorf("--days %d: must be a number of days", f.days)}
	}
	var err error
	if f.take.Since, err = earliest(f.since, time.Duration(f.days)*24*time.Hour, time.Now()); err != nil {
		return none, usageError{err}
	}
	if f.config != "" {
		if f.cfg, err = config.Load(f.config, nil); err != nil {
			return none, err
		}
		if f.take.Routes, err = route.New(f.cfg.Routes); err != nil {
			return none, usageError{err}
		}
		if f.cfg.Own != "" {
			if f.take.Own, err = accesslog.ParseRole(f.cfg.Own); err != nil {
				return none, usageError{err}
			}
		}
	}
	if f.prices == "" {
		return none, nil
	}
	file, err := os.Open(f.prices)
	if err != nil {
		return none, usageError{fmt.Errorf("--prices: %w", err)}
	}
	defer file.Close()
	prices, err := report.ReadPrices(file)
	if err != nil {
		return none, usageError{fmt.Errorf("--prices: %w", err)}
	}
	return prices, nil
}

// read adds all rows. Logs that cannot be read cost the others nothing.
func (f *reportFlags) read(ctx context.Context, r *report.Report, files []string) error {
	var err error
	if f.fromBucket {
		err = f.readBuckets(ctx, r)
	} else {
		if len(files) == 0 {
			files = []string{"-"}
		}
		err = parseFiles(ctx, files, f.stdin, reportRows{r})
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || r.Rows() == 0:
		return err // a report of half the logs would pass for one of the whole
	}
	f.partly = append(f.partly, err)
	return nil
}

// reportRows is the report as parse's reader of files knows it.
type reportRows struct{ *report.Report }

func (r reportRows) row(_ string, _ int64, row *accesslog.Row) error {
	r.Add(row, time.Time{})
	return nil
}

func (r reportRows) end() error { return nil }

// measure asks the source for the sampled keys of a bucket.
func (f *reportFlags) measure(ctx context.Context, r *report.Report, b *report.Bucket) error {
	x, ok := f.take.Routes.Lookup(b.Bucket)
	if !ok {
		return nil
	}
	lane, err := app.Lane(ctx, f.cfg, x, nil)
	if err != nil {
		return err
	}
	look := func(ctx context.Context, key string) (size int64, err error) {
		err = lane.SourceGuard.Do(ctx, "GetObject", 1, func(ctx context.Context) error {
			read, err := lane.Source.Get(ctx, key, object.Range{Length: 1}, "")
			if err != nil {
				return err
			}
			size = read.Size
			return read.Body.Close()
		})
		return size, err
	}
	err = r.Measure(ctx, b, look, int64(f.cfg.Copy.PartSize), int64(f.cfg.Copy.MaxSize))
	if err != nil && ctx.Err() == nil {
		f.partly = append(f.partly, fmt.Errorf("ask the source of bucket %q: %w", b.Bucket, err))
		return nil
	}
	return err
}
