package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// pods are asked one by one and summed.
type pods struct {
	get  getter
	urls []string
}

// answer is what one pod said.
type answer struct {
	status  app.Statusz
	metrics metrics
	err     error
}

func (p *pods) ask(ctx context.Context, url string) answer {
	var a answer
	status, err := p.get.page(ctx, strings.TrimSuffix(url, "/")+"/statusz", "application/json")
	if err == nil {
		err = json.Unmarshal(status, &a.status)
	}
	if err != nil {
		a.err = err
		return a
	}
	page, err := p.get.page(ctx, strings.TrimSuffix(url, "/")+"/metrics", "text/plain")
	if err == nil {
		a.metrics, err = parseMetrics(bytes.NewReader(page))
	}
	a.err = err
	return a
}

func (p *pods) read(ctx context.Context) *Reading {
	answers, names := make([]answer, len(p.urls)), make([]string, len(p.urls))
	var all sync.WaitGroup
	for i, url := range p.urls {
		names[i] = redacted(url)
		all.Go(func() { answers[i] = p.ask(ctx, url) })
	}
	all.Wait()

	r := &Reading{}
	var metrics []metrics
	var statuses []app.Statusz
	var missing []error
	for i, a := range answers {
		pod := Pod{URL: names[i], Err: a.err}
		if a.err != nil {
			missing = append(missing, fmt.Errorf("pod %s: %w", names[i], a.err))
		} else {
			metrics, statuses = append(metrics, a.metrics), append(statuses, a.status)
			pod.Version, pod.Role, pod.Started, pod.Ready = a.status.Version, a.status.Role, a.status.Started, a.status.Ready
			for _, q := range a.status.Queues {
				pod.Queues = append(pod.Queues, PodQueue{Name: q.Name, Held: q.Held, Failures: q.Failures})
			}
			for _, f := range a.status.Failures {
				r.Failures.Items = append(r.Failures.Items, Failure{Failure: f, Pod: names[i]})
			}
		}
		r.Pods.Items = append(r.Pods.Items, pod)
	}
	slices.SortStableFunc(r.Failures.Items, func(a, b Failure) int { return b.Time.Compare(a.Time) })
	r.Ends.Items, r.Ages.Items, r.Rows.Items = sumEnds(metrics), sumAges(metrics), newestRows(metrics)
	r.Guards.Items, r.Share.Items = worstGuards(statuses), sumShare(statuses)

	err, from := errors.Join(missing...), p.name(len(statuses))
	if len(statuses) == 0 {
		from = ""
	}
	since := ""
	switch {
	case len(statuses) == 1:
		since = from + ", since it started"
	case from != "":
		since = from + ", since each started"
	}
	r.Ends.From, r.Ages.From, r.Share.From = since, since, since
	r.Rows.From, r.Guards.From, r.Failures.From, r.Pods.From = from, from, from, from
	r.Ends.Err, r.Ages.Err, r.Share.Err, r.Rows.Err, r.Guards.Err, r.Failures.Err, r.Pods.Err = err, err, err, err, err, err, err
	return r
}

// redacted is a pod's URL as it may be shown.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil { // Validate has parsed it
		return "?"
	}
	return u.Redacted()
}

// name says how many pods the numbers are of.
func (p *pods) name(answered int) string {
	switch {
	case answered < len(p.urls):
		return fmt.Sprintf("%d of %d pods", answered, len(p.urls))
	case answered == 1:
		return "1 pod"
	default:
		return fmt.Sprintf("all %d pods", answered)
	}
}

func sumEnds(all []metrics) []End {
	sum := map[End]float64{}
	for _, m := range all {
		for _, s := range m["objectferry_ends_total"] {
			sum[End{Queue: s.labels[telemetry.LabelQueue], End: s.labels[telemetry.LabelEnd], Detail: s.labels[telemetry.LabelDetail]}] += s.value
		}
	}
	var list []End
	for e, n := range sum {
		e.Total = n
		list = append(list, e)
	}
	sortEnds(list)
	return list
}

func sortEnds(list []End) {
	slices.SortFunc(list, func(a, b End) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Total, a.Total), cmp.Compare(a.End, b.End), cmp.Compare(a.Detail, b.Detail))
	})
}

func sumAges(all []metrics) []Age {
	var buckets []sample
	for _, m := range all {
		buckets = append(buckets, m["objectferry_receive_age_seconds_bucket"]...)
	}
	return ages(buckets)
}

func newestRows(all []metrics) []Row {
	var samples []sample
	for _, m := range all {
		samples = append(samples, m["objectferry_last_log_row_timestamp_seconds"]...)
	}
	return rows(samples)
}

// badness orders the states of a guard.
func badness(state string) int {
	return slices.Index([]string{guard.StateOpen, guard.StateSlowStart, guard.StateProbing, guard.StateClosed}, state)
}

// worstGuards tells of each guard the state of the pod that is worst off, and of
// those the one that is so longest.
func worstGuards(all []app.Statusz) []Guard {
	byName := map[string]*Guard{}
	for _, s := range all {
		for _, g := range s.Guards {
			w := byName[g.Name]
			if w == nil {
				w = &Guard{Name: g.Name, State: g.State, Reason: g.Reason, Since: g.Since}
				byName[g.Name] = w
			}
			w.Pods++
			if badness(g.State) >= badness(guard.StateProbing) {
				w.Closed++
			}
			if d := badness(g.State) - badness(w.State); d > 0 || d == 0 && g.Since.Before(w.Since) {
				w.State, w.Reason, w.Since = g.State, g.Reason, g.Since
			}
		}
	}
	return sortedGuards(byName)
}

func sortedGuards(byName map[string]*Guard) []Guard {
	var list []Guard
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, *byName[name])
	}
	slices.SortStableFunc(list, func(a, b Guard) int { return badness(b.State) - badness(a.State) })
	return list
}

func sumShare(all []app.Statusz) []telemetry.Answers {
	type place struct {
		bucket string
		hour   telemetry.Hour
	}
	sum := map[place]telemetry.Answers{}
	for _, s := range all {
		for _, a := range s.Share {
			at := place{a.Bucket, a.Hour}
			have := sum[at]
			sum[at] = telemetry.Answers{Bucket: a.Bucket, Hour: a.Hour, S3: have.S3 + a.S3, Miss: have.Miss + a.Miss}
		}
	}
	return sortedShare(slices.Collect(maps.Values(sum)))
}

func sortedShare(list []telemetry.Answers) []telemetry.Answers {
	slices.SortFunc(list, func(a, b telemetry.Answers) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Hour, b.Hour))
	})
	return list
}

// unixTime is a timestamp in seconds.
func unixTime(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1e3)).UTC() }
