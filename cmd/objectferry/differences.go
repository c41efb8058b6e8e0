package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/objectferry/objectferry/internal/reconcile"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// differences prints what a comparison finds, page by page, and how far it is.
type differences struct {
	out     *bufio.Writer
	json    bool
	summary bool // no rows
	rows    int64
	bar     *progress // nil where nobody would see it
}

func newDifferences(stdout, stderr io.Writer, asJSON, summary bool, keys int64) *differences {
	d := &differences{out: bufio.NewWriter(stdout), json: asJSON, summary: summary}
	if f, ok := stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		d.bar = newProgress(f, keys)
	}
	return d
}

// page is reconcile.Deps.Report: when it returns, the rows are written.
func (d *differences) page(rows []reconcile.Row, t reconcile.Totals) error {
	if !d.summary {
		d.bar.clear()
		for i := range rows {
			if err := d.row(&rows[i]); err != nil {
				return err
			}
		}
		if err := d.out.Flush(); err != nil {
			return err
		}
	}
	d.bar.show(t)
	return nil
}

func (d *differences) row(r *reconcile.Row) error {
	if d.json {
		return printJSON(d.out, jsonRow{r.Class, syncrequest.EscapeKey(r.Key), jsonSide(r.Source), jsonSide(r.Destination), r.Why})
	}
	if d.rows++; d.rows == 1 {
		fmt.Fprintf(d.out, "%-9s %13s %13s  %s\n", "CLASS", "SOURCE", "OVERSEAS", "KEY")
	}
	why := ""
	if r.Why != "" {
		why = "  (" + plain(r.Why) + ")"
	}
	_, err := fmt.Fprintf(d.out, "%-9s %13s %13s  %+q%s\n", r.Class, size(r.Source), size(r.Destination), r.Key, why)
	return err
}

func size(v *reconcile.Version) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(v.Size)
}

type jsonRow struct {
	Class       reconcile.Class `json:"class"`
	Key         string          `json:"key"` // percent-encoded
	Source      *jsonVersion    `json:"source,omitempty"`
	Destination *jsonVersion    `json:"destination,omitempty"`
	Why         string          `json:"why,omitempty"`
}

type jsonVersion struct {
	Size         int64     `json:"size"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified,omitzero"`
}

func jsonSide(v *reconcile.Version) *jsonVersion {
	if v == nil {
		return nil
	}
	return &jsonVersion{v.Size, v.ETag, v.LastModified}
}

// end prints the totals, if the comparison came to its end.
func (d *differences) end(t reconcile.Totals, complete bool) error {
	d.bar.clear()
	if !complete {
		return d.out.Flush()
	}
	if d.json {
		return errors.Join(printJSON(d.out, t), d.out.Flush())
	}
	counts := []string{}
	for _, class := range reconcile.Classes() {
		if n := t.Classes[class]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, class))
		}
	}
	fmt.Fprintf(d.out, "%d keys: %s; %d requested\n", t.Keys, strings.Join(counts, ", "), t.Requested)
	return d.out.Flush()
}

// progress is one line of a terminal that shows how far a comparison is. A nil
// one shows nothing.
type progress struct {
	w       io.Writer
	keys    int64 // in all, 0 when it is not known
	started time.Time
	from    int64 // keys that were done before this run
	shown   time.Time
}

func newProgress(w io.Writer, keys int64) *progress {
	return &progress{w: w, keys: keys, started: time.Now(), from: -1}
}

// clear empties the line: rows are printed to the same terminal.
func (p *progress) clear() {
	if p != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// barWidth is of the bar of a list whose length is known; of listings it is not.
const barWidth = 20

func (p *progress) show(t reconcile.Totals) {
	if p == nil || time.Since(p.shown) < 100*time.Millisecond && t.Keys != p.keys {
		return
	}
	if p.shown = time.Now(); p.from < 0 {
		p.from = t.Keys
	}
	line := fmt.Sprintf("%d keys", t.Keys)
	if p.keys > 0 {
		done := int(min(barWidth, barWidth*t.Keys/p.keys)) // the file may have grown since its lines were counted
		line = fmt.Sprintf("[%s%s] %d of %d keys", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), t.Keys, p.keys)
	}
	if s := time.Since(p.started).Seconds(); s >= 1 {
		line += fmt.Sprintf(", %.0f a second", float64(t.Keys-p.from)/s)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s, %d missing", line, t.Classes[reconcile.Missing])
}
