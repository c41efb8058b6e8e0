package main

import (
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

const (
	// causeRequested stands where a log row would name S3's error code.
	causeRequested = "requested"
	// sendAtOnce is how many entries are given to a sender at a time.
	sendAtOnce = 100
)

func newRequestCommand() *cobra.Command {
	var configFile, bucket, from string
	var encoded bool
	c := &cobra.Command{
		Use:   "request --bucket B [KEY... | --from FILE]",
		Short: "Ask for keys by hand: warm a domain before it is cut over",
		Long: `Ask for keys by hand, as a visitor's miss would.

Keys are given as they are, decoded; --from reads one a line, and "-" is standard
input. --encoded takes them percent-encoded, as messages have them, for keys that
hold line feeds or other strange bytes. The route's filters are asked; the memory
of keys that were asked for a moment ago is not. An object that is there already is
left alone.

Exit code 3 says that some keys were not requested; each is named.`,
		Example: `  objectferry request --bucket overseas-media img/a.jpg 'img/b c.jpg'
  objectferry request --bucket overseas-media -- -key-with-a-dash
  objectferry request --bucket overseas-media --from keys.txt
  zcat access.log.gz | objectferry parse - | jq -r .key | objectferry request --bucket overseas-media --from -`,
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&bucket, "bucket", "", "the S3 bucket that visitors read")
	c.Flags().StringVar(&from, "from", "", "`file` with one key a line, or - for standard input")
	c.Flags().BoolVar(&encoded, "encoded", false, "keys are percent-encoded, as in messages")
	c.RunE = func(c *cobra.Command, keys []string) error {
		if bucket == "" {
			return wrongUsage(c, errors.New("request needs --bucket"))
		}
		if (len(keys) == 0) == (from == "") {
			return wrongUsage(c, errors.New("request needs keys, either as arguments or by --from FILE"))
		}
		cfg, err := config.Load(configFile, nil)
		if err != nil {
			return err
		}
		r, err := requestRoute(cfg, bucket)
		if err != nil {
			return err
		}
		in := c.InOrStdin()
		if from != "" && from != "-" {
			f, err := os.Open(from)
			if err != nil {
				return usageError{fmt.Errorf("--from: %w", err)}
			}
			defer f.Close()
			in = f
		}
		sender, closeSender, err := openSender(c.Context(), cfg, "sync", r.QueueURL(cfg.Queues.Sync))
		if err != nil {
			return err
		}
		defer closeSender()

		q := requester{route: r, sender: sender, stderr: c.ErrOrStderr(), encoded: encoded}
		if from == "" {
			q.arguments(c.Context(), keys)
		} else {
			err = q.lines(c.Context(), in)
		}
		q.flush(c.Context())
		fmt.Fprintf(c.OutOrStdout(), "%d requested, %d filtered, %d failed\n", q.requested, q.filtered, q.failed)
		return q.verdict(err)
	}
	return c
}

// openSender makes a command's sender to the queue at url, which is named logs or
// sync. To close it takes half a minute at most, also after an interrupt: what it
// has begun to send by then is answered or given up.
func openSender(ctx context.Context, cfg *config.Config, name, url string) (s *queue.Sender, closeSender func(), err error) {
	client, err := app.SQS(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	s = queue.NewSender(client, nil, queue.SenderConfig{Name: name, URL: url}, telemetry.Nop())
	return s, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		s.Close(ctx)
	}, nil
}

// requestRoute finds the route that a bucket's keys are requested on.
func requestRoute(cfg *config.Config, bucket string) (*route.Route, error) {
	r, err := findRoute(cfg, bucket)
	if err == nil && r.Observe() {
		return nil, usageError{fmt.Errorf("--bucket %q: its route has mode observe, so nothing would be copied; set mode copy first", bucket)}
	}
	return r, err
}

// findRoute finds the route of a bucket, whatever its mode.
func findRoute(cfg *config.Config, bucket string) (*route.Route, error) {
	routes, err := route.New(cfg.Routes)
	if err != nil {
		return nil, usageError{err}
	}
	r, ok := routes.Lookup(bucket)
	if !ok {
		return nil, usageError{fmt.Errorf("--bucket %q: no route of the configuration has it", bucket)}
	}
	return r, nil
}

// requester sends requests, many at a time.
type requester struct {
	route   *route.Route
	sender  *queue.Sender
	stderr  io.Writer
	encoded bool // keys come percent-encoded
	pending []queue.Entry
	keys    []string // of pending

	requested, filtered, failed int
}

// arguments adds keys as they were given on the command line.
func (q *requester) arguments(ctx context.Context, keys []string) {
	for _, key := range keys {
		if q.encoded {
			decoded, err := syncrequest.UnescapeKey(key)
			if err != nil {
				q.failed++
				fmt.Fprintf(q.stderr, "key %q: %v\n", key, err)
				continue
			}
			key = decoded
		}
		q.add(ctx, key)
	}
}

// lines adds the keys of a list. A line that is none costs that line.
func (q *requester) lines(ctx context.Context, in io.Reader) error {
	for key, err := range keyLines(ctx, in, q.encoded) {
		switch {
		case errors.As(err, new(lineError)):
			q.failed++
			fmt.Fprintln(q.stderr, err)
		case err != nil:
			return err
		default:
			q.add(ctx, key)
		}
	}
	return nil
}

// add requests a key, decoded.
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
	if len(q.pending) == sendAtOnce {
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

// verdict is the command's error; err is what ended the reading of keys.
func (q *requester) verdict(err error) error {
	missed := q.failed + q.filtered
	switch {
	case err == nil && missed == 0:
		return nil
	case err == nil:
		err = fmt.Errorf("%d of %d keys were not requested", missed, missed+q.requested)
	}
	if q.requested > 0 {
		return partlyError{err}
	}
	return err
}
