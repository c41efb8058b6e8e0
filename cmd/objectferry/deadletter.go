package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/deadletter"
)

// deadletterFlags are shared by ls, show, redrive and drop.
type deadletterFlags struct {
	config string
	queue  string
	filter deadletter.Filter
	json   bool
	rate   float64
	dryRun bool
	yes    bool
}

func newDeadletterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "deadletter",
		Short: "Look at dead letters, redrive them, drop them",
		Long: `Look at dead letters, redrive them, drop them.

A dead letter is a message that was given up: it is kept in the dead-letter queue
with a reason, in two words. "poison" cannot be read at all; "failed" was tried as
often as allowed, and its detail names the last cause. docs/RUNBOOK.md says what
each reason means and what to do.`,
		Example: `  objectferry deadletter ls                                      # what is there, by reason
  objectferry deadletter show --detail corrupt                   # each one
  objectferry deadletter redrive --detail unavailable --dry-run  # how many would it be?
  objectferry deadletter redrive --detail unavailable            # try them again`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return wrongUsage(c, errors.New("deadletter needs one of: ls, show, redrive, drop"))
		},
	}
	c.AddCommand(newDeadletterLs(), newDeadletterShow(), newDeadletterRedrive(), newDeadletterDrop())
	return c
}

// register adds the flags that all of them have.
func (f *deadletterFlags) register(c *cobra.Command) {
	c.Args = usageArgs(cobra.NoArgs)
	c.Flags().StringVar(&f.config, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&f.queue, "queue", "", "only the dead letters of this queue: logs or sync")
	c.Flags().StringVar(&f.filter.End, "end", "", "only this end: poison or failed")
	c.Flags().StringVar(&f.filter.Detail, "detail", "", "only this detail, such as unavailable")
	c.Flags().StringVar(&f.filter.Match, "match", "", "only keys that this `glob` matches; ** crosses slashes")
}

// boxes opens the dead-letter queues that the flags name.
func (f *deadletterFlags) boxes(ctx context.Context) ([]*deadletter.Box, error) {
	if f.queue != "" && f.queue != "logs" && f.queue != "sync" {
		return nil, usageError{fmt.Errorf("--queue %q: must be logs or sync", f.queue)}
	}
	if err := f.filter.Validate(); err != nil {
		return nil, usageError{err}
	}
	cfg, err := config.Load(f.config, nil)
	if err != nil {
		return nil, err
	}
	client, err := patientSQS(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return openBoxes(ctx, client, cfg, f.queue)
}

// patientSQS is a client for commands: the service's own retries nothing, because
// its loops do; commands have none.
func patientSQS(ctx context.Context, cfg *config.Config) (*sqs.Client, error) {
	client, err := app.SQS(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return sqs.New(client.Options(), func(o *sqs.Options) { o.Retryer = retry.NewStandard() }), nil
}

// openBoxes opens the dead-letter queues of cfg; only is logs, sync or "" for all.
func openBoxes(ctx context.Context, client *sqs.Client, cfg *config.Config, only string) ([]*deadletter.Box, error) {
	var boxes []*deadletter.Box
	sources := map[string]string{}
	open := func(name, url string) error {
		box, err := deadletter.Open(ctx, client, name, url)
		if err != nil {
			return err
		}
		// A letter does not say which queue it came from: of a shared dead-letter
		// queue all would be redriven to the first.
		if other, ok := sources[box.URL()]; ok {
			return fmt.Errorf("queues %s and %s share the dead-letter queue %s; give each its own in its redrive policy", other, url, box.URL())
		}
		sources[box.URL()] = url
		if only == "" || only == name {
			boxes = append(boxes, box)
		}
		return nil
	}
	if err := open("logs", cfg.Queues.Logs); err != nil {
		return nil, err
	}
	for _, url := range cfg.SyncQueues() {
		if err := open("sync", url); err != nil {
			return nil, err
		}
	}
	return boxes, nil
}

func newDeadletterLs() *cobra.Command {
	var f deadletterFlags
	c := &cobra.Command{
		Use:   "ls",
		Short: "Group them by reason, with an example each; everything is handed back",
		Example: `  objectferry deadletter ls
  objectferry deadletter ls --queue sync --match 'img/**' --json`,
	}
	f.register(c)
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON line a group")
	c.RunE = func(c *cobra.Command, _ []string) error {
		boxes, err := f.boxes(c.Context())
		if err != nil {
			return err
		}
		groups := deadletter.Groups{}
		for _, box := range boxes {
			if _, err := box.Look(c.Context(), func(l *deadletter.Letter) (bool, error) {
				if f.filter.Wants(l) {
					groups.Add(l)
				}
				return false, nil
			}); err != nil {
				return err
			}
		}
		return printGroups(c.OutOrStdout(), groups, f.json)
	}
	return c
}

func printGroups(w io.Writer, groups deadletter.Groups, asJSON bool) error {
	list := groups.Sorted()
	if asJSON {
		for _, g := range list {
			if err := printJSON(w, g); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "QUEUE\tEND\tDETAIL\tLETTERS\tOLDEST\tEXAMPLE")
	total := 0
	for _, g := range list {
		total += g.Letters
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", g.Queue, plain(g.End), plain(g.Detail), g.Letters, g.Oldest.Format(time.RFC3339), where(&g.Example))
	}
	fmt.Fprintf(t, "all\t\t\t%d\t\t\n", total)
	return t.Flush()
}

// where names what a letter is about.
func where(l *deadletter.Letter) string {
	if l.Bucket == "" {
		return "message " + l.ID
	}
	return fmt.Sprintf("%+q", "s3://"+l.Bucket+"/"+l.Key)
}

func newDeadletterShow() *cobra.Command {
	var f deadletterFlags
	var most int
	c := &cobra.Command{
		Use:   "show",
		Short: "Print each letter; everything is handed back",
		Example: `  objectferry deadletter show --end poison
  objectferry deadletter show --detail interrupted --most 0 --json > letters.jsonl`,
	}
	f.register(c)
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON line a letter")
	c.Flags().IntVar(&most, "most", 100, "letters at most; 0 is all")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if most < 0 {
			return usageError{fmt.Errorf("--most %d: must not be negative", most)}
		}
		boxes, err := f.boxes(c.Context())
		if err != nil {
			return err
		}
		shown, more := 0, false
		for _, box := range boxes {
			_, err := box.Look(c.Context(), func(l *deadletter.Letter) (bool, error) {
				if !f.filter.Wants(l) {
					return false, nil
				}
				if more = most > 0 && shown == most; more {
					return false, deadletter.ErrEnough
				}
				shown++
				return false, printLetter(c.OutOrStdout(), l, f.json)
			})
			if err != nil {
				return err
			}
			if more {
				fmt.Fprintf(c.ErrOrStderr(), "only the first %d are shown; --most 0 shows all\n", most)
				return nil
			}
		}
		return nil
	}
	return c
}

func printLetter(w io.Writer, l *deadletter.Letter, asJSON bool) error {
	if asJSON {
		return printJSON(w, l)
	}
	dead := "by SQS itself"
	if !l.DeadAt.IsZero() {
		dead = l.DeadAt.Format(time.RFC3339)
	}
	trace := l.TraceID
	if trace == "" {
		trace = "-"
	}
	_, err := fmt.Fprintf(w, "%s %s %s  %s\n  sent %s  dead %s  received %d times  redriven %d times  trace %s\n  %+q\n",
		l.ID, plain(l.End), plain(l.Detail), where(l), l.Sent.Format(time.RFC3339), dead, l.Receives, l.Redriven, trace, l.Body)
	return err
}
