package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/explain"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

func newExplainCommand() *cobra.Command {
	var configFile, bucket string
	var encoded, asJSON bool
	c := &cobra.Command{
		Use:   "explain --bucket B KEY",
		Short: "Say of one key what would become of a request for it now, and why",
		Long: `Say of one key what would become of a request for it now, and why: its route and
filters, what the destination and the source answer, the end, and what to do.

The service's own copier decides, up to where its first write would begin. Nothing
is written, received or sent; of the source's object one byte is read, in the way
that the route says. Whether it may be written is not tried: check --live does.

KEY is given as it is, decoded; --encoded takes it percent-encoded, as messages
have it. Exit code 1 says that a store could not be asked.`,
		Example: `  objectferry explain --bucket overseas-media 'img/b c.jpg'
  objectferry explain --bucket overseas-media --encoded img/b%20c.jpg --json`,
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&bucket, "bucket", "", "the S3 bucket that visitors read")
	c.Flags().BoolVar(&encoded, "encoded", false, "KEY is percent-encoded, as in messages")
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		key := args[0]
		if encoded {
			var err error
			if key, err = syncrequest.UnescapeKey(key); err != nil {
				return usageError{fmt.Errorf("key %q: %w", args[0], err)}
			}
		}
		if bucket == "" || key == "" {
			return wrongUsage(c, errors.New("explain needs --bucket and a key"))
		}
		cfg, err := config.Load(configFile, nil)
		if err != nil {
			return err
		}
		x, err := explain.New(cfg, configFile, app.Lane)
		if err != nil {
			return usageError{err}
		}
		e, err := x.Explain(c.Context(), bucket, key)
		if err != nil {
			return err
		}
		if asJSON {
			err = printJSON(c.OutOrStdout(), e)
		} else {
			err = printExplanation(c.OutOrStdout(), e)
		}
		return errors.Join(err, unanswered(e))
	}
	return c
}

// unanswered says which store could not be asked.
func unanswered(e *explain.Explanation) error {
	var errs []error
	for _, store := range []struct {
		name   string
		answer *explain.Answer
	}{{"destination", e.Destination}, {"source", e.Source}} {
		if store.answer != nil && !store.answer.Answered() {
			errs = append(errs, fmt.Errorf("the %s could not be asked: %s", store.name, store.answer.State))
		}
	}
	return errors.Join(errs...)
}

func printExplanation(w io.Writer, e *explain.Explanation) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "KEY\t%+q\n", "s3://"+e.Bucket+"/"+e.RawKey())
	if r := e.Route; r != nil {
		fmt.Fprintf(t, "ROUTE\t%s from %s, read %s, queue %s\n", r.Mode, r.Source, r.Read, plain(r.Queue))
		carried := "not carried"
		if r.Carries {
			carried = "carried"
		}
		fmt.Fprintf(t, "FILTERS\t%s: %s", carried, r.By)
		if r.Glob != "" {
			fmt.Fprintf(t, " %+q", r.Glob)
		}
		fmt.Fprintf(t, "\nDESTINATION\t%s\nSOURCE\t%s\n", answerText(e.Destination, true), answerText(e.Source, false))
	} else {
		fmt.Fprintf(t, "ROUTE\tnone: no route of the configuration has this bucket\n")
	}
	fmt.Fprintf(t, "A REQUEST NOW\t%s\n", outcomeText(e.Request))
	for i, s := range e.Steps {
		head := ""
		if i == 0 {
			head = "TO DO"
		}
		if s.Command == "" {
			fmt.Fprintf(t, "%s\t%s\n", head, s.Text)
		} else {
			fmt.Fprintf(t, "%s\t%s:\n\t  %s\n", head, s.Text, s.Command)
		}
	}
	return t.Flush()
}

// answerText is what a store answered, in one line. Texts of the store's are
// quoted where a terminal would obey them.
func answerText(a *explain.Answer, destination bool) string {
	words := []string{a.State}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if a.Size != nil {
		add("%d bytes", *a.Size)
	}
	if a.ETag != "" {
		add("ETag %s", strings.Trim(plain(strings.Trim(a.ETag, `"`)), `"`))
	}
	if a.CRC64 != "" {
		add("CRC-64 %s", a.CRC64)
	}
	if a.StorageClass != "" {
		add("class %s", plain(a.StorageClass))
	}
	if a.LastModified != nil {
		add("last modified %s", a.LastModified.UTC().Format(time.RFC3339))
	}
	switch {
	case a.State != explain.Present || !destination:
	case a.CopyID != "":
		add("written by objectferry (copy %s)", plain(a.CopyID))
	default:
		add("written by somebody else")
	}
	if a.Code != "" {
		add("%s", plain(a.Code))
	}
	if a.Note != "" {
		add("%s", plain(a.Note))
	}
	return strings.Join(words, ", ")
}

func outcomeText(o explain.Outcome) string {
	end := strings.TrimSpace(string(o.End) + " " + string(o.Detail))
	text := "would end: " + end
	switch o.Then {
	case explain.Again:
		text = "would be tried again, and if nothing changes become a dead letter: " + end
	case explain.Waits:
		text = "would wait: a gate is closed, and nothing is received until it opens"
	}
	if o.Note != "" {
		text += "; " + plain(o.Note)
	}
	return text
}
