package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/pkg/s3event"
)

func newSweepCommand() *cobra.Command {
	var configFile, since string
	var maxAge time.Duration
	var dryRun bool
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Announce log objects that are still there: events lost, or not yet switched on",
		Long: `List the log objects and announce each on the logs queue, as S3 would have done:
they then take the same path as all others. Reading one a second time is harmless.

Rows that are older than their route's max_age are not acted on, so there is
little use in sweeping further back.`,
		Example: `  objectferry sweep --max-age 72h --dry-run         # how many are there?
  objectferry sweep --since 2026-09-04T00:00:00Z    # events were lost from then on`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			from, err := earliest(since, maxAge, time.Now())
			if err != nil {
				return usageError{err}
			}
			cfg, err := config.Load(configFile, nil)
			if err != nil {
				return err
			}
			return sweep(c.Context(), cfg, from, dryRun, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&since, "since", "", "only logs delivered at this `time` or later (RFC 3339)")
	c.Flags().DurationVar(&maxAge, "max-age", 0, "only logs delivered within this time, such as 72h")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "count them and announce nothing")
	return c
}

// earliest is the time from which on logs are meant: the later of the two bounds.
func earliest(since string, maxAge time.Duration, now time.Time) (time.Time, error) {
	var from time.Time
	if since != "" {
		var err error
		if from, err = time.Parse(time.RFC3339, since); err != nil {
			return from, fmt.Errorf("--since %q: must be a time such as 2026-09-04T00:00:00Z", since)
		}
	}
	switch {
	case maxAge < 0:
		return from, fmt.Errorf("--max-age %s: must not be negative", maxAge)
	case maxAge > 0 && now.Add(-maxAge).After(from):
		from = now.Add(-maxAge)
	}
	return from, nil
}

// sweeper announces log objects, many at a time.
type sweeper struct {
	logs   *s3store.LogStore
	sender *queue.Sender
	from   time.Time
	dryRun bool

	announced, failed int
	errs              []error
}

func sweep(ctx context.Context, cfg *config.Config, from time.Time, dryRun bool, out io.Writer) error {
	logs, _, err := app.Logs(ctx, cfg)
	if err != nil {
		return err
	}
	sender, closeSender, err := openSender(ctx, cfg, "logs", cfg.Queues.Logs)
	if err != nil {
		return err
	}
	defer closeSender()
	s := sweeper{logs: logs, sender: sender, from: from, dryRun: dryRun}
	for _, place := range cfg.Logs {
		s.place(ctx, place)
	}
	verb := "announced"
	if dryRun {
		verb = "would be announced"
	}
	fmt.Fprintf(out, "%d log objects %s, %d failed\n", s.announced, verb, s.failed)
	if err := errors.Join(s.errs...); err != nil {
		if s.announced > 0 {
			return partlyError{err}
		}
		return err
	}
	return nil
}

// place announces what lies in one place. One that cannot be listed costs the
// others nothing.
func (s *sweeper) place(ctx context.Context, place config.Log) {
	var pending []queue.Entry
	defer func() { s.announce(ctx, pending) }()
	for object, err := range s.logs.List(ctx, place.Bucket, place.Prefix, "") {
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("list logs of bucket %q: %w", place.Bucket, err))
			return
		}
		if object.LastModified.Before(s.from) {
			continue
		}
		if s.dryRun {
			s.announced++
			continue
		}
		body := s3event.Format(s3event.Record{Bucket: place.Bucket, Key: object.Key, Size: object.Size, EventTime: object.LastModified})
		if pending = append(pending, queue.Entry{Body: body}); len(pending) == sendAtOnce {
			s.announce(ctx, pending)
			pending = pending[:0]
		}
	}
}

func (s *sweeper) announce(ctx context.Context, entries []queue.Entry) {
	for _, err := range s.sender.Send(ctx, entries) {
		if err == nil {
			s.announced++
			continue
		}
		if s.failed++; s.failed <= tellAtMost {
			s.errs = append(s.errs, err)
		}
	}
}
