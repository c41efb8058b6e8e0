package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/deadletter"
)

// atOnce is how many letters may be moved without --yes.
const atOnce = 100

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
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("deadletter needs one of: ls, show, redrive, drop")}
		},
	}
	c.AddCommand(newDeadletterLs(), newDeadletterShow(), newDeadletterRedrive(), newDeadletterDrop())
	return c
}

func (f *deadletterFlags) register(c *cobra.Command, moves bool) {
	c.Args = usageArgs(cobra.NoArgs)
	c.Flags().StringVar(&f.config, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&f.queue, "queue", "", "only the dead letters of this queue: logs or sync")
	c.Flags().StringVar(&f.filter.End, "end", "", "only this end: poison or failed")
	c.Flags().StringVar(&f.filter.Detail, "detail", "", "only this detail, such as unavailable")
	c.Flags().StringVar(&f.filter.Match, "match", "", "only keys that this `glob` matches; ** crosses slashes")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON lines")
	if moves {
		c.Flags().Float64Var(&f.rate, "rate", 50, "letters a second at most; 0 is unbounded")
		c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done and do nothing")
		c.Flags().BoolVar(&f.yes, "yes", false, fmt.Sprintf("go on with more than %d letters", atOnce))
	}
}

// boxes opens the dead-letter queues that the flags name.
func (f *deadletterFlags) boxes(ctx context.Context) ([]*deadletter.Box, error) {
	if f.queue != "" && f.queue != "logs" && f.queue != "sync" {
		return nil, usageError{fmt.Errorf("--queue %q: must be logs or sync", f.queue)}
	}
	if err := f.filter.Validate(); err != nil {
		return nil, usageError{err}
	}
	cfg, err := config.Load(f.config, config.Overrides{})
	if err != nil {
		return nil, err
	}
	client, err := app.SQS(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var boxes []*deadletter.Box
	open := func(name, url string) error {
		if f.queue != "" && f.queue != name {
			return nil
		}
		box, err := deadletter.Open(ctx, client, name, url)
		boxes = append(boxes, box)
		return err
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
	c := &cobra.Command{Use: "ls", Short: "Group them by reason, with an example each; everything is handed back"}
	f.register(c, false)
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
		e := json.NewEncoder(w)
		for _, g := range list {
			if err := e.Encode(g); err != nil {
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", g.Queue, g.End, g.Detail, g.Letters, g.Oldest.Format(time.RFC3339), where(&g.Example))
	}
	fmt.Fprintf(t, "all\t\t\t%d\t\t\n", total)
	return t.Flush()
}

// where names what a letter is about. Keys are percent-encoded, so nothing in
// them reaches the terminal.
func where(l *deadletter.Letter) string {
	if l.Bucket == "" {
		return "message " + l.ID
	}
	return fmt.Sprintf("%+q", "s3://"+l.Bucket+"/"+l.Key)
}

func newDeadletterShow() *cobra.Command {
	var f deadletterFlags
	var most int
	c := &cobra.Command{Use: "show", Short: "Print each letter; everything is handed back"}
	f.register(c, false)
	c.Flags().IntVar(&most, "most", 100, "letters at most; 0 is all")
	c.RunE = func(c *cobra.Command, _ []string) error {
		boxes, err := f.boxes(c.Context())
		if err != nil {
			return err
		}
		shown, errEnough := 0, errors.New("enough")
		for _, box := range boxes {
			_, err := box.Look(c.Context(), func(l *deadletter.Letter) (bool, error) {
				if !f.filter.Wants(l) {
					return false, nil
				}
				if most > 0 && shown == most {
					return false, errEnough
				}
				shown++
				return false, printLetter(c.OutOrStdout(), l, f.json)
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

func printLetter(w io.Writer, l *deadletter.Letter, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(l)
	}
	_, err := fmt.Fprintf(w, "%s  %s %s  %s\n  sent %s  received %d times  redriven %d times  trace %s\n  %+q\n",
		l.ID, l.End, l.Detail, where(l), l.Sent.Format(time.RFC3339), l.Receives, l.Redriven, orDash(l.TraceID), l.Body)
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newDeadletterRedrive() *cobra.Command {
	var f deadletterFlags
	c := &cobra.Command{Use: "redrive", Short: "Send them back to the queue they came from"}
	f.register(c, true)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.move(c, "redriven", func(ctx context.Context, box *deadletter.Box, letters []*deadletter.Letter) (int, error) {
			return box.Redrive(ctx, letters, f.rate)
		})
	}
	return c
}

func newDeadletterDrop() *cobra.Command {
	var f deadletterFlags
	var to string
	var discard bool
	c := &cobra.Command{Use: "drop", Short: "Delete them, after writing them to a file"}
	f.register(c, true)
	c.Flags().StringVar(&to, "to", "", "append them to this `file`, a JSON line each, before they are deleted")
	c.Flags().BoolVar(&discard, "discard", false, "keep no copy")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if (to == "") == !discard {
			return usageError{errors.New("drop needs --to FILE, or --discard to keep no copy")}
		}
		var w io.Writer = io.Discard
		if to != "" && !f.dryRun {
			file, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return usageError{err}
			}
			defer file.Close()
			w = file
		}
		return f.move(c, "dropped", func(ctx context.Context, box *deadletter.Box, letters []*deadletter.Letter) (int, error) {
			return box.Drop(ctx, letters, w, f.rate)
		})
	}
	return c
}

// move collects the letters that the filter wants and gives them to do.
func (f *deadletterFlags) move(c *cobra.Command, done string, do func(context.Context, *deadletter.Box, []*deadletter.Letter) (int, error)) error {
	if f.rate < 0 {
		return usageError{fmt.Errorf("--rate %v: must not be negative", f.rate)}
	}
	boxes, err := f.boxes(c.Context())
	if err != nil {
		return err
	}
	tooMany := usageError{fmt.Errorf("more than %d letters match; nothing was done. Look with `objectferry deadletter ls`, then add --yes", atOnce)}
	wanted := make([][]*deadletter.Letter, len(boxes))
	total := 0
	for i, box := range boxes {
		wanted[i], err = box.Look(c.Context(), func(l *deadletter.Letter) (bool, error) {
			if !f.filter.Wants(l) {
				return false, nil
			}
			if total++; total > atOnce && !f.yes && !f.dryRun {
				return true, tooMany
			}
			return true, nil
		})
		if err != nil {
			handBack(c.Context(), boxes[:i], wanted)
			return err
		}
	}
	if f.dryRun {
		handBack(c.Context(), boxes, wanted)
		fmt.Fprintf(c.OutOrStdout(), "%d letters would be %s\n", total, done)
		return nil
	}
	moved := 0
	var errs []error
	for i, box := range boxes {
		n, err := do(c.Context(), box, wanted[i])
		moved += n
		errs = append(errs, err)
	}
	fmt.Fprintf(c.OutOrStdout(), "%d of %d letters %s\n", moved, total, done)
	if err := errors.Join(errs...); err != nil {
		if moved > 0 {
			return partlyError{err}
		}
		return err
	}
	return nil
}

func handBack(ctx context.Context, boxes []*deadletter.Box, letters [][]*deadletter.Letter) {
	for i, box := range boxes {
		_ = box.HandBack(context.WithoutCancel(ctx), letters[i]) // they return by themselves
	}
}

// usageArgs makes a wrong number of arguments a mistake on the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
