package object

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBodyYieldsExactlyItsRange(t *testing.T) {
	reset := errors.New("connection reset")
	tests := []struct {
		name   string
		body   io.Reader
		length int64
		want   Class
	}{
		{"exact", strings.NewReader("hello"), 5, ""},
		{"exact, the end told with the last bytes", iotest.DataErrReader(strings.NewReader("hello")), 5, ""},
		{"exact, a byte at a time", iotest.OneByteReader(strings.NewReader("hello")), 5, ""},
		{"empty", strings.NewReader(""), 0, ""},
		{"cut", strings.NewReader("hel"), 5, Unavailable},
		{"cut by the peer", io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(reset)), 5, Unavailable},
		{"longer", strings.NewReader("hello!"), 5, Corrupt},
		{"longer, a byte at a time", iotest.OneByteReader(strings.NewReader("hello!")), 5, Corrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var read Read
			read.Range.Length = tt.length
			read.SetBody(t.Context(), io.NopCloser(tt.body), Error{Side: Source, Key: "k"})
			// As the copier reads: no further than the length that was promised.
			got := make([]byte, tt.length)
			_, err := io.ReadFull(read.Body, got)
			if class := ClassOf(err); class != tt.want {
				t.Errorf("class %q, want %q: %v", class, tt.want, err)
			}
			if err == nil && string(got) != "hello"[:tt.length] {
				t.Errorf("got %q", got)
			}
			if err == nil {
				if n, err := read.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("behind the end: %d, %v", n, err)
				}
			}
		})
	}
}

func TestBodyOfAnInterruptedReadSaysWhatEndedIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var read Read
	read.Range.Length = 5
	read.SetBody(ctx, io.NopCloser(iotest.ErrReader(context.Canceled)), Error{})
	cancel()
	if _, err := io.ReadAll(read.Body); ClassOf(err) != Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}
