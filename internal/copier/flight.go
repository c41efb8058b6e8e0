package copier

import (
	"context"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// flights are the copies in the air, by the object they carry.
type flights struct {
	mu    sync.Mutex
	byKey map[objectID]*flight
}

type objectID struct{ bucket, key string }

// flight is one copy. Its fields are written before landed is closed and only
// read after.
type flight struct {
	landed chan struct{}
	began  time.Time
	out    queue.Outcome
	// cut says that the copy was ended by the end of its own delivery, which says
	// nothing to the others.
	cut bool
}

func newFlights() flights { return flights{byKey: map[objectID]*flight{}} }

// join returns the flight of an object, and whether the caller is to fly it and
// then land it.
func (f *flights) join(id objectID) (fl *flight, pilot bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl, ok := f.byKey[id]; ok {
		return fl, false
	}
	fl = &flight{landed: make(chan struct{}), began: time.Now(), cut: true}
	f.byKey[id] = fl
	return fl, true
}

func (f *flights) land(id objectID, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, id)
	close(fl.landed)
}

// once answers from the ends of a moment ago, waits for the copy of the same
// object that is under way, or makes the copy, whichever comes first. A row that
// is younger than an answer is never settled by it: the object may have gone
// since.
func (c *Copier) once(ctx context.Context, req syncrequest.Request, makeCopy func() queue.Outcome) queue.Outcome {
	id := objectID{req.Bucket, req.Key}
	for {
		if r, at, ok := c.ends.Get(req.Bucket, req.Key); ok && answers(at, req.Seen) {
			return repeated(settled(r))
		}
		fl, pilot := c.flights.join(id)
		if pilot {
			defer c.flights.land(id, fl) // also when the copy panics: then it was cut
			fl.out = makeCopy()
			fl.cut = ctx.Err() != nil && fl.out.Verb != queue.Settle
			return fl.out
		}
		select {
		case <-ctx.Done():
			return handedBack(context.Cause(ctx))
		case <-fl.landed:
		}
		if !fl.cut && (fl.out.Verb != queue.Settle || answers(fl.began, req.Seen)) {
			return repeated(fl.out)
		}
	}
}

// answers reports whether an answer of the time at settles a row. Rows count in
// whole seconds, so a row may be up to a second younger than it says.
func answers(at, seen time.Time) bool { return seen.Add(time.Second).Before(at) }

// repeated is an outcome told to another delivery than the one that brought it
// about: for that one the object was there.
func repeated(out queue.Outcome) queue.Outcome {
	if out.End == string(object.EndCopied) {
		out.End = string(object.EndPresent)
	}
	return out
}
