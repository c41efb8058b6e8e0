package cosd

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// pace slows the bucket down. Its zero value is ready.
type pace struct {
	mu     sync.Mutex
	tokens float64 // requests that may still be admitted
	last   time.Time
}

// latency waits for a time uniform in [least, most] and reports false when the
// client went first.
func (p *pace) latency(ctx context.Context, least, most time.Duration) bool {
	d := least
	if most > least {
		d += rand.N(most - least + 1)
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// admit takes one request from a bucket that refills at perSecond and holds one
// second's worth.
func (p *pace) admit(perSecond int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, most := time.Now(), float64(perSecond)
	if p.last.IsZero() {
		p.tokens = most
	} else {
		p.tokens = min(p.tokens+now.Sub(p.last).Seconds()*most, most)
	}
	p.last = now
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// meter is the debt of one connection: until when it has spent its rate.
type meter struct{ until time.Time }

// slack is how much lost time a body may make up for. Without it every late timer
// would lower the rate; with more, a client that stops reading would get a burst.
const slack = 100 * time.Millisecond

// settle forgives what the connection did not use, but for the latest of it.
func (m *meter) settle(latest time.Duration) {
	if least := time.Now().Add(-latest); m.until.Before(least) {
		m.until = least
	}
}

// meterKey is where Start's connections keep their meter.
type meterKey struct{}

// copy sends body at no more than rate bytes a second over the request's
// connection. It writes a chunk and sleeps off what the chunk cost, so that a
// capped connection wakes some fifty times a second and not once a packet.
func (p *pace) copy(ctx context.Context, w http.ResponseWriter, body io.Reader, rate int64) (int64, error) {
	if rate <= 0 {
		return io.Copy(w, body)
	}
	m, ok := ctx.Value(meterKey{}).(*meter)
	if !ok {
		m = &meter{}
	}
	flusher := http.NewResponseController(w)
	chunk := min(max(rate/50, 1), 256<<10)
	var sent int64
	m.settle(0)
	for {
		// Sleeping before the chunk makes the connection's next request pay what
		// this one leaves open.
		if !sleep(ctx, time.Until(m.until)) {
			return sent, ctx.Err()
		}
		n, err := io.CopyN(w, body, chunk)
		sent += n
		m.settle(slack)
		m.until = m.until.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
		if err := flusher.Flush(); err != nil {
			return sent, err
		}
	}
}
