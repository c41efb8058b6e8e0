package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/deadletter"
)

const (
	// atOnce is how many letters may be moved without --yes.
	atOnce = 100
	// maxHeld bounds the bodies that are in memory at once, in bytes.
	maxHeld = 64 << 20
)

// registerMove adds the flags of redrive and drop.
func (f *deadletterFlags) registerMove(c *cobra.Command) {
	f.register(c)
	c.Flags().Float64Var(&f.rate, "rate", 50, "letters a second at most; 0 is unbounded")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done and do nothing")
	c.Flags().BoolVar(&f.yes, "yes", false, fmt.Sprintf("go on with more than %d letters", atOnce))
	c.Flags().BoolVar(&f.json, "json", false, "print the counts as one line of JSON")
}

func newDeadletterRedrive() *cobra.Command {
	var f deadletterFlags
	c := &cobra.Command{
		Use:   "redrive",
		Short: "Send them back to the queue they came from",
		Long: `Send dead letters back to the queue they came from, to be tried again from the
start. Each is sent first and deleted then: to interrupt this loses nothing.`,
		Example: `  objectferry deadletter redrive --detail unavailable --dry-run
  objectferry deadletter redrive --detail throttled --rate 5
  objectferry deadletter redrive --queue sync --match 'img/**' --yes`,
	}
	f.registerMove(c)
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
	c := &cobra.Command{
		Use:   "drop",
		Short: "Delete them, after writing them to a file",
		Long: `Delete dead letters. Each is first written to the file of --to, with its body, so
that it can still be read or sent again; --discard keeps no copy.`,
		Example: `  objectferry deadletter drop --end poison --to poison.jsonl
  objectferry deadletter drop --detail corrupt --match 'tmp/**' --discard`,
	}
	f.registerMove(c)
	c.Flags().StringVar(&to, "to", "", "append them to this `file`, a JSON line each, before they are deleted")
	c.Flags().BoolVar(&discard, "discard", false, "keep no copy")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if (to == "") == !discard {
			return usageError{errors.New("drop needs either --to FILE, or --discard to keep no copy")}
		}
		var w io.Writer = io.Discard
		if to != "" && !f.dryRun {
			file, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return usageError{fmt.Errorf("--to: %w", err)}
			}
			defer file.Close() // Drop syncs it before it deletes
			w = file
		}
		return f.move(c, "dropped", func(ctx context.Context, box *deadletter.Box, letters []*deadletter.Letter) (int, error) {
			return box.Drop(ctx, letters, w, f.rate)
		})
	}
	return c
}

// move collects the letters that the filter wants and gives them to do. None is
// moved before all queues were looked through, so that too many are none.
func (f *deadletterFlags) move(c *cobra.Command, done string, do func(context.Context, *deadletter.Box, []*deadletter.Letter) (int, error)) error {
	if !(f.rate >= 0) { // nor NaN
		return usageError{fmt.Errorf("--rate %v: must not be negative", f.rate)}
	}
	boxes, err := f.boxes(c.Context())
	if err != nil {
		return err
	}
	wanted, total, full, err := f.collect(c.Context(), boxes)
	if err != nil {
		return err
	}
	if f.dryRun {
		return f.printMoved(c.OutOrStdout(), done, 0, total)
	}
	moved := 0
	var errs []error
	for i, box := range boxes {
		n, err := do(c.Context(), box, wanted[i])
		moved += n
		errs = append(errs, err)
	}
	errs = append(errs, f.printMoved(c.OutOrStdout(), done, moved, total))
	if full {
		errs = append(errs, errors.New("there may be more letters than are moved at once; run this again"))
	}
	if err := errors.Join(errs...); err != nil {
		if moved > 0 {
			return partlyError{err}
		}
		return err
	}
	return nil
}

// collect counts the wanted letters and returns those of each box, held, until
// maxHeld is reached; a dry run holds none. On an error all are handed back.
func (f *deadletterFlags) collect(ctx context.Context, boxes []*deadletter.Box) (wanted [][]*deadletter.Letter, total int, full bool, err error) {
	held := 0
	for _, box := range boxes {
		letters, err := box.Look(ctx, func(l *deadletter.Letter) (bool, error) {
			if !f.filter.Wants(l) {
				return false, nil
			}
			if total++; total > atOnce && !f.yes && !f.dryRun {
				return true, usageError{fmt.Errorf("more than %d letters match; nothing was done. Look with `objectferry deadletter ls`, then narrow it or add --yes", atOnce)}
			}
			if f.dryRun {
				return false, nil
			}
			if held += len(l.Body); held >= maxHeld {
				return true, deadletter.ErrEnough
			}
			return true, nil
		})
		if err != nil {
			for i := range wanted {
				_ = boxes[i].HandBack(context.WithoutCancel(ctx), wanted[i]) // they return by themselves
			}
			return nil, 0, false, err
		}
		wanted = append(wanted, letters)
	}
	return wanted, total, held >= maxHeld, nil
}

func (f *deadletterFlags) printMoved(w io.Writer, done string, moved, total int) error {
	var err error
	switch {
	case f.json:
		err = printJSON(w, map[string]any{done: moved, "letters": total, "dry_run": f.dryRun})
	case f.dryRun:
		_, err = fmt.Fprintf(w, "%d letters would be %s\n", total, done)
	default:
		_, err = fmt.Fprintf(w, "%d of %d letters %s\n", moved, total, done)
	}
	return err
}
