package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/objectferry/objectferry/internal/object"
)

// listed yields a row for each key that either side lists after the key after, in
// the order of the keys' bytes, which is the order in which COS and S3 list. It
// holds one page of each side.
func (c *Comparison) listed(ctx context.Context, after string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		src, stop := heads(walk(ctx, object.Source, c.deps.Source, c.cfg.Prefix, after))
		defer stop()
		dst, stop := heads(walk(ctx, object.Destination, c.deps.Destination, c.cfg.Prefix, after))
		defer stop()
		for {
			// Both are looked at before either is told, so that a side that failed is
			// not taken for one that has come to its end.
			s, sOK, sErr := src.head()
			d, dOK, dErr := dst.head()
			if err := errors.Join(sErr, dErr); err != nil {
				yield(item{}, err)
				return
			}
			var row item
			switch {
			case !sOK && !dOK:
				return
			case !dOK || sOK && s.Key < d.Key:
				row = c.atSource(s)
				src.drop()
			case !sOK || d.Key < s.Key:
				row = overseas(d)
				dst.drop()
			default:
				row = c.onBoth(s, d)
				src.drop()
				dst.drop()
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// queueOf is a listing with a look at its next entry.
type queueOf struct {
	next func() (object.Listed, error, bool)

	looked bool
	entry  object.Listed
	ok     bool
	err    error
}

func heads(listing iter.Seq2[object.Listed, error]) (*queueOf, func()) {
	next, stop := iter.Pull2(listing)
	return &queueOf{next: next}, stop
}

// head is the next entry, and whether there is one.
func (q *queueOf) head() (object.Listed, bool, error) {
	if !q.looked {
		q.looked = true
		q.entry, q.err, q.ok = q.next()
	}
	return q.entry, q.ok && q.err == nil, q.err
}

func (q *queueOf) drop() { q.looked = false }

// maxEmpty is how many pages in a row may have no key. S3 sends empty ones where
// it passes over many delete markers.
const maxEmpty = 1000

// walk yields what one side lists after a key. An error is the last it yields. It
// judges each page as a whole before any of it is used, and takes none that is
// out of order or leads nowhere: a merge would otherwise take a key that comes
// too late for one that is missing, or never end.
func walk(ctx context.Context, side object.Side, l lister, prefix, after string) iter.Seq2[object.Listed, error] {
	return func(yield func(object.Listed, error) bool) {
		wrong := func(format string, args ...any) {
			yield(object.Listed{}, &object.Error{Side: side, Op: "list", Key: prefix, Class: object.Corrupt, Err: fmt.Errorf(format, args...)})
		}
		last, next, empty := after, "", 0
		for {
			page, err := again(ctx, func(ctx context.Context) (object.Page, error) { return l.List(ctx, prefix, after, next) })
			if err != nil {
				yield(object.Listed{}, err)
				return
			}
			objects := page.Objects
			if len(objects) > 0 && last != "" && objects[0].Key == last {
				objects = objects[1:] // a page may begin with the key it was to begin after
			}
			for i, o := range objects {
				if !strings.HasPrefix(o.Key, prefix) {
					wrong("key %q does not begin with the prefix", o.Key)
					return
				}
				if o.Key <= last && (i > 0 || last != "") {
					wrong("the listing is not in the order of the keys' bytes, or does not advance: %q comes after %q", o.Key, last)
					return
				}
				last = o.Key
			}
			for _, o := range objects {
				if !yield(o, nil) {
					return
				}
			}
			if empty++; len(objects) > 0 {
				empty = 0
			}
			switch {
			case page.Next == "":
				return
			case page.Next == next || empty == maxEmpty:
				wrong("the listing goes on, but does not advance")
				return
			}
			next = page.Next
		}
	}
}
