package queue

import (
	"math/rand/v2"
	"slices"
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
// Other queues of the process go on: sources that must not hold each other up
// have a queue each.
const suspectFrom = 4

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
