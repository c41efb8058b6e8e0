package fleet

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// The queries. A counter that first appears with a value has no increase() by
// that value, and a rare failure is just that: so what was added within a time is
// the difference to then, and all of it where there was nothing then or the
// process has started anew.
const (
	endsQuery     = `sum by (queue, end, detail) (objectferry_ends_total)`
	lastHourQuery = `sum by (queue, end, detail) ((objectferry_ends_total - objectferry_ends_total offset 1h) >= 0 or objectferry_ends_total)`
	agesQuery     = `sum by (queue, le) ((objectferry_receive_age_seconds_bucket - objectferry_receive_age_seconds_bucket offset 15m) >= 0 or objectferry_receive_age_seconds_bucket)`
	rowsQuery     = `max by (bucket) (objectferry_last_log_row_timestamp_seconds)`
	statesQuery   = `sum by (guard, state) (objectferry_guard_state)`
	closedQuery   = `sum by (guard, reason) (objectferry_guard_closed) > 0`
	sinceQuery    = `max by (guard) (objectferry_guard_closed)`
	// Pods that are gone have counted, too; looking back every half hour finds
	// them at a cost that a page may have.
	shareQuery = `sum by (bucket, hour, answer) (objectferry_log_requests_total or max_over_time(objectferry_log_requests_total[73h:30m]))`
)

const (
	sinceBack, sinceStep = 6 * time.Hour, time.Minute
	// shareFor is how long an answer to the costliest query is used.
	shareFor = 10 * time.Second
)

func (p *prometheus) read(ctx context.Context, now time.Time) *Reading {
	r := &Reading{Hourly: true}
	const from = "Prometheus"
	var all sync.WaitGroup
	all.Go(func() {
		r.Ends.Items, r.Ends.Err = p.ends(ctx)
		r.Ends.From = from + ", since each pod started"
	})
	all.Go(func() {
		buckets, err := p.instant(ctx, agesQuery)
		r.Ages.Items, r.Ages.Err, r.Ages.From = ages(buckets), err, from+", last 15 min"
	})
	all.Go(func() {
		samples, err := p.instant(ctx, rowsQuery)
		r.Rows.Items, r.Rows.Err, r.Rows.From = rows(samples), err, from
	})
	all.Go(func() {
		r.Guards.Items, r.Guards.Err = p.guards(ctx, now)
		r.Guards.From = from
	})
	all.Go(func() {
		r.Share.Items, r.Share.Err = p.shares(ctx, now)
		r.Share.From = from
	})
	all.Wait()
	return r
}

func (p *prometheus) ends(ctx context.Context) ([]End, error) {
	totals, err := p.instant(ctx, endsQuery)
	if err != nil {
		return nil, err
	}
	last, err := p.instant(ctx, lastHourQuery)
	if err != nil {
		return nil, err
	}
	key := func(s sample) End {
		return End{Queue: s.labels[telemetry.LabelQueue], End: s.labels[telemetry.LabelEnd], Detail: s.labels[telemetry.LabelDetail]}
	}
	added := map[End]float64{}
	for _, s := range last {
		added[key(s)] = s.value
	}
	var list []End
	for _, s := range totals {
		e := key(s)
		e.LastHour = math.Round(added[e])
		e.Total = math.Round(s.value)
		list = append(list, e)
	}
	sortEnds(list)
	return list, nil
}

func (p *prometheus) guards(ctx context.Context, now time.Time) ([]Guard, error) {
	states, err := p.instant(ctx, statesQuery)
	if err != nil {
		return nil, err
	}
	reasons, err := p.instant(ctx, closedQuery)
	if err != nil {
		return nil, err
	}
	byName := map[string]*Guard{}
	for _, s := range states {
		name, state, n := s.labels[telemetry.LabelGuard], s.labels[telemetry.LabelState], int(s.value)
		g := byName[name]
		if g == nil {
			g = &Guard{Name: name, State: guard.StateOpen}
			byName[name] = g
		}
		g.Pods += n
		if n > 0 && badness(state) > badness(g.State) {
			g.State = state
		}
		if badness(state) >= badness(guard.StateProbing) {
			g.Closed += n
		}
	}
	for _, s := range reasons {
		if g := byName[s.labels[telemetry.LabelGuard]]; g != nil {
			g.Reason = s.labels[telemetry.LabelReason]
		}
	}
	if len(reasons) > 0 {
		if err := p.since(ctx, now, byName); err != nil {
			return nil, err
		}
	}
	return sortedGuards(byName), nil
}

// since finds how long each closed guard has been closed on some pod, to the
// minute.
func (p *prometheus) since(ctx context.Context, now time.Time, byName map[string]*Guard) error {
	list, err := p.ask(ctx, "query_range", url.Values{"query": {sinceQuery}, "step": {strconv.Itoa(int(sinceStep.Seconds()))},
		"start": {stamp(now.Add(-sinceBack))}, "end": {stamp(now)}})
	if err != nil {
		return err
	}
	for _, s := range list {
		g := byName[s.Metric[telemetry.LabelGuard]]
		if g == nil || g.Reason == "" {
			continue
		}
		g.Since = now
		for i := len(s.Values) - 1; i >= 0 && s.Values[i].value > 0; i-- {
			g.Since, g.AtLeast = s.Values[i].at, i == 0
		}
	}
	return nil
}

func stamp(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1e3) }

// shares is who answered by bucket and hour.
func (p *prometheus) shares(ctx context.Context, now time.Time) ([]telemetry.Answers, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.asked) > shareFor {
		samples, err := p.instant(ctx, shareQuery)
		if err != nil {
			return nil, err
		}
		p.share, p.asked = samples, now
	}
	byPlace := map[telemetry.Answers]telemetry.Answers{}
	for _, s := range p.share {
		at := telemetry.Answers{Bucket: s.labels[telemetry.LabelBucket]}
		if at.Hour.UnmarshalText([]byte(s.labels[telemetry.LabelHour])) != nil {
			continue // no hour of ours
		}
		a := byPlace[at]
		a.Bucket, a.Hour = at.Bucket, at.Hour
		switch s.labels[telemetry.LabelAnswer] {
		case telemetry.AnswerS3:
			a.S3 += int64(math.Round(s.value))
		case telemetry.AnswerMiss:
			a.Miss += int64(math.Round(s.value))
		}
		byPlace[at] = a
	}
	var list []telemetry.Answers
	for _, a := range byPlace {
		if a.S3+a.Miss > 0 {
			list = append(list, a)
		}
	}
	return sortedShare(list), nil
}
