package reconcile

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/objectferry/objectferry/internal/object"
)

// named yields a row for each key of the list but the first skip ones.
func (c *Comparison) named(skip int64) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for key, err := range c.cfg.Keys {
			if skip > 0 && err == nil {
				skip--
				continue
			}
			row := item{Row{Key: key}, true}
			switch {
			case !c.deps.Route.Carries(key):
				row.Class, row.ask = Filtered, false
			case len(key) > object.MaxKey:
				row.Class, row.ask = Unfit, false
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// unansweredInARow is how many keys in a row, over all pages, may come to no
// answer. Fewer are the keys' own doing, or no run would ever come past them.
const unansweredInARow = 16

// ask settles the rows of a page whose keys must be asked for. A key that fails
// alone is a row that failed. When one after the other comes to no answer, or a
// side refuses us altogether, the run ends: it is not the keys that are wrong.
func (c *Comparison) ask(ctx context.Context, page []item) error {
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(c.cfg.AtOnce)
	for i := range page {
		if !page[i].ask || asking.Err() != nil {
			continue
		}
		g.Go(func() error {
			row, err := c.compare(asking, page[i].Key)
			page[i].Row = row
			switch object.ClassOf(err) {
			case "":
				c.unanswered.Store(0)
			case object.Refused, object.Canceled:
				return err
			case object.Unavailable, object.Throttled:
				if n := c.unanswered.Add(1); n >= unansweredInARow {
					return fmt.Errorf("%d keys in a row came to no answer: %w", n, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err() // rows that were passed over have no class
}

// compare asks both sides about a key. The error is why the row has class Failed.
func (c *Comparison) compare(ctx context.Context, key string) (Row, error) {
	row := Row{Class: Failed, Key: key}
	found, err := again(ctx, func(ctx context.Context) (object.Found, error) { return c.deps.Destination.Head(ctx, key) })
	if err != nil {
		row.Why = err.Error()
		return row, err
	}
	if found.Exists {
		row.Destination = &Version{found.Size, found.ETag, found.LastModified}
	}
	if found.Deleted {
		row.Class = Deleted
		return row, nil
	}
	src, err := again(ctx, func(ctx context.Context) (object.Attributes, error) { return c.atOf(ctx, key) })
	switch class := object.ClassOf(err); {
	case class == "":
		row.Source = &Version{src.Size, src.ETag, src.LastModified}
	case class == object.Absent && found.Exists:
		row.Class = Overseas
		return row, nil
	case class == object.Absent:
		row.Class = Absent
		return row, nil
	case class == object.Denied || class == object.Archived:
		row.Class, row.Why = Class(class), object.CodeOf(err)
		if found.Exists {
			row.Class = Unsure
		}
		return row, nil
	default:
		row.Why = err.Error()
		return row, err
	}
	switch {
	case found.Exists:
		row.Class, row.Why = judge(src, found)
	case src.Size > c.cfg.MaxSize:
		row.Class = Unfit
	default:
		row.Class = Missing
	}
	return row, nil
}

// atOf reads one byte: unlike a HEAD, its refusal says why.
func (c *Comparison) atOf(ctx context.Context, key string) (object.Attributes, error) {
	read, err := c.deps.Source.Get(ctx, key, object.Range{Length: 1}, "")
	if err != nil {
		return object.Attributes{}, err
	}
	return read.Attributes, read.Body.Close()
}

// judge compares what stands on both sides. Of what the ferry wrote, the version
// that it carried is known; of what others wrote, size and ETag are all there is.
func judge(src object.Attributes, found object.Found) (Class, string) {
	switch {
	case src.Size != found.Size:
		return Different, whySize
	case sameETag(src.ETag, found.ETag), sameETag(src.ETag, found.SourceETag):
		return Same, ""
	case src.HasCRC64 && found.SourceCRC64 == strconv.FormatUint(src.CRC64, 10):
		return Same, "" // the same bytes, uploaded again
	case found.SourceETag != "":
		return Different, "another version of the source was carried"
	}
	return Unsure, "not the ferry's, and the ETags cannot be compared"
}
