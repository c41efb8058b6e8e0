package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// causeRequested stands where a log row would name S3's error code.
const causeRequested = "requested"

func newRequestCommand() *cobra.Command {
	var configFile, bucket, from string
	c := &cobra.Command{
		Use:   "request --bucket B [KEY... | --from FILE]",
		Short: "Ask for keys by hand: warm a domain before it is cut over",
		Long: `Ask for keys by hand. Keys are given as they are, decoded; --from reads one a
line ("-" is standard input). The route's filters are asked, the memory of keys
that were asked for a moment ago is not.`,
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&bucket, "bucket", "", "the S3 bucket that visitors read")
	c.Flags().StringVar(&from, "from", "", "`file` with one key a line")
	c.RunE = func(c *cobra.Command, keys []string) error {
		if (len(keys) == 0) == (from == "") {
			return usageError{errors.New("request needs keys, either as arguments or by --from FILE")}
		}
		cfg, err := config.Load(configFile, config.Overrides{})
		if err != nil {
			return err
		}
		routes, err := route.New(cfg.Routes)
		if err != nil {
			return usageError{err}
		}
		r, ok := routes.Lookup(bucket)
		if !ok {
			return usageError{fmt.Errorf("--bucket %q: no route of %s has it", bucket, configFile)}
		}
		client, err := app.SQS(c.Context(), cfg)
		if err != nil {
			return err
		}
		sender := queue.NewSender(client, nil, queue.SenderConfig{Name: "sync", URL: r.QueueURL(cfg.Queues.Sync)}, telemetry.Nop())
		defer sender.Close(context.WithoutCancel(c.Context()))

		in := requester{route: r, sender: sender, stderr: c.ErrOrStderr()}
		if from == "" {
			for _, key := range keys {
				in.add(c.Context(), key)
			}
		} else if err := in.file(c.Context(), from); err != nil {
			return err
		}
		in.flush(c.Context())
		fmt.Fprintf(c.OutOrStdout(), "%d requested, %d filtered, %d failed\n", in.requested, in.filtered, in.failed)
		switch {
		case in.failed+in.filtered == 0:
			return nil
		case in.requested == 0:
			return errors.New("no key was requested")
		}
		return partlyError{errors.New("some keys were not requested")}
	}
	return c
}

// requester sends requests a hundred at a time.
type requester struct {
	route   *route.Route
	sender  *queue.Sender
	stderr  io.Writer
	pending []queue.Entry
	keys    []string // of pending

	requested, filtered, failed int
}

func (q *requester) file(ctx context.Context, name string) error {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() != "" {
			q.add(ctx, lines.Text())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read keys from %s: %w", name, err)
	}
	return nil
}

func (q *requester) add(ctx context.Context, key string) {
	if !q.route.Carries(key) {
		q.filtered++
		fmt.Fprintf(q.stderr, "key %q: the route of bucket %q does not carry it\n", key, q.route.Bucket)
		return
	}
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: q.route.Bucket, Key: key, Seen: time.Now(), Cause: causeRequested})
	if err != nil {
		q.failed++
		fmt.Fprintf(q.stderr, "key %q: %v\n", key, err)
		return
	}
	q.pending, q.keys = append(q.pending, queue.Entry{Body: body}), append(q.keys, key)
	if len(q.pending) == 100 {
		q.flush(ctx)
	}
}

func (q *requester) flush(ctx context.Context) {
	for i, err := range q.sender.Send(ctx, q.pending) {
		if err != nil {
			q.failed++
			fmt.Fprintf(q.stderr, "key %q: %v\n", q.keys[i], err)
			continue
		}
		q.requested++
	}
	q.pending, q.keys = q.pending[:0], q.keys[:0]
}
