package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/parse"
	"github.com/objectferry/objectferry/internal/report"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

// tellAtMost bounds the errors that are told; ten tell enough.
const tellAtMost = 10

// readBuckets adds the rows of all log objects that were delivered since then, in
// the order of their names, which is nearly that of time.
func (f *reportFlags) readBuckets(ctx context.Context, r *report.Report) error {
	logs, guards, err := app.Logs(ctx, f.cfg)
	if err != nil {
		return err
	}
	var errs []error
	failed := 0
	fail := func(err error) {
		if failed++; failed <= tellAtMost {
			errs = append(errs, err)
		}
	}
	for _, place := range f.cfg.Logs {
		for o, err := range logs.List(ctx, place.Bucket, place.Prefix, "") {
			if err != nil {
				fail(fmt.Errorf("list logs of bucket %q: %w", place.Bucket, err))
				break
			}
			if o.LastModified.Before(f.take.Since) {
				continue
			}
			if err := readLog(ctx, r, logs, guards[place.Bucket], place.Bucket, o); err != nil {
				fail(err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if failed > tellAtMost {
		errs = append(errs, fmt.Errorf("and %d more", failed-tellAtMost))
	}
	return errors.Join(errs...)
}

// readLog adds one log object; one that was read and deleted meanwhile is no error.
func readLog(ctx context.Context, r *report.Report, logs *s3store.LogStore, g *guard.Guard, bucket string, o s3store.LogObject) error {
	rows := accesslog.NewScanner(parse.Open(ctx, logs, g, bucket, o.Key))
	for rows.Next() {
		r.Add(rows.Row(), o.LastModified)
	}
	if err := rows.Err(); err != nil && object.ClassOf(err) != object.Absent {
		return fmt.Errorf("read log %q: %w", "s3://"+bucket+"/"+o.Key, err)
	}
	return nil
}
