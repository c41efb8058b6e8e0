package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/reconcile"
)

// reconcileFlags are the command line of reconcile.
type reconcileFlags struct {
	config, bucket, from string
	encoded, yes         bool
	json, summary        bool
	compare              reconcile.Config
	keys                 int64 // in the list, 0 when it is not known
	stdin                io.Reader
}

func newReconcileCommand() *cobra.Command {
	var f reconcileFlags
	c := &cobra.Command{
		Use:   "reconcile --bucket B [--prefix P | --from FILE]",
		Short: "Compare source and destination; with --request, ask for what is missing",
		Long: `Compare a route's source and destination, and print each key that differs:

  missing    at the source, not overseas
  different  on both sides, another size or another version
  unsure     on both sides, and what is known does not tell; --deep tells more
  overseas   overseas only
  denied     not overseas, and the source refuses it
  archived   not overseas, and to be restored at the source first
  unfit      not overseas, and it cannot exist there: too large, too long a key
  deleted    deleted overseas on purpose
  absent     on neither side (a key of --from)
  failed     it could not be asked for

Both sides are listed and merged, so the source must let us list it (cos:GetBucket).
A listing tells nothing of permissions, restored objects or delete markers, and of
objects that were uploaded in parts the ETags cannot be compared: --deep asks both
sides about each key that is missing, archived or unsure. --from asks about each
key of a list and lists nothing; that is the way for a source that strangers can
read but not list. The source is read as the route says. What the route does not
carry is counted as filtered and not told.

--request puts a sync request for each missing key. More than 100 need --yes. The
different ones are never requested: writes are create-only, so it would end as
present. To have such an object carried anew, delete the one overseas first.

--state makes a run resumable: after an interruption, the same command line goes on
where it was, and what was being done then is told and requested once more. The
file is removed at the end.

Exit code 0 says that all was compared, whether or not there are differences; 3,
that some keys could not be asked for; 1, that it did not come to the end.`,
		Example: `  objectferry reconcile --bucket overseas-media --prefix img/
  objectferry reconcile --bucket overseas-media --deep --json > differences.jsonl
  objectferry reconcile --bucket overseas-media --request --yes --rate 200 --state reconcile.state
  objectferry reconcile --bucket overseas-media --from keys.txt`,
		Args: usageArgs(cobra.NoArgs),
	}
	c.Flags().StringVar(&f.config, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&f.bucket, "bucket", "", "the S3 bucket that visitors read")
	c.Flags().StringVar(&f.compare.Prefix, "prefix", "", "only keys that begin with this `text`")
	c.Flags().StringVar(&f.from, "from", "", "`file` with one key a line, or - for standard input, instead of listing")
	c.Flags().BoolVar(&f.encoded, "encoded", false, "the keys of --from are percent-encoded, as in messages")
	c.Flags().BoolVar(&f.compare.Deep, "deep", false, "ask about each key of which the listings do not tell enough")
	c.Flags().BoolVar(&f.compare.Request, "request", false, "ask for what is missing")
	c.Flags().Float64Var(&f.compare.Rate, "rate", 50, "with --request, requests a second at most; 0 is unbounded")
	c.Flags().BoolVar(&f.yes, "yes", false, fmt.Sprintf("with --request, go on with more than %d keys", atOnce))
	c.Flags().StringVar(&f.compare.State, "state", "", "keep in this `file` what is done, to go on after an interruption")
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON line a key, keys percent-encoded, and one of the totals")
	c.Flags().BoolVar(&f.summary, "summary", false, "print the totals only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.validate(); err != nil {
			return wrongUsage(c, err)
		}
		f.stdin = c.InOrStdin()
		return f.run(c)
	}
	return c
}

func (f *reconcileFlags) validate() error {
	switch {
	case f.bucket == "":
		return errors.New("reconcile needs --bucket")
	case f.from != "" && f.compare.Prefix != "":
		return errors.New("--prefix and --from exclude each other")
	case f.encoded && f.from == "":
		return errors.New("--encoded is of the keys of --from")
	case f.from == "-" && f.compare.State != "":
		return errors.New("--state needs a list that can be read again; standard input cannot")
	case !(f.compare.Rate >= 0): // nor NaN
		return fmt.Errorf("--rate %v: must not be negative", f.compare.Rate)
	}
	return nil
}

func (f *reconcileFlags) run(c *cobra.Command) error {
	ctx := c.Context()
	cfg, err := config.Load(f.config, nil)
	if err != nil {
		return err
	}
	find := findRoute
	if f.compare.Request {
		find = requestRoute
	}
	r, err := find(cfg, f.bucket)
	if err != nil {
		return err
	}
	closeKeys, err := f.openKeys(ctx)
	if err != nil {
		return err
	}
	defer closeKeys()
	f.compare.MaxSize, f.compare.AtOnce = int64(cfg.Copy.MaxSize), min(16, cfg.Copy.Concurrency)
	if !f.yes {
		f.compare.AtMost = atOnce
	}
	source, destination, err := app.Stores(ctx, cfg, r)
	if err != nil {
		return usageError{err}
	}
	out := newDifferences(c.OutOrStdout(), c.ErrOrStderr(), f.json, f.summary, f.keys)
	deps := reconcile.Deps{Route: r, Source: source, Destination: destination, Report: out.page}
	if f.compare.Request {
		sender, closeSender, err := openSender(ctx, cfg, "sync", r.QueueURL(cfg.Queues.Sync))
		if err != nil {
			return err
		}
		defer closeSender()
		deps.Sender = sender
	}
	comparison, err := reconcile.New(deps, f.compare)
	if err != nil {
		return usageError{fmt.Errorf("--state: %w", err)}
	}
	if comparison.Resumed() {
		fmt.Fprintf(c.ErrOrStderr(), "going on with %s\n", f.compare.State)
	}
	totals, err := comparison.Run(ctx)
	return f.verdict(totals, err, out.end(totals, err == nil || errors.Is(err, reconcile.ErrTooMany)))
}

// verdict is the command's error; err is what ended the comparison.
func (f *reconcileFlags) verdict(totals reconcile.Totals, err, outErr error) error {
	switch failed := totals.Classes[reconcile.Failed]; {
	case errors.Is(err, reconcile.ErrTooMany):
		return usageError{fmt.Errorf("more than %d keys are missing; none was requested. Narrow it, or add --yes", atOnce)}
	case err != nil && f.compare.State != "":
		return errors.Join(fmt.Errorf("%w\nit did not come to the end; the same command line goes on with %s", err, f.compare.State), outErr)
	case err != nil:
		return errors.Join(err, outErr)
	case failed > 0:
		return partlyError{errors.Join(fmt.Errorf("%d keys could not be asked for", failed), outErr)}
	}
	return outErr
}

// openKeys prepares the list of --from. A file is read once before, so that a line
// that is no key, and another list than that of a state file, are known at once.
func (f *reconcileFlags) openKeys(ctx context.Context) (closeKeys func(), err error) {
	closeKeys = func() {}
	switch f.from {
	case "":
		return closeKeys, nil
	case "-":
		f.compare.Keys = keyLines(ctx, f.stdin, f.encoded)
		return closeKeys, nil
	}
	file, err := os.Open(f.from)
	if err != nil {
		return closeKeys, usageError{fmt.Errorf("--from: %w", err)}
	}
	closeKeys = func() { file.Close() } // only read
	sum := sha256.New()
	fmt.Fprintln(sum, f.encoded) // the same lines are other keys then
	for _, err := range keyLines(ctx, io.TeeReader(bufio.NewReader(file), sum), f.encoded) {
		if err != nil {
			return closeKeys, usageError{fmt.Errorf("--from: %w", err)}
		}
		f.keys++
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return closeKeys, usageError{fmt.Errorf("--from: %w", err)}
	}
	f.compare.KeysID = fmt.Sprintf("%x", sum.Sum(nil))
	f.compare.Keys = keyLines(ctx, file, f.encoded)
	return closeKeys, nil
}
