package parse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/accesslog"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// atOnce is how many requests of one log are on their way to SQS at once; a key
// that is among them is not asked for twice.
const atOnce = 100

// otherBucket stands in metrics for buckets without a route, whose names are
// not ours.
const otherBucket = "other"

// sheet reads the rows of one log object.
type sheet struct {
	*Parser
	log string // s3://bucket/key, for the requests

	last struct { // the route of the bucket of the row before: rows of one bucket come in a row
		bucket string
		route  *route.Route
	}
	pending []request
	asked   map[[2]string]bool // bucket and key of pending
	counts  map[count]int64
	newest  map[string]time.Time // by routed bucket
	answers answers

	rows, misses, requested, unparsed int64
}

// request is a miss on its way to its sync queue.
type request struct {
	bucket, key string
	queue       string // URL
	entry       queue.Entry
}

// count is what rows are counted by.
type count struct {
	bucket  string
	verdict accesslog.Verdict
	why     accesslog.Why
}

func (p *Parser) newSheet(bucket, key string) *sheet {
	return &sheet{Parser: p, log: "s3://" + bucket + "/" + key, asked: map[[2]string]bool{}, counts: map[count]int64{}, newest: map[string]time.Time{},
		answers: newAnswers()}
}

// read reads all rows and returns once every miss was accepted by its sync queue.
// At an error, what was counted and accepted so far stands.
func (s *sheet) read(ctx context.Context, in *ranges) error {
	defer s.report()
	in.ctx = ctx
	rows := accesslog.NewScanner(in)
	for rows.Next() {
		row := rows.Row()
		s.rows++
		r := s.route(row)
		verdict, why := row.Verdict, row.Why
		if verdict == accesslog.Miss || verdict == accesslog.Maybe {
			verdict, why = s.judge(row, r)
		}
		if r != nil && verdict != accesslog.Unparsed {
			t := row.Time()
			if t.After(s.newest[r.Bucket]) {
				s.newest[r.Bucket] = t
			}
			s.answered(row, r, t)
		}
		s.count(r, verdict, why)
		if len(s.pending) == atOnce {
			if err := s.send(ctx); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); errors.Is(err, accesslog.ErrGzip) {
		// The object will not get better: what could be read of it was, the rest
		// is one row that could not.
		s.Tel.Log.Warn().Ctx(ctx).Str("log", fmt.Sprintf("%+q", s.log)).Int64("rows", s.rows).Err(err).Msg("log object is cut or damaged; its readable rows were used")
		s.rows++
		s.count(nil, accesslog.Unparsed, "broken gzip")
	} else if err != nil {
		return err
	}
	return s.send(ctx)
}

// route finds the route of a row's bucket, nil when there is none.
func (s *sheet) route(row *accesslog.Row) *route.Route {
	if string(row.Bucket) != s.last.bucket {
		s.last.bucket = string(row.Bucket)
		s.last.route, _ = s.Routes.Lookup(s.last.bucket)
	}
	return s.last.route
}

// judge says what becomes of a row that, alone, is a miss or may be one, and puts
// its request into pending if it is to be asked for.
func (s *sheet) judge(row *accesslog.Row, r *route.Route) (accesslog.Verdict, accesslog.Why) {
	now := time.Now()
	verdict, why := Judge(row, r, s.own, now)
	if verdict != accesslog.Miss {
		return verdict, why
	}
	seen := row.Time()
	if seen.After(now) {
		seen = now // S3's clock is a little ahead of ours; an end must not look older than its miss
	}
	key := string(row.Key())
	s.misses++
	s.Tel.Miss(r.Bucket, string(row.Why))
	id := [2]string{r.Bucket, key}
	// What was missed after it was last asked for is missed again: it may have
	// appeared at the source since.
	if _, at, known := s.recent.Get(r.Bucket, key); s.asked[id] || known && !seen.After(at) {
		return accesslog.Skip, whyRepeated
	}
	if r.Observe() {
		s.recent.Put(r.Bucket, key, struct{}{}, now)
		return accesslog.Miss, whyObserved
	}
	body, err := syncrequest.Encode(syncrequest.Request{Bucket: r.Bucket, Key: key, Seen: seen, Cause: string(row.Why), Log: s.log})
	if err != nil {
		return accesslog.Unparsed, accesslog.BadKey
	}
	s.asked[id] = true
	s.pending = append(s.pending, request{bucket: r.Bucket, key: key, queue: r.QueueURL(s.cfg.SyncQueue), entry: queue.Entry{Body: body}})
	return accesslog.Miss, row.Why
}

// send hands the pending requests to their queues. A key counts as asked for only
// once SQS has accepted it.
func (s *sheet) send(ctx context.Context) error {
	byQueue := map[string][]request{}
	for _, r := range s.pending {
		byQueue[r.queue] = append(byQueue[r.queue], r)
	}
	var failed error
	for url, requests := range byQueue {
		entries := make([]queue.Entry, len(requests))
		for i, r := range requests {
			entries[i] = r.entry
		}
		for i, err := range s.Senders[url].Send(ctx, entries) {
			switch {
			case err == nil:
				s.requested++
				s.recent.Put(requests[i].bucket, requests[i].key, struct{}{}, time.Now())
			case object.ClassOf(err) == object.Unfit: // no attempt can send it
				s.Tel.Log.Error().Ctx(ctx).Str("log", fmt.Sprintf("%+q", s.log)).Err(err).Msg("request cannot be sent")
			default:
				failed = fmt.Errorf("request missed keys: %w", err)
			}
		}
	}
	s.pending = s.pending[:0]
	clear(s.asked)
	return failed
}

func (s *sheet) count(r *route.Route, verdict accesslog.Verdict, why accesslog.Why) {
	bucket := otherBucket
	if r != nil {
		bucket = r.Bucket
	}
	if verdict == accesslog.Unparsed {
		s.unparsed++
	}
	s.counts[count{bucket, verdict, why}]++
}

// report adds what this sheet counted to the metrics: once a log, not once a row.
func (s *sheet) report() {
	for c, n := range s.counts {
		s.Tel.Rows(c.bucket, string(c.verdict), string(c.why), n)
	}
	for bucket, t := range s.newest {
		s.Tel.LastRow(bucket, t)
	}
}
