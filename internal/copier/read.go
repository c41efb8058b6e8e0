package copier

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
)

// opened is an object whose first part is being read, or has been.
type opened struct {
	object.Attributes
	part object.Range // the first part
	err  error        // of the read of the first part

	block  *block
	known  chan struct{} // closed when the attributes are those of a larger object
	done   chan struct{} // closed when the read has ended
	cancel context.CancelFunc

	tight bool // there was no memory for the first part without waiting
}

// open asks for the first part of an object. It returns when the part is there,
// if that is the whole object, and otherwise as soon as the size is known, so that
// the other parts need not wait for the first one's body.
//
// The object's length is not known before the answer, and nobody waits for memory
// while holding a slot of the source. So it reserves what was enough of late, and
// when that and what is free do not do, it gives the slot back, waits for as much
// as it now knows to need, and asks again.
func (c *Copier) open(ctx context.Context, l *lane, key string) (*opened, error) {
	want := l.typical.Load()
	for {
		b, err := c.memory.wait(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("wait for memory: %w", err)
		}
		o := c.start(ctx, l, key, b)
		select {
		case <-o.known:
			return o, nil
		case <-o.done:
		}
		if o.isKnown() || o.err == nil && !o.tight {
			return o, nil // an error of a first part that is one of several is the part's
		}
		want = o.part.Length
		o.close()
		if o.err != nil {
			return nil, o.err
		}
	}
}

// start begins to read the first part into b, which then belongs to the opened
// object.
func (c *Copier) start(ctx context.Context, l *lane, key string, b *block) *opened {
	o := &opened{block: b, known: make(chan struct{}), done: make(chan struct{})}
	ctx, o.cancel = context.WithCancel(ctx)
	go func() {
		defer close(o.done)
		o.err = c.catch(ctx, "first part", key, func() error {
			return l.SourceGuard.Do(ctx, "GetObject", 0, func(ctx context.Context) error {
				return c.readFirst(ctx, l, key, o)
			})
		})
	}()
	return o
}

// readFirst is one try of the first read.
func (c *Copier) readFirst(ctx context.Context, l *lane, key string, o *opened) error {
	if o.isKnown() {
		return readPart(ctx, l, key, o.Attributes, o.part, o.block.bytes())
	}
	r, err := l.Source.Get(ctx, key, object.Range{Length: c.cfg.PartSize}, "")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	guard.Expect(ctx, r.Range.Length)
	o.Attributes, o.part = r.Attributes, object.Range{Length: min(r.Size, c.cfg.PartSize)}
	if r.Range != o.part {
		return corrupt(key, fmt.Errorf("asked for the first %d bytes of %d, got %d from %d", o.part.Length, r.Size, r.Range.Length, r.Range.Offset))
	}
	if r.Size > c.cfg.MaxSize {
		close(o.known)
		return nil
	}
	if o.tight = !o.block.resize(o.part.Length); o.tight {
		return nil
	}
	l.learn(o.part.Length)
	body := o.block.bytes() // before others may see the block
	if !o.whole() {
		if r.ETag == "" {
			return corrupt(key, errors.New("no ETag, so the parts cannot be pinned to one version"))
		}
		close(o.known)
	}
	if err := fill(body, r.Body, key); err != nil || !o.whole() {
		return err
	}
	return verify(key, o.Attributes, sum(body)) // here, so that the guard sees what a source does to every object
}

// whole reports whether the first part is all there is.
func (o *opened) whole() bool { return o.part.Length == o.Size }

func (o *opened) isKnown() bool {
	select {
	case <-o.known:
		return true
	default:
		return false
	}
}

// wait returns when the first part has been read, or its read was ended because
// ctx was. Nothing writes into the block any more then.
func (o *opened) wait(ctx context.Context) error {
	select {
	case <-o.done:
	case <-ctx.Done():
		o.cancel()
		<-o.done
	}
	return o.err
}

// close ends the read and gives its memory back.
func (o *opened) close() {
	o.cancel()
	<-o.done
	o.block.free()
}

// learn moves the length that the next first part is expected to have.
func (l *lane) learn(length int64) {
	was := l.typical.Load()
	l.typical.Store(was + (length-was)/8)
}

// readPart fills b with one span of the version of an object that first tells of.
func readPart(ctx context.Context, l *lane, key string, first object.Attributes, span object.Range, b []byte) error {
	r, err := l.Source.Get(ctx, key, span, first.ETag)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	guard.Expect(ctx, r.Range.Length)
	switch {
	case r.ETag != first.ETag || r.Size != first.Size || r.HasCRC64 != first.HasCRC64 || r.CRC64 != first.CRC64:
		return &object.Error{Side: object.Source, Op: "GetObject", Key: key, Class: object.Changed,
			Err: fmt.Errorf("a part of ETag %q and size %d, the first was of %q and %d", r.ETag, r.Size, first.ETag, first.Size)}
	case r.Range != span:
		return corrupt(key, fmt.Errorf("asked for %d bytes from %d, got %d from %d", span.Length, span.Offset, r.Range.Length, r.Range.Offset))
	}
	return fill(b, r.Body, key)
}

// fill reads exactly len(b) bytes, and then the end.
func fill(b []byte, body io.Reader, key string) error {
	n, err := io.ReadFull(body, b)
	if err == nil {
		var more int
		if more, err = body.Read(make([]byte, 1)); more > 0 {
			return corrupt(key, fmt.Errorf("body is longer than %d bytes", len(b)))
		}
		if err == nil || errors.Is(err, io.EOF) {
			return nil
		}
	}
	var known *object.Error
	if errors.As(err, &known) {
		return err
	}
	return &object.Error{Side: object.Source, Op: "GetObject", Key: key, Class: object.Unavailable,
		Err: fmt.Errorf("body ended after %d of %d bytes: %w", n, len(b), err)}
}

func corrupt(key string, err error) error {
	return &object.Error{Side: object.Source, Op: "GetObject", Key: key, Class: object.Corrupt, Err: err}
}
