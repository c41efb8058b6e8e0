package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

// plan is a move of letters that was asked for: counted first, then confirmed by
// a person, then done, once.
type plan struct {
	ID      string
	Drop    bool // else redrive
	Queue   int  // index of Deps.Queues
	Filter  deadletter.Filter
	Made    time.Time
	State   planState
	Found   int // letters that the filter wants; no others are moved
	Oldest  time.Time
	Moved   int
	File    string // where dropped letters were saved
	Ended   time.Time
	Err     error
	dead    string          // URL of the dead-letter queue
	letters map[string]bool // those that were counted, by message; nil when they cannot be confirmed any more
	rate    float64
	discard bool
}

// until is how long it may be confirmed.
func (p *plan) until() time.Time { return p.Made.Add(planFor) }

// planState is how far a plan is.
type planState string

const (
	counting planState = "counting"
	ready    planState = "ready" // to be confirmed
	moving   planState = "moving"
	ended    planState = "ended"
)

const (
	// planFor is how long what was counted may be confirmed.
	planFor = 15 * time.Minute
	// maxPlans is how many plans are remembered.
	maxPlans = 50
	// maxRate is the most letters a second; the CLI has no such bound.
	maxRate = 1000.0
)

// newPlan begins to count.
func (d *desk) newPlan(drop bool, q int, f deadletter.Filter) (id string, err error) {
	p := &plan{ID: rand.Text(), Drop: drop, Queue: q, Filter: f, Made: time.Now().UTC(), State: counting, letters: map[string]bool{}}
	err = d.begin("counting letters", func(ctx context.Context) {
		box, found, oldest, err := d.count(ctx, p)
		d.mu.Lock()
		defer d.mu.Unlock()
		p.Found, p.Oldest, p.Err, p.State = found, oldest, err, ready
		if box != nil {
			p.dead = box.URL()
		}
		if err != nil || found == 0 {
			p.State = ended
		}
		d.forget(time.Now())
	})
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans = append(d.plans, p)
	if len(d.plans) > maxPlans {
		d.plans = slices.Delete(d.plans, 0, 1)
	}
	return p.ID, nil
}

// forget lets go of the letters of plans that cannot be confirmed any more; it
// needs mu. So what is remembered is bounded by what can be counted in that time.
func (d *desk) forget(now time.Time) {
	for _, p := range d.plans {
		if p.State == ended || p.State == ready && now.After(p.until()) {
			p.letters = nil
		}
	}
}

func (d *desk) count(ctx context.Context, p *plan) (box *deadletter.Box, found int, oldest time.Time, err error) {
	boxes, err := d.state.boxes(ctx)
	if err != nil {
		return nil, 0, oldest, err
	}
	box = boxes[p.Queue]
	_, err = box.Look(ctx, func(l *deadletter.Letter) (bool, error) {
		d.seen.Add(1)
		if !p.Filter.Wants(l) {
			return false, nil
		}
		found++
		p.letters[l.ID] = true // only read once it is ready
		if oldest.IsZero() || l.Sent.Before(oldest) {
			oldest = l.Sent
		}
		return false, nil
	})
	return box, found, oldest, err
}

// plan is a copy of the plan as it is now.
func (d *desk) plan(id string) (plan, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.plans {
		if p.ID == id {
			return *p, true
		}
	}
	return plan{}, false
}

// confirmation is what a person says to a plan.
type confirmation struct {
	Rate    float64
	Many    bool   // more than deadletter.AtOnce are meant
	Discard bool   // a drop keeps no copy …
	Word    string // … which is typed out
}

// discardWord is what has to be typed.
const discardWord = "discard"

// check says what is missing of a confirmation.
func (p *plan) check(c confirmation, now time.Time) error {
	switch {
	case p.State != ready:
		return errors.New("this was confirmed before; it is done once only")
	case now.After(p.until()):
		return errors.New("this was counted too long ago; begin again, so that it is counted anew")
	case p.Found > deadletter.AtOnce && !c.Many:
		return fmt.Errorf("more than %d letters need the extra tick", deadletter.AtOnce)
	case !(c.Rate > 0 && c.Rate <= maxRate): // nor NaN
		return fmt.Errorf("the rate must be above 0 and at most %.0f letters a second", maxRate)
	case p.Drop && c.Discard && c.Word != discardWord:
		return fmt.Errorf("to keep no copy, type %q", discardWord)
	}
	return nil
}

// confirm begins the move.
func (d *desk) confirm(id string, c confirmation) error {
	d.mu.Lock()
	i := slices.IndexFunc(d.plans, func(p *plan) bool { return p.ID == id })
	if i < 0 {
		d.mu.Unlock()
		return errors.New("this plan is not known any more; begin again")
	}
	p := d.plans[i]
	err := p.check(c, time.Now())
	if err == nil {
		p.State = moving // nobody else confirms it now
		p.rate, p.discard = c.Rate, c.Discard
		if p.Drop && !c.Discard {
			p.File = filepath.Join(d.cfg.SaveDir, fmt.Sprintf("objectferry-dropped-%s-%s.jsonl", time.Now().UTC().Format("20060102T150405Z"), p.ID[:6]))
		}
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	err = d.begin(p.doing(), func(ctx context.Context) { d.move(ctx, p) })
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		p.State = ready
	}
	return err
}

func (p *plan) doing() string {
	if p.Drop {
		return "dropping letters"
	}
	return "redriving letters"
}

// move does what was confirmed and logs who had it done. No letter is moved that
// was not counted, should others have died in the meantime.
func (d *desk) move(ctx context.Context, p *plan) {
	what := "redrive"
	if p.Drop {
		what = "drop"
	}
	log := d.deps.Log.With().Str("who", d.cfg.Who).Str("action", what).Str("plan", p.ID).Str("dead_letters", queue.Name(p.dead)).
		Str("end", p.Filter.End).Str("detail", p.Filter.Detail).Str("match", p.Filter.Match).
		Int("confirmed", p.Found).Float64("rate", p.rate).Str("saved", p.File).Logger()
	log.Info().Msg("confirmed")
	moved, err := d.moveLetters(ctx, p)
	log.Err(err).Int("moved", moved).Msg("letters moved")
	d.mu.Lock()
	p.Moved, p.Err, p.State, p.Ended, p.letters = moved, err, ended, time.Now().UTC(), nil
	d.last = nil // what it showed has changed
	d.mu.Unlock()
	d.state.stale()
}

func (d *desk) moveLetters(ctx context.Context, p *plan) (moved int, err error) {
	// Not those of the page: a box moves what was there when it was opened.
	boxes, err := d.deps.Boxes(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the dead letters: %w", err)
	}
	if p.Queue >= len(boxes) || boxes[p.Queue].URL() != p.dead {
		return 0, errors.New("the dead letters of this queue are elsewhere than when they were counted; start the console anew")
	}
	box := boxes[p.Queue]
	do := func(ctx context.Context, letters []*deadletter.Letter) (int, error) {
		return box.Redrive(ctx, letters, p.rate)
	}
	if p.Drop {
		w, finish, err := p.save()
		if err != nil {
			return 0, err
		}
		defer finish()
		do = func(ctx context.Context, letters []*deadletter.Letter) (int, error) {
			return box.Drop(ctx, letters, w, p.rate)
		}
	}
	moved, _, err = box.All(ctx, func(l *deadletter.Letter) bool {
		d.seen.Add(1)
		return p.letters[l.ID]
	}, func(ctx context.Context, letters []*deadletter.Letter) (int, error) {
		n, err := do(ctx, letters)
		d.mu.Lock()
		defer d.mu.Unlock()
		p.Moved += n
		return n, err
	})
	return moved, err
}

// save opens the file for letters that are dropped; none of them is deleted
// before it is on the disk.
func (p *plan) save() (io.Writer, func(), error) {
	if p.File == "" {
		return io.Discard, func() {}, nil
	}
	file, err := os.OpenFile(p.File, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("save the letters: %w", err)
	}
	return file, func() { _ = file.Close() }, nil // Drop has synced it
}
