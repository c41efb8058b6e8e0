package console

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/console/plot"
	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// messageView is a page that only says something.
type messageView struct {
	Title, Text string
}

// Icon is that of a page that does not judge.
func (messageView) Icon() string { return "ok" }

// overviewView is the first page.
type overviewView struct {
	Now            time.Time
	Token          string
	From           string
	Title          string
	Icon           string
	Reasons        []reason
	Share          shareView
	Queues         []queueView
	Fleet          *fleet.Reading
	Failures       []fleet.Failure
	Busy           string
	Seen           int
	Looked         *looked
	DeadKnown      bool
	Dead           int
	Details        []object.Detail
	FailuresHidden int
}

type queueView struct {
	queueReading
	Age   string
	Index int // of Deps.Queues
}

// shareView is the plot, and the same numbers by bucket.
type shareView struct {
	Key     string // changes with the numbers
	Buckets []bucketView
	Hidden  int // buckets that the plot has no room for
}

type bucketView struct {
	Bucket string
	Latest telemetry.Answers // the newest hour that has requests
	All    telemetry.Answers // over all hours
	Newest time.Time         // log row; zero when unknown
}

// maxFailures is how many of the latest failures are shown.
const maxFailures = 20

func (c *Console) newOverview(s *snapshot) overviewView {
	verdict := judge(s)
	v := overviewView{Now: s.at, Token: c.token, From: c.deps.Fleet.From(), Title: verdict.Level.Word(), Icon: verdict.Level.Class(),
		Reasons: verdict.Reasons, Share: newShareView(s.fleet), Fleet: s.fleet, DeadKnown: true,
		Details: []object.Detail{object.DetailThrottled, object.DetailUnavailable, object.DetailChanged, object.DetailCorrupt,
			object.DetailUnrouted, object.DetailInterrupted, object.DetailUnknown, object.DetailDenied,
			object.DetailUndecoded, object.DetailForeign, object.DetailMissing}}
	for i, q := range s.queues {
		v.Queues = append(v.Queues, queueView{queueReading: q, Age: ageOf(q.Queue, s.fleet.Ages), Index: i})
		v.Dead += q.Dead.Total()
		v.DeadKnown = v.DeadKnown && q.DeadErr == nil
	}
	v.Failures = s.fleet.Failures.Items
	if n := len(v.Failures); n > maxFailures {
		v.Failures, v.FailuresHidden = v.Failures[:maxFailures], n-maxFailures
	}
	v.Busy, v.Seen, v.Looked = c.desk.now()
	return v
}

// ageOf says how old a queue's messages were when they came.
func ageOf(q Queue, ages fleet.Part[fleet.Age]) string {
	label := q.Name
	if label != "logs" {
		label = queue.Name(q.URL) // the label of a sync queue's consumer
	}
	for _, a := range ages.Items {
		switch {
		case a.Queue != label:
		case a.Beyond:
			return "over " + span(a.Oldest)
		default:
			return "up to " + span(a.Oldest)
		}
	}
	if ages.Err != nil {
		return "unknown"
	}
	return "none received"
}

func newShareView(r *fleet.Reading) shareView {
	answers := r.Share.Items
	var v shareView
	hash := fnv.New64a()
	buckets := map[string]*bucketView{}
	for _, a := range answers {
		fmt.Fprintln(hash, a.Bucket, a.Hour, a.S3, a.Miss)
		b := buckets[a.Bucket]
		if b == nil {
			b = &bucketView{Bucket: a.Bucket}
			buckets[a.Bucket] = b
		}
		b.All.S3, b.All.Miss = b.All.S3+a.S3, b.All.Miss+a.Miss
		if a.S3+a.Miss > 0 {
			b.Latest = a // they come in order
		}
	}
	v.Key = fmt.Sprintf("%x", hash.Sum64())
	for _, row := range r.Rows.Items {
		if b := buckets[row.Bucket]; b != nil {
			b.Newest = row.Newest
		}
	}
	for _, b := range buckets {
		v.Buckets = append(v.Buckets, *b)
	}
	v.Hidden = len(v.Buckets) - len(plot.Shown(answers))
	slices.SortFunc(v.Buckets, func(a, b bucketView) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return v
}

// percent is the share from S3. It is rounded down, so that 100 % means all.
func percent(a telemetry.Answers) string {
	if a.S3+a.Miss == 0 {
		return "no requests"
	}
	return fmt.Sprintf("%.1f %%", float64(1000*a.S3/(a.S3+a.Miss))/10)
}

// planView is the page of one plan.
type planView struct {
	plan
	Title, Icon string
	Token       string
	Verb        string // of what is to be done
	DeadName    string
	Source      string
	SourceURL   string
	DeadURL     string
	Who         string
	AtOnce      int
	Many        bool
	UsualRate   int
	Wrong       error // what is missing of the confirmation
	Until       time.Time
	SaveDir     string
	Now         time.Time
	Live        bool // it changes by itself
	Word        string
	Seen        int
}

func (c *Console) newPlanView(p plan, wrong error) planView {
	v := planView{plan: p, Token: c.token, Verb: "Redrive", Icon: "watch", SourceURL: c.deps.Queues[p.Queue].URL, DeadURL: p.dead, Who: c.cfg.Who,
		AtOnce: deadletter.AtOnce, Many: p.Found > deadletter.AtOnce, UsualRate: deadletter.UsualRate, Wrong: wrong, Until: p.until(),
		SaveDir: c.cfg.SaveDir, Now: time.Now().UTC(), Live: p.State == counting || p.State == moving, Word: discardWord}
	if p.Drop {
		v.Verb = "Drop"
	}
	v.Source, v.DeadName = queue.Name(v.SourceURL), queue.Name(p.dead)
	v.Title = fmt.Sprintf("%s %s", v.Verb, count(p.Found, "letter"))
	switch p.State {
	case counting:
		v.Title = "Counting letters"
	case ended:
		v.Title, v.Icon = v.Verb+": ended", "ok"
	}
	_, v.Seen, _ = c.desk.now()
	return v
}
