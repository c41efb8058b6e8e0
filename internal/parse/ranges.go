package parse

import (
	"context"
	"io"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
)

// chunk is how much of a log object one guarded read brings, in bytes. Most logs
// are smaller. A read has its own deadline and is over before its rows are sent
// on, so a slow sync queue can never time out a read, nor a slow reader hold one.
const chunk = 2 << 20

// Open reads one log object for others, as the service reads it; ctx ends it.
// Errors are those of the store and of the guard.
func Open(ctx context.Context, store LogStore, g Guard, bucket, key string) io.Reader {
	return &ranges{store: store, guard: g, bucket: bucket, key: key, ctx: ctx}
}

// ranges reads a log object chunk by chunk, each pinned to the first one's ETag.
type ranges struct {
	store       LogStore
	guard       Guard
	bucket, key string

	ctx    context.Context
	pin    string
	begun  bool  // the first read has been made, so pin and size are known
	size   int64 // of the whole object
	offset int64 // of the next read
	buf    []byte
	rest   []byte // of buf, not handed out yet
}

// Read is io.Reader.
func (r *ranges) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.begun && r.offset >= r.size {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *ranges) next() error {
	span := object.Range{Offset: r.offset, Length: chunk}
	return r.guard.Do(r.ctx, "GetObject", 0, func(ctx context.Context) error {
		in, err := r.store.Read(ctx, r.bucket, r.key, span, r.pin)
		if err != nil {
			return err
		}
		defer in.Body.Close()
		guard.Expect(ctx, in.Range.Length)
		if int64(cap(r.buf)) < in.Range.Length {
			r.buf = make([]byte, in.Range.Length)
		}
		r.buf = r.buf[:in.Range.Length]
		if _, err := io.ReadFull(in.Body, r.buf); err != nil {
			return err
		}
		r.begun, r.pin, r.size, r.offset, r.rest = true, in.ETag, in.Size, span.Offset+in.Range.Length, r.buf
		return nil
	})
}
