package cosd

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"sync"
)

// pageSize is the grain of synthetic content, pages how many of them are
// random; after those the same ones come again, each told apart by its number.
const (
	pageSize = 4 << 10
	pages    = 256
)

// synthetic is content that is generated as it is read: a 1 GiB object costs
// 1 MiB. No two pages are equal, so a part in a wrong place is a wrong byte.
type synthetic struct {
	bytes int64
	base  []byte
	sum   func() uint64
	tag   string
}

// PutSynthetic stores an object of size bytes that are a function of seed
// without holding them. Its ETag has the form of an object uploaded in parts
// (with a "-"), as big objects have at COS, so it is no MD5. The CRC is computed once, when first
// asked for, at about a second a GiB: ask CRC64 first where that matters.
func (s *Server) PutSynthetic(key string, size int64, seed uint64, a Attributes) {
	s.store.put(key, newSynthetic(size, seed), a)
}

func newSynthetic(size int64, seed uint64) *synthetic {
	y := &synthetic{bytes: size, base: make([]byte, pages*pageSize)}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := 0; i < len(y.base); i += 8 {
		binary.LittleEndian.PutUint64(y.base[i:], r.Uint64())
	}
	y.tag = fmt.Sprintf(`"%x-%d"`, md5.Sum(fmt.Appendf(nil, "%d %d", seed, size)), size>>20+1)
	y.sum = sync.OnceValue(func() uint64 {
		h := crc64.New(ecma())
		// A buffer of its own: io.Copy's would be 32 KiB, eight pages a call.
		if _, err := io.CopyBuffer(h, io.NewSectionReader(y, 0, size), make([]byte, 1<<20)); err != nil {
			panic(err) // memory does not fail
		}
		return h.Sum64()
	})
	return y
}

func (y *synthetic) size() int64  { return y.bytes }
func (y *synthetic) crc() uint64  { return y.sum() }
func (y *synthetic) etag() string { return y.tag }

// ReadAt implements io.ReaderAt.
func (y *synthetic) ReadAt(p []byte, off int64) (int, error) {
	if off >= y.bytes {
		return 0, io.EOF
	}
	var err error
	if left := y.bytes - off; int64(len(p)) > left {
		p, err = p[:left], io.EOF
	}
	for n := 0; n < len(p); {
		at := off + int64(n)
		page, in := at/pageSize, int(at%pageSize)
		begin := int(page%pages) * pageSize
		n += y.page(p[n:], page, begin, in)
	}
	return len(p), err
}

// page copies the rest of one page, from its byte in on, with its first eight
// bytes told apart by the page's number.
func (y *synthetic) page(p []byte, page int64, begin, in int) int {
	n := copy(p, y.base[begin+in:begin+pageSize])
	if in < 8 {
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], uint64(page)*0x9e3779b97f4a7c15)
		for i := in; i < min(8, in+n); i++ {
			p[i-in] ^= number[i]
		}
	}
	return n
}
