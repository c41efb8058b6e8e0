package copier

import (
	"context"
	"hash/crc64"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/objectferry/objectferry/internal/object"
)

const (
	maxParts     = 10_000 // of one upload: S3's limit
	partsAtOnce  = 16     // of one copy, as far as memory and the guards' limits let it
	partTries    = 3      // of one read or write of one part, beside the guard's own
	abortTimeout = 5 * time.Second
	// Complete takes S3 longer the more parts there are, up to minutes; this much a
	// part is added to its deadline as if it were bytes to be moved.
	completeAllowance = 4 << 10
)

// parts is one object on its way through a multipart upload.
type parts struct {
	c      *Copier
	l      *lane
	key    string
	first  *opened
	upload Upload
	ranges []object.Range
	sums   []uint64 // of each part; each written by the part's own goroutine
}

// putParts writes an object of several parts. It becomes visible only when their
// combined sum is the source's; on every other way out the upload is aborted.
func (c *Copier) putParts(ctx context.Context, l *lane, key string, first *opened, p object.Provenance) (result, error) {
	ranges := split(first.Size, first.part.Length)
	w := &parts{c: c, l: l, key: key, first: first, ranges: ranges, sums: make([]uint64, len(ranges))}
	err := l.DestinationGuard.Do(ctx, "CreateMultipartUpload", 0, func(ctx context.Context) (err error) {
		w.upload, err = l.Destination.Begin(ctx, key, first.Attributes, p)
		return err
	})
	if err != nil {
		return result{}, err
	}
	var r result
	defer func() {
		if r.End != object.EndCopied {
			w.abort(ctx)
		}
	}()
	if err := w.carry(ctx); err != nil {
		return result{}, err
	}
	if err := verify(key, first.Attributes, w.sum()); err != nil {
		return result{}, err
	}
	r, err = c.commit(ctx, l, key, p.CopyID, func(ctx context.Context) error {
		return l.DestinationGuard.Do(ctx, "CompleteMultipartUpload", int64(len(ranges))*completeAllowance, w.upload.Complete)
	})
	return r.of(first.Attributes), err
}

// carry takes all parts over, several at once. It waits for memory while other
// parts hold some, but those never wait for more, so they end and free theirs.
func (w *parts) carry(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	var noMemory error
	for i, r := range w.ranges {
		b := w.first.block
		if i > 0 {
			if b, noMemory = w.c.memory.wait(ctx, r.Length); noMemory != nil {
				break
			}
		}
		g.Go(func() error {
			return w.c.catch(ctx, "part", w.key, func() error { return w.part(ctx, i, b) })
		})
	}
	if err := g.Wait(); err != nil {
		return err // the first; it also ended the wait for memory
	}
	return noMemory
}

// part takes part i over and frees its memory. A read or a write that fails is
// tried again alone.
func (w *parts) part(ctx context.Context, i int, b *block) error {
	defer b.free()
	span, body := w.ranges[i], b.bytes()
	err := tryPart(ctx, func(try int) error {
		if i == 0 && try == 0 {
			return w.first.wait(ctx)
		}
		return w.l.SourceGuard.Do(ctx, "GetObject", 0, func(ctx context.Context) error {
			return readPart(ctx, w.l, w.key, w.first.Attributes, span, body)
		})
	})
	if err != nil {
		return err
	}
	w.sums[i] = sum(body)
	return tryPart(ctx, func(int) error {
		err := w.l.DestinationGuard.Do(ctx, "UploadPart", span.Length, func(ctx context.Context) error {
			return w.upload.Part(ctx, i+1, body)
		})
		if err != nil {
			b.spoil()
		}
		return err
	})
}

// sum is the CRC-64/ECMA of the whole object.
func (w *parts) sum() uint64 {
	var all uint64 // the sum of no bytes
	for i, s := range w.sums {
		all = object.CombineCRC64(crc64.ECMA, all, s, w.ranges[i].Length)
	}
	return all
}

// abort throws the parts away, also when the copy was cancelled. It does not go
// through the guard: a closed gate must not leave parts behind. What it cannot
// remove, the bucket's lifecycle rule does.
func (w *parts) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if err := w.upload.Abort(ctx); err != nil {
		w.c.tel.Log.Debug().Ctx(ctx).Err(err).Msg("multipart upload not aborted; the lifecycle rule will remove it")
	}
}

// split cuts an object into its first part and others of one length.
func split(size, part int64) []object.Range {
	length := partLength(size, part)
	ranges := []object.Range{{Length: part}}
	for at := part; at < size; at += length {
		ranges = append(ranges, object.Range{Offset: at, Length: min(length, size-at)})
	}
	return ranges
}

// partLength is the length of the parts after the first: part, or as many whole
// MiB as it takes to need no more than maxParts.
func partLength(size, part int64) int64 {
	if size <= part*maxParts {
		return part
	}
	const step = 1 << 20
	least := (size - part + maxParts - 2) / (maxParts - 1)
	return (least + step - 1) / step * step
}

// tryPart runs do until it succeeds, fails in a way that another try cannot heal,
// or has failed partTries times. do is told which try it is, from 0.
func tryPart(ctx context.Context, do func(try int) error) error {
	var err error
	for try := range partTries {
		if try > 0 {
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
		if err = do(try); err == nil {
			return nil
		}
		switch object.ClassOf(err) {
		case object.Unavailable, object.Throttled, object.Corrupt, object.Ambiguous:
		default:
			return err
		}
	}
	return err
}

// pause waits between two tries: half to all of 200 ms, doubled with each try.
func pause(ctx context.Context, try int) error {
	longest := 100 * time.Millisecond << try
	t := time.NewTimer(longest/2 + rand.N(longest/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
