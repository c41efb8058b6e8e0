package parse

import (
	"time"

	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

// answers counts who answered the visitors' reads of one log, by bucket and by the
// hour of the row: the share that S3 itself answered is what all this is for.
//
// It asks what the visitor saw (see Answered). So a repeated, a filtered and an
// observed miss count like any other, and so does one that is too old to be copied:
// a hit of the same age and place counts, too.
type answers struct {
	now    time.Time
	counts map[bucketHour]*telemetry.Answers
	last   bucketHour // rows of one bucket and hour come in a row
	at     *telemetry.Answers
}

type bucketHour struct {
	bucket string
	hour   telemetry.Hour
}

func newAnswers() answers {
	return answers{now: time.Now(), counts: map[bucketHour]*telemetry.Answers{}}
}

// answered counts a row of a routed bucket; seen is its time. Only the first row
// of a bucket and hour costs an allocation, and the window bounds those.
func (s *sheet) answered(row *accesslog.Row, r *route.Route, seen time.Time) {
	hit, miss := Answered(row, r, s.own)
	if !hit && !miss {
		return
	}
	a := &s.answers
	if at := (bucketHour{r.Bucket, telemetry.HourOf(seen)}); a.at == nil || at != a.last {
		if !at.hour.Counted(a.now) {
			return
		}
		if a.counts[at] == nil {
			a.counts[at] = &telemetry.Answers{Bucket: at.bucket, Hour: at.hour}
		}
		a.last, a.at = at, a.counts[at]
	}
	if hit {
		a.at.S3++
	} else {
		a.at.Miss++
	}
}

// count adds the log to the metrics.
func (a *answers) count(tel *telemetry.Telemetry) {
	for _, n := range a.counts {
		tel.LogRequests(*n)
	}
}
