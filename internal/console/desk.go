package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

// desk is where letters are worked on, one thing at a time: to look at letters
// hides them from everybody else for a moment, so nothing here is done unasked.
type desk struct {
	deps  Deps
	cfg   Config
	state *state

	work context.Context // ends when the console stops
	quit context.CancelFunc
	jobs sync.WaitGroup

	mu    sync.Mutex
	busy  string // what is being done; "" is nothing
	last  *looked
	plans []*plan // the oldest first
	seen  atomic.Int64
}

// looked is what the last look found. It is not changed.
type looked struct {
	At      time.Time
	Letters int
	Groups  []group
	More    int // letters with reasons beyond maxGroups
	Err     error
}

// group is the letters of one queue with one reason.
type group struct {
	*deadletter.Group
	Queue int    // index of Deps.Queues
	From  string // name of that queue
}

// ExampleLetter is the letter that stands for all.
func (g group) ExampleLetter() *deadletter.Letter { return &g.Example }

// maxGroups bounds the reasons that are told apart: they are ours as a rule, but
// anybody who may send to the queue can write others.
const maxGroups = 100

func newDesk(d Deps, c Config, s *state) *desk {
	k := &desk{deps: d, cfg: c, state: s}
	k.work, k.quit = context.WithCancel(context.Background())
	return k
}

// errBusy says that one thing has to end before another is begun.
var errBusy = errors.New("busy")

// begin starts one thing, unless another is under way or the console stops.
func (d *desk) begin(what string, do func(context.Context)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy != "" {
		return fmt.Errorf("%w: %s; wait until that has ended", errBusy, d.busy)
	}
	if d.work.Err() != nil {
		return fmt.Errorf("%w: the console stops", errBusy)
	}
	d.busy = what
	d.seen.Store(0)
	d.jobs.Go(func() {
		do(d.work)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy = ""
	})
	return nil
}

// stop ends what is under way; letters that were held are handed back.
func (d *desk) stop(ctx context.Context) error {
	d.mu.Lock() // after this nothing begins
	d.quit()
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.jobs.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("stop the console: letters are still held; they come back by themselves")
	}
}

// look looks at all letters of all queues.
func (d *desk) look() error {
	return d.begin("looking at the dead letters", func(ctx context.Context) {
		found := d.lookAt(ctx)
		found.At = time.Now().UTC()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.last = found
	})
}

func (d *desk) lookAt(ctx context.Context) *looked {
	boxes, err := d.state.boxes(ctx)
	if err != nil {
		return &looked{Err: err}
	}
	found := make([]deadletter.Groups, len(boxes))
	more, errs := make([]int, len(boxes)), make([]error, len(boxes))
	var all sync.WaitGroup
	for i, box := range boxes {
		found[i] = deadletter.Groups{}
		all.Go(func() {
			_, errs[i] = box.Look(ctx, func(l *deadletter.Letter) (bool, error) {
				d.seen.Add(1)
				if len(found[i]) >= maxGroups && found[i][[3]string{l.Queue, l.End, l.Detail}] == nil {
					more[i]++
					return false, nil
				}
				found[i].Add(l)
				return false, nil
			})
		})
	}
	all.Wait()
	out := &looked{Err: errors.Join(errs...)}
	for i, groups := range found {
		for _, g := range groups.Sorted() {
			out.Groups = append(out.Groups, group{g, i, queue.Name(d.deps.Queues[i].URL)})
			out.Letters += g.Letters
		}
		out.More += more[i]
	}
	out.Letters += out.More
	return out
}

// now is what the page shows of the desk.
func (d *desk) now() (busy string, seen int, last *looked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy, int(d.seen.Load()), d.last
}
