package cosd

import (
	"maps"
	"sync"
	"time"
)

// maxEntries bounds the journal's memory; older entries are forgotten, the
// counts are not.
const maxEntries = 10000

// Entry is one answered request.
type Entry struct {
	At     time.Time // when it came
	Method string
	Key    string
	Range  string
	Signed bool
	Status int   // 0: cut or left before an answer began
	Bytes  int64 // of body, written

	Throttled bool // refused by the request limit, or a 429 for another reason
}

// Second counts the answers that ended in one second.
type Second struct{ Answers, Throttled int }

// Counts is what the bucket has seen since it was made or ResetCounts.
type Counts struct {
	Requests      int // that came
	Answers       int // that ended, whatever way
	Throttled     int // those with Entry.Throttled
	ByStatus      map[int]int
	ByKey         map[string]int   // requests that came
	BySecond      map[int64]Second // by Unix time
	Running       int              // requests at this moment
	MaxConcurrent int              // requests at once, at most
	Bytes         int64

	Conns, MaxConns int // open connections at this moment and at most (Start only)
}

// journal counts. Its own lock keeps it out of the way of the objects.
type journal struct {
	mu      sync.Mutex
	counts  Counts
	entries []Entry
}

// Counts returns a copy of the counters.
func (s *Server) Counts() Counts {
	conns, most := s.net.open()
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	c := s.journal.counts
	c.Conns, c.MaxConns = conns, most
	c.ByStatus, c.ByKey, c.BySecond = maps.Clone(c.ByStatus), maps.Clone(c.ByKey), maps.Clone(c.BySecond)
	return c
}

// Entries returns the latest requests that ended, in the order in which they did.
func (s *Server) Entries() []Entry {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return append([]Entry(nil), s.journal.entries[max(len(s.journal.entries)-maxEntries, 0):]...)
}

// ResetCounts forgets all counts and entries.
func (s *Server) ResetCounts() {
	s.net.resetCounts()
	s.journal.reset()
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := j.counts.Running
	j.counts = Counts{
		ByStatus: map[int]int{}, ByKey: map[string]int{}, BySecond: map[int64]Second{},
		Running: running, MaxConcurrent: running,
	}
	j.entries = nil
}

func (j *journal) begin(q *Request) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts.Requests++
	j.counts.ByKey[q.Key]++
	j.counts.Running++
	j.counts.MaxConcurrent = max(j.counts.MaxConcurrent, j.counts.Running)
	return &Entry{At: time.Now(), Method: q.Method, Key: q.Key, Range: q.Range, Signed: q.Signed}
}

func (j *journal) end(e *Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &j.counts
	c.Running--
	c.Answers++
	c.ByStatus[e.Status]++
	c.Bytes += e.Bytes
	now := time.Now().Unix()
	second := c.BySecond[now]
	second.Answers++
	if e.Throttled {
		c.Throttled++
		second.Throttled++
	}
	c.BySecond[now] = second
	if len(j.entries) >= 2*maxEntries {
		j.entries = append([]Entry(nil), j.entries[maxEntries:]...)
	}
	j.entries = append(j.entries, *e)
}
