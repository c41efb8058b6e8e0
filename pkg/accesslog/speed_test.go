package accesslog

import (
	"bytes"
	"testing"
)

// BenchmarkScanner reads what the cases hold, over and over.
func BenchmarkScanner(b *testing.B) {
	var log []byte
	for _, c := range cases(b) {
		log = append(append(log, c.Line...), '\n')
	}
	log = bytes.Repeat(log, 100)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewScanner(bytes.NewReader(log))
		for s.Next() {
		}
		if err := s.Err(); err != nil {
			b.Fatal(err)
		}
	}
}
