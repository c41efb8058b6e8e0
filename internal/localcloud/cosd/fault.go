package cosd

import (
	"slices"
	"sync"
)

// When says which requests a lie is told to. The zero value is all of them, for
// ever.
type When struct {
	Key   string             // "" is every key
	Match func(Request) bool // nil is every request
	After int                // so many matching requests are answered honestly first
	Times int                // 0 is for ever
}

// Fault is a lie that is being told.
type Fault struct {
	when   When
	lie    Lie
	owner  *faults
	seen   int // matching requests so far; owner.mu
	healed chan struct{}
}

type faults struct {
	mu   sync.Mutex
	told []*Fault
}

// Lie tells l to the requests that when names, until it is used up or healed.
// Several lies to one request are told in the order in which they were set.
func (s *Server) Lie(when When, l Lie) *Fault {
	f := &Fault{when: when, lie: l, owner: &s.faults, healed: make(chan struct{})}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.told = append(s.faults.told, f)
	return f
}

// Heal ends every lie. It does not touch Change and Revoke.
func (s *Server) Heal() {
	s.faults.mu.Lock()
	told := slices.Clone(s.faults.told)
	s.faults.mu.Unlock()
	for _, f := range told {
		f.Heal()
	}
}

// Heal ends this lie; requests that it kept hanging are answered now.
func (f *Fault) Heal() {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	if i := slices.Index(f.owner.told, f); i >= 0 {
		f.owner.told = slices.Delete(f.owner.told, i, i+1)
		close(f.healed)
	}
}

// Told returns how many requests have been lied to.
func (f *Fault) Told() int {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	told := max(f.seen-f.when.After, 0)
	if f.when.Times > 0 {
		told = min(told, f.when.Times)
	}
	return told
}

// match returns the lies for q and counts it.
func (x *faults) match(q Request) []*Fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	var hit []*Fault
	for _, f := range x.told {
		w := f.when
		if w.Key != "" && w.Key != q.Key || w.Match != nil && !w.Match(q) {
			continue
		}
		f.seen++
		if n := f.seen - w.After; n > 0 && (w.Times == 0 || n <= w.Times) {
			hit = append(hit, f)
		}
	}
	return hit
}
