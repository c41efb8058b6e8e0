package object

import (
	"fmt"
	"strconv"
	"strings"
)

// Answered checks that an answer is all of the range r that was asked for: its
// Content-Range starts where r does and ends where r or the object does, and its
// Content-Length, negative when there is none, is that span's. It returns the
// span and the size of the whole object.
func (r Range) Answered(contentRange string, contentLength int64) (Range, int64, error) {
	first, last, size, ok := parseContentRange(contentRange)
	if !ok {
		return Range{}, 0, fmt.Errorf("asked for %s, got Content-Range %q", r.Header(), contentRange)
	}
	if first != r.Offset || last != min(r.Offset+r.Length, size)-1 {
		return Range{}, 0, fmt.Errorf("asked for %s, got bytes %d-%d of %d", r.Header(), first, last, size)
	}
	got := Range{Offset: first, Length: last - first + 1}
	if contentLength != got.Length {
		return Range{}, 0, fmt.Errorf("a range of %d bytes came with Content-Length %d", got.Length, contentLength)
	}
	return got, size, nil
}

// parseContentRange reads "bytes 0-99/1234"; a "*" is not accepted.
func parseContentRange(s string) (first, last, size int64, ok bool) {
	s, found := strings.CutPrefix(s, "bytes ")
	if !found {
		return 0, 0, 0, false
	}
	span, total, _ := strings.Cut(s, "/")
	from, to, _ := strings.Cut(span, "-")
	for _, n := range []struct {
		text  string
		value *int64
	}{{from, &first}, {to, &last}, {total, &size}} {
		v, err := strconv.ParseUint(n.text, 10, 63)
		if err != nil {
			return 0, 0, 0, false
		}
		*n.value = int64(v)
	}
	return first, last, size, first <= last && last < size
}
