package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// level is how the service is. The words matter more than the colours.
type level int

const (
	healthy level = iota
	watch         // it holds back by itself, or something is not known
	act           // a person has to do something
)

// Word is what the page says first.
func (l level) Word() string { return [...]string{"Healthy", "Watch", "Needs you"}[l] }

// Class is the level in style sheets and file names.
func (l level) Class() string { return [...]string{"ok", "watch", "act"}[l] }

// reason is one thing that is not as it should be, and the panel that has more.
type reason struct {
	Level level
	Text  string
	Panel string
}

// verdict is the answer at one glance.
type verdict struct {
	Level   level
	Reasons []reason
}

const (
	// outageLong is when an outage that should end by itself is looked at.
	outageLong = time.Hour
	// rowsOld is how late S3's logs may be before somebody asks why.
	rowsOld = 12 * time.Hour
	// receivesFailing is how many receives fail in a row before it is said.
	receivesFailing = 3
)

// judge finds what is not as it should be, the gravest first.
func judge(s *snapshot) verdict {
	var v verdict
	say := func(l level, panel, format string, args ...any) {
		v.Reasons = append(v.Reasons, reason{l, fmt.Sprintf(format, args...), panel})
		v.Level = max(v.Level, l)
	}
	for _, q := range s.queues {
		switch {
		case q.DeadErr != nil:
			say(watch, "letters", "Unknown whether %s has dead letters", queue.Name(q.URL))
		case q.Dead.Total() > 0:
			say(act, "letters", "%s in %s", count(q.Dead.Total(), "dead letter"), queue.Name(q.DeadURL))
		}
		if q.Err != nil {
			say(watch, "queues", "Unknown how much waits in %s", queue.Name(q.URL))
		}
	}
	for _, g := range s.fleet.Guards.Items {
		if g.State != guard.StateOpen && g.State != guard.StateSlowStart {
			l, text := judgeGuard(g, s.at)
			say(l, "guards", "%s", text)
		}
	}
	judgePods(s.fleet, say)
	for _, r := range s.fleet.Rows.Items {
		if age := s.at.Sub(r.Newest); age > rowsOld {
			say(watch, "share", "No log row of %s is newer than %s", visible(r.Bucket), span(age))
		}
	}
	slices.SortStableFunc(v.Reasons, func(a, b reason) int { return int(b.Level - a.Level) })
	return v
}

func judgeGuard(g fleet.Guard, now time.Time) (level, string) {
	class, _, _ := strings.Cut(g.Reason, ":")
	text := fmt.Sprintf("Gate closed: %s (%s)", visible(g.Name), visible(g.Reason))
	switch object.Class(class) {
	case object.Unavailable, object.Throttled:
		if !g.Since.IsZero() && now.Sub(g.Since) > outageLong {
			return act, text + ", for over " + span(outageLong)
		}
		return watch, text + "; it opens by itself"
	}
	return act, text
}

// judgePods says what the pods themselves are, and what is unknown of the fleet.
func judgePods(r *fleet.Reading, say func(level, string, string, ...any)) {
	silent := 0
	for _, p := range r.Pods.Items {
		if p.Err != nil {
			silent++
			continue
		}
		if !p.Ready {
			say(watch, "pods", "Pod %s is not ready: not all its queues were found", visible(p.URL))
		}
		for _, q := range p.Queues {
			if q.Failures >= receivesFailing {
				say(watch, "pods", "Pod %s cannot receive from %s: %d failures in a row", visible(p.URL), visible(q.Name), q.Failures)
			}
		}
	}
	switch n := len(r.Pods.Items); {
	case n > 0 && silent == n:
		say(act, "pods", "No pod answers")
	case silent > 0:
		say(watch, "pods", "%d of %d pods do not answer", silent, n)
	}
	// Each process has guards. Without any, the other numbers are no zeros either.
	if len(r.Pods.Items) == 0 && r.Guards.Err == nil && len(r.Guards.Items) == 0 {
		say(act, "guards", "No process is known: none runs, or Prometheus does not find them")
	}
	for _, part := range []struct {
		panel, what string
		err         error
	}{
		{"share", "the share from S3", r.Share.Err}, {"guards", "guards", r.Guards.Err}, {"ends", "ends", r.Ends.Err},
	} {
		if part.err != nil && silent == 0 {
			say(watch, part.panel, "Unknown: %s", part.what)
		}
	}
}
