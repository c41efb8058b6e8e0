package guard

import "sync"

// Gate is what can be joined: a *Guard, a *Joint or Slots.
type Gate interface {
	// Admit is as queue.Gate has it.
	Admit() (n int, changed <-chan struct{})
	// watch has changed called, from then on, whenever what Admit returns changes.
	watch(changed func())
}

// Slots is a gate that always admits as many.
type Slots int

// Admit returns the number of slots.
func (s Slots) Admit() (int, <-chan struct{}) { return int(s), nil }

func (Slots) watch(func()) {}

// Joint is several gates as one, for a queue whose messages need all of them.
type Joint struct {
	gates []Gate

	mu      sync.Mutex
	changed chan struct{}
}

// Join returns a gate that is open when all are, and admits as many as the
// narrowest does. Joining none admits nothing.
func Join(gates ...Gate) *Joint {
	j := &Joint{gates: gates, changed: make(chan struct{})}
	for _, g := range gates {
		g.watch(j.wake)
	}
	return j
}

// Admit returns how many messages may be worked on at once, 0 while one of the
// gates is closed, and a channel that is closed when that may have changed.
func (j *Joint) Admit() (n int, changed <-chan struct{}) {
	j.mu.Lock()
	changed = j.changed // before asking, so that no change is missed
	j.mu.Unlock()
	for i, g := range j.gates {
		m, _ := g.Admit()
		if i == 0 || m < n {
			n = m
		}
	}
	return n, changed
}

func (j *Joint) watch(changed func()) {
	for _, g := range j.gates {
		g.watch(changed)
	}
}

// wake is called by the gates, perhaps with their mutex held: it must not call
// them back.
func (j *Joint) wake() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
}
