package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/pkg/accesslog"
)

func newParseCommand() *cobra.Command {
	var all, summary bool
	cmd := &cobra.Command{
		Use:   "parse [--all] [--summary] [FILE...|-]",
		Short: "Read access logs offline and print the misses",
		Long: `Read S3 server access logs, plain or gzip, and print a JSON line for each miss.
Each row is judged alone: no routes, no recent table, no age limit. Without a
FILE, or for -, standard input is read.`,
		Example: `  objectferry parse --summary access/*                  # how many misses?
  zcat log.gz | objectferry parse | jq -r .key          # which keys?
  objectferry parse --all log | jq 'select(.verdict == "unparsed")'`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if all && summary {
				return usageError{errors.New("parse: --all and --summary exclude each other")}
			}
			if len(files) == 0 {
				files = []string{"-"}
			}
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
			var sink rowSink = newRowPrinter(out, all)
			if summary {
				sink = newRowCounter(out)
			}
			err := parseFiles(cmd.Context(), files, cmd.InOrStdin(), sink)
			if errors.Is(err, syscall.EPIPE) {
				return nil // whoever reads has seen enough
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print every row, with its verdict and why")
	cmd.Flags().BoolVar(&summary, "summary", false, "print one line of counts instead")
	return cmd
}

// rowSink takes what parse reads.
type rowSink interface {
	row(file string, line int64, r *accesslog.Row) error
	end() error
}

// parseFiles reads all files, also those behind one that cannot be read. An
// error of the sink ends it.
func parseFiles(ctx context.Context, files []string, stdin io.Reader, sink rowSink) error {
	var problems []error
	for _, name := range files {
		if err := parseFile(ctx, name, stdin, sink); err != nil {
			var unreadable fileError
			if !errors.As(err, &unreadable) {
				return err
			}
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, sink.end())...)
}

// fileError is a log that cannot be read, or not to its end.
type fileError struct {
	name string
	err  error
}

func (e fileError) Error() string { return fmt.Sprintf("parse %q: %v", e.name, e.err) }
func (e fileError) Unwrap() error { return e.err }

func parseFile(ctx context.Context, name string, stdin io.Reader, sink rowSink) error {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fileError{name, err}
		}
		defer f.Close()
		in = f
	}
	rows := accesslog.NewScanner(untilDone{ctx, in})
	for rows.Next() {
		if err := sink.row(name, rows.Line(), rows.Row()); err != nil {
			return err
		}
	}
	switch err := rows.Err(); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fileError{name, err}
	}
}

// untilDone ends a reader with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// rowPrinter prints the misses, or all rows, as JSON lines.
type rowPrinter struct {
	out *bufio.Writer
	enc *json.Encoder
	all bool
}

func newRowPrinter(out *bufio.Writer, all bool) *rowPrinter {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return &rowPrinter{out, enc, all}
}

func (p *rowPrinter) row(file string, line int64, r *accesslog.Row) error {
	if !p.all && r.Verdict != accesslog.Miss {
		return nil
	}
	return p.enc.Encode(struct {
		File       string            `json:"file"`
		LineNumber int64             `json:"line_number"`
		Verdict    accesslog.Verdict `json:"verdict"`
		Why        accesslog.Why     `json:"why"`
		accesslog.Fields
	}{file, line, r.Verdict, r.Why, r.Fields()})
}

func (p *rowPrinter) end() error { return p.out.Flush() }

// counts are rows by verdict. Blank lines are no rows.
type counts struct {
	Rows     int64 `json:"rows"`
	Miss     int64 `json:"miss"`
	Maybe    int64 `json:"maybe"`
	Skip     int64 `json:"skip"`
	Unparsed int64 `json:"unparsed"`
}

func (c *counts) add(v accesslog.Verdict) {
	c.Rows++
	switch v {
	case accesslog.Miss:
		c.Miss++
	case accesslog.Maybe:
		c.Maybe++
	case accesslog.Skip:
		c.Skip++
	case accesslog.Unparsed:
		c.Unparsed++
	}
}

// rowCounter counts rows, in all and by bucket. What is so broken that it names
// no bucket is in the sums only.
type rowCounter struct {
	out     *bufio.Writer
	total   counts
	buckets map[string]*counts
	last    string // the bucket of the row before: most rows have the same
	current *counts
}

func newRowCounter(out *bufio.Writer) *rowCounter {
	return &rowCounter{out: out, buckets: map[string]*counts{}}
}

func (c *rowCounter) row(_ string, _ int64, r *accesslog.Row) error {
	c.total.add(r.Verdict)
	if r.Bucket == nil {
		return nil
	}
	if c.current == nil || string(r.Bucket) != c.last {
		c.last = string(r.Bucket)
		if c.buckets[c.last] == nil {
			c.buckets[c.last] = &counts{}
		}
		c.current = c.buckets[c.last]
	}
	c.current.add(r.Verdict)
	return nil
}

func (c *rowCounter) end() error {
	err := json.NewEncoder(c.out).Encode(struct {
		counts
		Buckets map[string]*counts `json:"buckets"`
	}{c.total, c.buckets})
	return errors.Join(err, c.out.Flush())
}
