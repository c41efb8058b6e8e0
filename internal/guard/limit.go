package guard

import (
	"math"
	"slices"
	"time"
)

// limiter says how many calls run at once, first come first served. Everything
// in it is guarded by the guard's mutex.
//
// It starts at max. After the gate was closed it starts slowly: at one, doubling
// once as many calls as the limit allows have gone well. A throttled answer
// halves the limit, once per round trip: the answers to other calls begun before
// say nothing new. From then on the limit is a fraction, and starts are paced so
// that on average limit calls run: round/limit apart, where round is how long a
// call takes. So a source that answers in a millisecond and allows five calls a
// second is served as well as one that takes a second and allows a hundred.
//
// A paced limit creeps up again by a tenth per ProbeMin, but by no more than
// 1/192 a good answer, and a limit that has crept for a while loses only a third
// when it is throttled. That time drives it keeps a fleet fair: all creep at one
// pace, and the larger are throttled more often. That answers bound it keeps the
// throttled share near one in eighty, however slow the source is. When nothing
// at all gets through, the gate closes.
type limiter struct {
	max      int
	probeMin time.Duration

	limit float64
	slow  bool // slow start
	paced bool // throttled, and not yet back at max
	good  int  // good answers since the limit was last lowered, or doubled by the slow start
	epoch int  // counts the changes of the limit that make earlier calls' answers stale
	begin int  // the epoch in which the slow start began

	busy    int // calls running
	old     int // of them, begun before the gate last closed; they may hang, and do not hold up the slow start
	waiting []*waiter
	round   time.Duration // smoothed time of a good call
	next    time.Time     // when the next paced call may start
	timer   *time.Timer   // fires then, when somebody waits for it

	lowered time.Time // by a throttled answer
	raised  time.Time
	passed  time.Time // last answer that was not throttled, or the beginning of the slow start
	inRow   int       // throttled answers since then
}

// calm is how many good answers in a row say that a paced limit is nearly right.
const calm = 64

// waiter waits for a slot. ready is closed when it has one, or when the gate
// closes; then granted is false.
type waiter struct {
	ready   chan struct{}
	granted bool
	slot    slot
}

// slot is one call under way.
type slot struct {
	epoch int
	start time.Time
}

func newLimiter(limit int, probeMin time.Duration) *limiter {
	return &limiter{max: limit, limit: float64(limit), probeMin: probeMin, passed: time.Now()}
}

// slots is how many calls may run at once.
func (l *limiter) slots() int { return int(math.Ceil(l.limit)) }

// settled reports whether the limit fits what the dependency allows.
func (l *limiter) settled() bool { return !l.slow && (!l.paced || l.good >= calm) }

// wait queues for a slot; grant must follow.
func (l *limiter) wait() *waiter {
	w := &waiter{ready: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w
}

// leave takes w out of the queue, and reports false when it has a slot already.
func (l *limiter) leave(w *waiter) bool {
	i := slices.Index(l.waiting, w)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return !w.granted
}

// grant gives free slots to those who wait. fire is called, without the mutex,
// when a paced start is due.
func (l *limiter) grant(now time.Time, fire func()) {
	for len(l.waiting) > 0 && l.busy-l.old < l.slots() && l.busy < l.max {
		if l.paced {
			if early := l.next.Sub(now); early > 0 {
				if l.timer == nil {
					l.timer = time.AfterFunc(early, fire)
				}
				return
			}
			// A late start keeps at most one interval of credit.
			l.next = l.next.Add(l.interval())
			if l.next.Before(now) {
				l.next = now
			}
		}
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.busy++
		w.granted, w.slot = true, slot{l.epoch, now}
		close(w.ready)
	}
}

// interval is the time between two paced starts.
func (l *limiter) interval() time.Duration {
	return min(time.Duration(float64(l.round)/l.limit), l.probeMin)
}

// restart lets everybody go and begins the slow start.
func (l *limiter) restart() {
	for _, w := range l.waiting {
		close(w.ready)
	}
	l.waiting = nil
	l.limit, l.slow, l.paced, l.good = 1, true, false, 0
	l.epoch++
	l.begin, l.old = l.epoch, l.busy
}

// done gives a slot back.
func (l *limiter) done(s slot) {
	l.busy--
	if s.epoch < l.begin {
		l.old--
	}
}

// answered notes an answer that was not throttled.
func (l *limiter) answered(now time.Time) { l.passed, l.inRow = now, 0 }

// wentWell counts a good answer.
func (l *limiter) wentWell(s slot, now time.Time) {
	l.answered(now)
	took := now.Sub(s.start)
	switch {
	case l.round == 0:
		l.round = took
	case took < l.round: // sooner believed than a longer one, which may have been a large body
		l.round -= (l.round - took) / 4
	default:
		l.round += (took - l.round) / 16
	}
	switch {
	case l.slow && s.epoch == l.epoch:
		if l.good++; l.good >= l.slots() {
			l.good, l.epoch = 0, l.epoch+1
			l.limit *= 2
		}
	case l.paced:
		l.good++
		creep := float64(now.Sub(l.raised)) / float64(10*l.probeMin)
		l.limit *= 1 + min(creep, 1./192)
		l.raised = now
	}
	if l.limit >= float64(l.max) {
		l.limit, l.slow, l.paced = float64(l.max), false, false
	}
}

// throttled counts a throttled answer, and reports whether the gate should close:
// the limit is at one or below, and nothing has got through for a probe interval
// and several tries (they may be far apart).
func (l *limiter) throttled(s slot, now time.Time) (hopeless bool) {
	l.inRow++
	if s.epoch == l.epoch && now.Sub(l.lowered) >= l.probeMin/20 {
		l.lower(s, now)
	}
	return l.limit <= 1 && l.inRow >= 5 && now.Sub(l.passed) >= l.probeMin
}

// lower halves the limit, or takes off a third when it was nearly right.
func (l *limiter) lower(s slot, now time.Time) {
	if l.round == 0 {
		l.round = now.Sub(s.start)
	}
	keep := 1. / 2
	switch {
	case !l.paced: // it may be far above what is really used
		l.limit = min(l.limit, float64(l.busy-l.old))
		l.next = now
	case l.settled():
		keep = 2. / 3
	}
	floor := min(1, float64(l.round)/float64(l.probeMin))
	l.limit = max(l.limit*keep, floor)
	l.slow, l.paced = false, true
	l.good, l.epoch = 0, l.epoch+1
	l.lowered, l.raised = now, now
}
