package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// ErrGzip is what Scanner.Err wraps when the log begins as gzip does and cannot
// be unpacked to its end.
var ErrGzip = errors.New("broken gzip")

const (
	// startBuffer is small enough that what was just read is still in the
	// processor's cache when it is parsed.
	startBuffer = 256 << 10
	// maxBuffer holds a line of MaxLine and its line end.
	maxBuffer = 2 * MaxLine
)

// Scanner reads the rows of one log, plain or gzip.
//
//	s := accesslog.NewScanner(r)
//	for s.Next() {
//		row := s.Row()
//		…
//	}
//	if err := s.Err(); err != nil { … }
type Scanner struct {
	src    *source
	r      io.Reader // src, or what unpacks it; nil before the first read
	buf    []byte
	start  int // of what is not yet parsed
	seen   int // up to here there is no line end
	end    int // of what was read
	err    error
	row    Row
	number int64
}

// source remembers the reader's own failure, which must not pass for a broken
// gzip: the log may be whole. A reader that brings nothing, over and over, fails.
type source struct {
	io.Reader
	idle int // reads in a row that brought nothing
	err  error
}

const maxIdle = 100

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if n > 0 || err != nil {
		s.idle = 0
	} else if s.idle++; s.idle > maxIdle {
		err = io.ErrNoProgress
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// NewScanner returns a Scanner of r. It reads nothing yet.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{src: &source{Reader: r}}
}

// Next reads the next row that is not blank. It returns false at the end of the
// log and at an error, see Err; a last line that an error cut short is no row.
func (s *Scanner) Next() bool {
	for {
		line, found, long := s.line()
		if !found {
			return false
		}
		s.number++
		if long {
			s.row.clear(Unparsed, TooLong)
			return true
		}
		if s.row.Parse(line); s.row.Verdict != Ignored {
			return true
		}
	}
}

// Row returns the row that Next read; it is the same Row each time.
func (s *Scanner) Row() *Row { return &s.row }

// Line returns the number of the row's line, from 1.
func (s *Scanner) Line() int64 { return s.number }

// Err returns what ended the reading, nil for the end of the log. It wraps
// ErrGzip for a broken gzip; the rows until there were sound.
func (s *Scanner) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// line returns the next line without its line feed. Of a long one, which is read
// over and not kept, it returns nothing.
func (s *Scanner) line() (line []byte, found, long bool) {
	for {
		if i := bytes.IndexByte(s.buf[s.seen:s.end], '\n'); i >= 0 {
			line = s.buf[s.start : s.seen+i]
			s.start = s.seen + i + 1
			s.seen = s.start
			return line, true, long || len(line) > MaxLine
		}
		if s.end-s.start > MaxLine {
			long = true
		}
		if long {
			s.start = s.end
		}
		s.seen = s.end
		if s.err != nil {
			line = s.buf[s.start:s.end]
			s.start = s.end
			return line, s.err == io.EOF && (long || len(line) > 0), long
		}
		s.fill()
	}
}

// fill reads at least one more byte or sets err.
func (s *Scanner) fill() {
	if s.r == nil {
		s.open()
	}
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.seen -= s.start
		s.start = 0
	}
	if s.end == len(s.buf) {
		grown := make([]byte, min(max(2*len(s.buf), startBuffer), maxBuffer))
		copy(grown, s.buf)
		s.buf = grown
	}
	for n := 0; n == 0 && s.err == nil; {
		var err error
		n, err = s.r.Read(s.buf[s.end:])
		s.end += n
		s.err = s.explain(err)
	}
}

// open looks at the first two bytes, which tell gzip from text.
func (s *Scanner) open() {
	magic := make([]byte, 2)
	n, err := io.ReadFull(s.src, magic)
	s.r = io.MultiReader(bytes.NewReader(magic[:n]), s.src)
	if s.src.err != nil {
		s.err = s.explain(err)
		return
	}
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return
	}
	unpacked, err := gzip.NewReader(s.r)
	if err != nil {
		s.err = s.explain(err)
		return
	}
	s.r = unpacked
}

// explain names the side that err came from: what the source itself did not
// report, unpacking did.
func (s *Scanner) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case s.src.err != nil:
		return fmt.Errorf("read log: %w", s.src.err)
	case err == io.EOF:
		return err
	}
	return fmt.Errorf("read log: %w: %w", ErrGzip, err)
}
