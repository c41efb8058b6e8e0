package queue

import (
	"math/rand/v2"
	"slices"
	"time"
)

// suspectFrom is the receive from which a message is a suspect: something may
// have gone down with it three times, and took along what ran beside it.
//
// A suspect is worked on alone in its queue: receives pause as soon as one is
// held, everything else that is held is worked off and acknowledged, receives in
// flight are awaited, and only then it starts. So a message that takes the
// process down with it takes nobody along twice. It cannot starve, since nothing
// new comes in while it waits. Of several suspects chance alone decides who goes
// first. Receives must not: an innocent that had one more of them than the culprit
// would stand behind it every time the process comes back, and die with it.
//
// A suspect that has run for suspectAlone is no instant killer, and a large copy
// takes hours: from then on the others are let in again beside it. Further
// suspects wait on, within the room of all that is held.
//
// Other queues of the process go on: sources that must not hold each other up
// have a queue each.
const suspectFrom = 4

// suspectAlone is how long a suspect runs alone at most.
const suspectAlone = 2 * time.Minute

// enqueue lets a lease wait for dispatch; it needs mu.
func (c *Consumer) enqueue(l *lease) {
	if l.delivery.Receives < suspectFrom {
		c.pending = append(c.pending, l)
		return
	}
	l.solo = true
	c.suspects = slices.Insert(c.suspects, rand.IntN(len(c.suspects)+1), l)
}

// alone reports whether nothing but suspects is held and nothing can come; it
// needs mu.
func (c *Consumer) alone() bool {
	return len(c.running) == 0 && len(c.pending) == 0 && c.unsettled == 0 && c.polls == 0
}

// acquit lets the others in beside a suspect that still runs.
func (c *Consumer) acquit(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, runs := c.running[l]; !runs {
		return
	}
	l.solo, c.solo, c.acquitted = false, false, l
	c.dispatch()
}

// barred reports whether a suspect keeps receives away; it needs mu.
func (c *Consumer) barred() bool {
	if c.solo {
		return true
	}
	_, runs := c.running[c.acquitted]
	return len(c.suspects) > 0 && !runs
}
