package telemetry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Who answered a request, the values of LabelAnswer.
const (
	AnswerS3   = "s3"   // the bucket had the object
	AnswerMiss = "miss" // it had not; the CDN went on to the source
)

// Hour is an hour of UTC, counted from 1970.
type Hour int64

// HourOf is the hour that t lies in.
func HourOf(t time.Time) Hour { return Hour(t.Unix() / 3600) }

// String is the hour as RFC 3339 begins: 2026-11-30T14Z.
func (h Hour) String() string { return time.Unix(int64(h)*3600, 0).UTC().Format(hourForm) }

const hourForm = "2006-01-02T15Z"

// MarshalText is String, for /statusz.
func (h Hour) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hour) UnmarshalText(text []byte) error {
	t, err := time.Parse(hourForm, string(text))
	if err != nil {
		return fmt.Errorf("parse hour: %w", err)
	}
	*h = HourOf(t)
	return nil
}

// S3 delivers logs late, by hours as a rule and by days at times, and its clock
// may be a little ahead of ours. Hours outside the window are not counted, and one
// that has left it is shown no longer: so the series are bounded.
const (
	hoursBack  = 72
	hoursAhead = 1
	hoursKept  = hoursBack + 1 + hoursAhead
)

// Counted reports whether requests of the hour are counted now.
func (h Hour) Counted(now time.Time) bool {
	n := HourOf(now)
	return n-hoursBack <= h && h <= n+hoursAhead
}

// Answers are the requests of a bucket's visitors in one hour, by who answered.
type Answers struct {
	Bucket string `json:"bucket"`
	Hour   Hour   `json:"hour"`
	S3     int64  `json:"s3"`
	Miss   int64  `json:"miss"`
}

// share counts answers: of each bucket a ring of hours.
type share struct {
	mu      sync.Mutex
	buckets map[string]*[hoursKept]Answers
}

func (s *share) add(a Answers) {
	if !a.Hour.Counted(time.Now()) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := s.buckets[a.Bucket]
	if ring == nil {
		ring = new([hoursKept]Answers)
		s.buckets[a.Bucket] = ring
	}
	slot := &ring[a.Hour%hoursKept]
	if slot.Hour != a.Hour { // the first of its hour, or what is there has left the window
		*slot = Answers{Bucket: a.Bucket, Hour: a.Hour}
	}
	slot.S3 += a.S3
	slot.Miss += a.Miss
}

// list is every hour of the window of each bucket, in order.
func (s *share) list() []Answers {
	now := HourOf(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Answers
	for _, bucket := range slices.Sorted(maps.Keys(s.buckets)) {
		for h := now - hoursBack; h <= now+hoursAhead; h++ {
			a := s.buckets[bucket][h%hoursKept]
			if a.Hour != h {
				a = Answers{Bucket: bucket, Hour: h}
			}
			all = append(all, a)
		}
	}
	return all
}

// observe shows hours without requests, too: Prometheus sees an hour's counter
// begin at 0 and misses nothing of its increase.
func (s *share) observe(_ context.Context, o metric.Int64Observer) error {
	for _, a := range s.list() {
		for answer, n := range map[string]int64{AnswerS3: a.S3, AnswerMiss: a.Miss} {
			// Not from Instruments.set: hours come and go, and it forgets nothing.
			o.Observe(n, metric.WithAttributes(attribute.String(LabelBucket, a.Bucket),
				attribute.String(LabelHour, a.Hour.String()), attribute.String(LabelAnswer, answer)))
		}
	}
	return nil
}

// LogRequests counts requests by the hour of their log rows. bucket must be a
// routed one; counting none makes it known.
func (i *Instruments) LogRequests(a Answers) { i.share.add(a) }

// Share is who answered, by bucket and hour, without the hours that had no request.
func (i *Instruments) Share() []Answers {
	return slices.DeleteFunc(i.share.list(), func(a Answers) bool { return a.S3+a.Miss == 0 })
}
