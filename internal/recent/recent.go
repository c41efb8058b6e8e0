// Package recent remembers, for a while and within bounds, what was last known
// of a key of a bucket: that it was asked for, or how a request for it ended.
//
// A table forgets the oldest entry when it is full, and an entry when its time
// is over, so nothing may depend on an entry being there. Keys are strangers'
// bytes of any length, so their bytes are bounded as well as their number. A
// Table is safe for concurrent use; every operation takes
// constant time (Put's clearing of old entries: on average).
package recent

import (
	"strings"
	"sync"
	"time"
)

// keyBytes is the room that a table has for each of its entries' keys on
// average. An S3 key has at most 1,024 bytes and most have fewer than 100.
const keyBytes = 256

// Table maps a bucket and a key to the value that was put last.
type Table[V any] struct {
	max      int
	maxBytes int
	ttl      time.Duration

	mu      sync.Mutex
	entries map[id]*entry[V]
	bytes   int      // of all buckets' and keys' names
	root    entry[V] // of the ring in order of Put: root.next is the oldest
}

type id struct{ bucket, key string }

type entry[V any] struct {
	id         id
	value      V
	at         time.Time // what Put was told
	expires    time.Time // by this process's clock
	prev, next *entry[V]
}

// New returns a table of at most max entries, which are forgotten ttl after they
// were put. With max or ttl not above 0 it remembers nothing.
func New[V any](max int, ttl time.Duration) *Table[V] {
	t := &Table[V]{max: max, maxBytes: max * keyBytes, ttl: ttl, entries: map[id]*entry[V]{}}
	t.root.prev, t.root.next = &t.root, &t.root
	return t
}

// Put remembers value for a key, in place of what was known of it. at is the time
// that the value speaks of and is handed back by Get; the entry's life counts
// from now.
func (t *Table[V]) Put(bucket, key string, value V, at time.Time) {
	if t.ttl <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Cloned, because a key may be a piece of a whole line or message, which it
	// would keep in memory.
	k := id{strings.Clone(bucket), strings.Clone(key)}
	if old := t.entries[k]; old != nil {
		t.remove(old)
	}
	now := time.Now()
	e := &entry[V]{id: k, value: value, at: at, expires: now.Add(t.ttl)}
	e.prev, e.next = t.root.prev, &t.root
	e.prev.next, t.root.prev = e, e
	t.entries[k] = e
	t.bytes += k.size()
	// Entries live equally long, so those whose time is over are the oldest.
	for len(t.entries) > t.max || t.bytes > t.maxBytes || t.root.next.over(now) {
		t.remove(t.root.next)
		if len(t.entries) == 0 {
			return
		}
	}
}

// Get returns what is known of a key and the time that was put with it.
func (t *Table[V]) Get(bucket, key string) (value V, at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id{bucket, key}]
	if e == nil {
		return value, at, false
	}
	if e.over(time.Now()) {
		t.remove(e)
		return value, at, false
	}
	return e.value, e.at, true
}

// Len returns how many entries are held.
func (t *Table[V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

func (t *Table[V]) remove(e *entry[V]) {
	delete(t.entries, e.id)
	t.bytes -= e.id.size()
	e.prev.next, e.next.prev = e.next, e.prev
}

func (e *entry[V]) over(now time.Time) bool { return !now.Before(e.expires) }

func (k id) size() int { return len(k.bucket) + len(k.key) }
