// Package reconcile compares a source with a destination, key by key, and
// requests what is missing.
//
// What it promises: a key is missing only by whole and sorted listings of both
// sides, or by what both sides say of it; a key that the route does not carry is
// counted, but neither asked for nor named nor requested; memory is that of a few
// pages, however many keys there are. A run that was killed at any point and is
// repeated with its state file ends with the totals of one that was not, and each
// missing key has been requested at least once.
//
// Keys go by in pages: each is compared, told, requested and noted as done, in
// this order, before the next is begun. A Comparison is for one Run.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
)

// pageSize is how many keys are done between two notes in the state file.
const pageSize = 500

// lister lists one side; see the stores' List.
type lister interface {
	List(ctx context.Context, prefix, after, next string) (object.Page, error)
}

// source is read as the route says; internal/cos implements it.
type source interface {
	lister
	Get(ctx context.Context, key string, r object.Range, pin string) (*object.Read, error)
}

// destination is only looked at; internal/s3store implements it.
type destination interface {
	lister
	Head(ctx context.Context, key string) (object.Found, error)
}

// sender is the route's sync queue; queue.Sender implements it.
type sender interface {
	Send(ctx context.Context, entries []queue.Entry) []error
}

// Deps are what a comparison works with. Sender may be nil when nothing is
// requested.
type Deps struct {
	Route       *route.Route
	Source      source
	Destination destination
	Sender      sender
	// Report is told each page once it is compared: the rows that differ, and the
	// totals so far. After a kill a page may be told again.
	Report func([]Row, Totals) error
}

// Config says what is compared.
type Config struct {
	// Prefix of the keys that both sides list.
	Prefix string
	// Keys are compared instead, each asked for on both sides; nil lists. KeysID
	// tells one list from another, for the state file.
	Keys   iter.Seq2[string, error]
	KeysID string
	// Deep asks about each key of which the listings do not tell enough.
	Deep bool
	// MaxSize of an object that can be carried.
	MaxSize int64
	// AtOnce bounds the questions that are asked at once.
	AtOnce int

	// Request puts a sync request for each missing key, Rate a second at most; 0 is
	// unbounded. More than AtMost are none, unless it is 0.
	Request bool
	Rate    float64
	AtMost  int

	// State is the file that makes a run resumable, "" for none.
	State string
}

// Row is one key and what was found of it.
type Row struct {
	Class       Class
	Key         string
	Source      *Version // nil when it is not there, or not known
	Destination *Version
	Why         string
}

// Version is an object as one side tells it.
type Version struct {
	Size         int64
	ETag         string
	LastModified time.Time
}

// Totals count keys.
type Totals struct {
	Keys      int64           `json:"keys"`
	Classes   map[Class]int64 `json:"classes"`
	Requested int64           `json:"requested"`
}

// item is a row on its way.
type item struct {
	Row
	ask bool // both sides must be asked before its class is known
}

// Comparison is one run.
type Comparison struct {
	deps  Deps
	cfg   Config
	notes *notes
	heal  *healer
	done  state // up to the last page that is done

	unanswered atomic.Int64 // keys since the last one that was answered
}

// New wires a comparison. It reads the state file, if there is one, and refuses
// that of another comparison.
func New(deps Deps, cfg Config) (*Comparison, error) {
	c := &Comparison{deps: deps, cfg: cfg}
	if c.cfg.AtOnce < 1 {
		c.cfg.AtOnce = 16
	}
	var err error
	if c.notes, err = openNotes(cfg.State, identify(deps.Route, cfg)); err != nil {
		return nil, err
	}
	c.done = c.notes.last
	if c.done.Totals.Classes == nil {
		c.done.Totals.Classes = map[Class]int64{}
	}
	if cfg.Request {
		c.heal = &healer{route: deps.Route, sender: deps.Sender, rate: cfg.Rate, atMost: cfg.AtMost, held: c.done.Held}
	}
	return c, nil
}

// Resumed reports whether a run that was interrupted goes on.
func (c *Comparison) Resumed() bool { return c.notes.resumed }

// Run compares all keys. The totals are those so far, also beside an error; it
// has removed the state file when it has come to the end.
func (c *Comparison) Run(ctx context.Context) (Totals, error) {
	rows := c.listed(ctx, c.done.After)
	if c.cfg.Keys != nil {
		rows = c.named(c.done.Totals.Keys)
	}
	page := make([]item, 0, pageSize)
	for row, err := range rows {
		if err != nil {
			return c.done.Totals, err
		}
		if page = append(page, row); len(page) == pageSize {
			if err := c.settle(ctx, page); err != nil {
				return c.done.Totals, err
			}
			page = page[:0]
		}
	}
	if err := c.settle(ctx, page); err != nil {
		return c.done.Totals, err
	}
	var tooMany error
	if c.heal != nil {
		var err error
		c.done.Totals.Requested, err = c.heal.finish(ctx, c.done.Totals.Requested)
		if err != nil && !errors.Is(err, ErrTooMany) {
			return c.done.Totals, err
		}
		tooMany = err
	}
	return c.done.Totals, errors.Join(tooMany, c.notes.remove())
}

// settle does one page, and then notes it as done.
func (c *Comparison) settle(ctx context.Context, page []item) error {
	if len(page) == 0 {
		return nil
	}
	if err := c.ask(ctx, page); err != nil {
		return err
	}
	t := &c.done.Totals
	var tell []Row
	for _, row := range page {
		t.Keys++
		t.Classes[row.Class]++
		if row.Class != Same && row.Class != Filtered {
			tell = append(tell, row.Row)
		}
		if row.Class == Missing && c.heal != nil {
			if err := c.heal.add(row.Key); err != nil {
				return err
			}
		}
	}
	if err := c.deps.Report(tell, *t); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if c.heal != nil {
		n, err := c.heal.send(ctx)
		t.Requested += n
		if err != nil {
			return err
		}
		c.done.Held = c.heal.held
	}
	c.done.After = page[len(page)-1].Key
	return c.notes.save(c.done)
}
