package cosd

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"hash/crc64"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ACL says who may read an object.
type ACL string

// The ACLs of an object.
const (
	Inherit    ACL = "" // the bucket's
	Private    ACL = "private"
	PublicRead ACL = "public-read"
)

// Attributes are what an object carries besides its bytes. Values are sent as
// they are; an empty one sends no header (but ContentType, which COS fills in).
type Attributes struct {
	ContentType        string // default application/octet-stream
	ContentEncoding    string // the bytes are stored as given: encode them yourself
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
	Expires            string
	Meta               map[string]string // sent as x-cos-meta-<name>

	ACL          ACL
	StorageClass string    // "" is STANDARD and sends no header; ARCHIVE and DEEP_ARCHIVE refuse to be read
	Restored     bool      // an archived object can be read for now
	VersionID    string    // "" sends none
	NoCRC        bool      // an old object, from before COS kept a CRC
	ETag         string    // with its quotes; "" is the MD5 of the bytes
	LastModified time.Time // zero is the time of Put
}

// content is the bytes of an object.
type content interface {
	io.ReaderAt
	size() int64
	crc() uint64 // CRC-64/ECMA of all
	etag() string
}

// stored is one object; it never changes.
type stored struct {
	Attributes
	content content
}

// public reports whether a stranger may read o. A missing key (nil) is told to
// strangers only where the bucket itself is public.
func (o *stored) public(bucket bool) bool {
	if o == nil || o.ACL == Inherit {
		return bucket
	}
	return o.ACL == PublicRead
}

// archived reports whether o must be restored before it can be read.
func (o *stored) archived() bool {
	return (o.StorageClass == "ARCHIVE" || o.StorageClass == "DEEP_ARCHIVE") && !o.Restored
}

type store struct {
	mu      sync.RWMutex
	objects map[string]*stored
	sorted  []string // the keys in order; nil when it must be made again
}

func (st *store) get(key string) *stored {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.objects[key]
}

func (st *store) put(key string, c content, a Attributes) {
	a.Meta = maps.Clone(a.Meta)
	if a.LastModified.IsZero() {
		a.LastModified = time.Now()
	}
	if a.ETag == "" {
		a.ETag = c.etag()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.objects[key] == nil {
		st.sorted = nil
	}
	st.objects[key] = &stored{Attributes: a, content: c}
}

// keys returns the keys in the order of their bytes; nobody changes the slice.
func (st *store) keys() []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.sorted == nil {
		st.sorted = slices.Sorted(maps.Keys(st.objects))
	}
	return st.sorted
}

// after yields the objects in order whose keys begin with prefix and come after
// marker.
func (st *store) after(prefix, marker string) iter.Seq2[string, *stored] {
	return func(yield func(string, *stored) bool) {
		keys := st.keys()
		from, there := slices.BinarySearch(keys, max(prefix, marker))
		if there && keys[from] == marker {
			from++
		}
		for _, key := range keys[from:] {
			if !strings.HasPrefix(key, prefix) {
				return
			}
			if o := st.get(key); o != nil && !yield(key, o) {
				return
			}
		}
	}
}

// Put stores body under key, replacing what was there. body must not be changed
// afterwards.
func (s *Server) Put(key string, body []byte, a Attributes) {
	s.store.put(key, newMemory(body), a)
}

// Delete removes key; a missing one is no error.
func (s *Server) Delete(key string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.objects, key)
	s.store.sorted = nil
}

// Get returns the bytes and attributes of key, ETag and LastModified filled in.
// It reads a synthetic object into memory.
func (s *Server) Get(key string) ([]byte, Attributes, bool) {
	o := s.store.get(key)
	if o == nil {
		return nil, Attributes{}, false
	}
	body := make([]byte, o.content.size())
	if _, err := o.content.ReadAt(body, 0); err != nil && err != io.EOF {
		return nil, Attributes{}, false
	}
	return body, o.Attributes, true
}

// CRC64 returns the CRC-64/ECMA of key's bytes.
func (s *Server) CRC64(key string) (uint64, bool) {
	o := s.store.get(key)
	if o == nil {
		return 0, false
	}
	return o.content.crc(), true
}

// Keys returns all keys, sorted.
func (s *Server) Keys() []string { return slices.Clone(s.store.keys()) }

// ecma is COS's polynomial. MakeTable returns the library's own table.
func ecma() *crc64.Table { return crc64.MakeTable(crc64.ECMA) }

// memory is content held in memory.
type memory struct {
	*bytes.Reader
	sum func() uint64
	tag string
}

func newMemory(b []byte) *memory {
	return &memory{
		Reader: bytes.NewReader(b),
		sum:    sync.OnceValue(func() uint64 { return crc64.Checksum(b, ecma()) }),
		tag:    fmt.Sprintf(`"%x"`, md5.Sum(b)),
	}
}

func (m *memory) size() int64  { return m.Size() }
func (m *memory) crc() uint64  { return m.sum() }
func (m *memory) etag() string { return m.tag }
