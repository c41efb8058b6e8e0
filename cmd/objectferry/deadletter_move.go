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

// atOnce is how many letters, or keys, may be moved without --yes; as many are
// held then.
const atOnce = deadletter.AtOnce

// registerMove adds the flags of redrive and drop.
func (f *deadletterFlags) registerMove(c *cobra.Command) {
	f.register(c)
	c.Flags().Float64Var(&f.rate, "rate", deadletter.UsualRate, "letters a second at most; 0 is unbounded")
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

// mover is what becomes of letters: it moves those it is given.
type mover func(context.Context, *deadletter.Box, []*deadletter.Letter) (int, error)

// move moves the letters that the filter wants, all of them: with --yes as they
// come, without it only after all queues were looked through, so that too many
// are none.
func (f *deadletterFlags) move(c *cobra.Command, done string, do mover) error {
	if !(f.rate >= 0) { // nor NaN
		return usageError{fmt.Errorf("--rate %v: must not be negative", f.rate)}
	}
	boxes, err := f.boxes(c.Context())
	if err != nil {
		return err
	}
	for _, box := range boxes {
		// A hint, about a number that is approximate: no reason to fail.
		if n, err := box.Held(c.Context()); err == nil && n > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "about %d letters are held by another command, or by one that was killed; they return within five minutes, run this again then\n", n)
		}
	}
	steps := f.moveCounted
	if f.yes && !f.dryRun {
		steps = f.moveAll
	}
	moved, total, err := steps(c.Context(), boxes, do)
	var usage usageError
	if errors.As(err, &usage) {
		return err
	}
	if err == nil || total > 0 {
		err = errors.Join(err, f.printMoved(c.OutOrStdout(), done, moved, total))
	}
	if err != nil && moved > 0 {
		return partlyError{err}
	}
	return err
}

func (f *deadletterFlags) moveAll(ctx context.Context, boxes []*deadletter.Box, do mover) (moved, total int, err error) {
	for _, box := range boxes {
		n, wanted, e := box.All(ctx, f.filter.Wants, func(ctx context.Context, letters []*deadletter.Letter) (int, error) { return do(ctx, box, letters) })
		moved, total, err = moved+n, total+wanted, errors.Join(err, e)
	}
	return moved, total, err
}

// moveCounted counts the wanted letters first and holds them meanwhile; a dry run
// holds none. On an error all are handed back.
func (f *deadletterFlags) moveCounted(ctx context.Context, boxes []*deadletter.Box, do mover) (moved, total int, err error) {
	var held [][]*deadletter.Letter
	for _, box := range boxes {
		letters, err := box.Look(ctx, func(l *deadletter.Letter) (bool, error) {
			if !f.filter.Wants(l) {
				return false, nil
			}
			if total++; total > atOnce && !f.dryRun {
				return true, usageError{fmt.Errorf("more than %d letters match; nothing was done. Look with `objectferry deadletter ls`, then narrow it or add --yes", atOnce)}
			}
			return !f.dryRun, nil
		})
		if err != nil {
			for i := range held {
				_ = boxes[i].HandBack(context.WithoutCancel(ctx), held[i]) // they return by themselves
			}
			return 0, 0, err
		}
		held = append(held, letters)
	}
	for i := range held {
		n, e := do(ctx, boxes[i], held[i])
		moved, err = moved+n, errors.Join(err, e)
	}
	return moved, total, err
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
