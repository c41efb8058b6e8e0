package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// maxLine of a list of keys; it is far above S3's longest key, 1,024 bytes.
const maxLine = 64 << 10

// lineError is a line that is no key. The lines after it are good.
type lineError struct {
	line int
	err  error
}

func (e lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e lineError) Unwrap() error { return e.err }

// keyLines yields the keys of a list, one a line, decoded; encoded says that they
// are percent-encoded there. Blank lines are none. An error that is no lineError
// is the last it yields.
func keyLines(ctx context.Context, in io.Reader, encoded bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := bufio.NewReaderSize(in, maxLine)
		for n := 1; ; n++ {
			line, more, err := lines.ReadLine()
			switch {
			case ctx.Err() != nil:
				yield("", ctx.Err())
				return
			case err == io.EOF:
				return
			case err != nil:
				yield("", fmt.Errorf("read keys: line %d: %w", n, err))
				return
			case more:
				for more && err == nil {
					_, more, err = lines.ReadLine()
				}
				if !yield("", lineError{n, fmt.Errorf("longer than %d bytes; is this one key?", maxLine)}) {
					return
				}
			case len(line) > 0:
				key := string(line)
				if encoded {
					if key, err = syncrequest.UnescapeKey(key); err != nil {
						err = lineError{n, err}
					}
				}
				if !yield(key, err) {
					return
				}
			}
		}
	}
}
