package parse

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// share is what was counted of all hours.
func (b *bench) share() (s3, miss int64) {
	for _, a := range b.Tel.Share() {
		s3, miss = s3+a.S3, miss+a.Miss
	}
	return s3, miss
}

func TestTheShareCountsWhatVisitorsSaw(t *testing.T) {
	const (
		own    = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/pod-1"
		signed = "arn:aws:iam::999999999999:user/x"
		agent  = "sdk app/objectferry m/E"
	)
	type tuned = func(*config.Route, *config.Log, *Config)
	for _, c := range []struct {
		rule     string
		tune     tuned
		row      row
		s3, miss int64
	}{
		{"a read that S3 answered", nil, row{status: "200 -"}, 1, 0},
		{"a part of an object", nil, row{status: "206 -"}, 1, 0},
		{"not modified", nil, row{status: "304 -"}, 1, 0},
		{"a HEAD", nil, row{status: "200 -", op: "REST.HEAD.OBJECT"}, 1, 0},
		{"a website's read", nil, row{status: "200 -", op: "WEBSITE.GET.OBJECT"}, 1, 0},
		{"a signed visitor, such as the CDN", nil, row{status: "200 -", requester: signed}, 1, 0},
		{"a miss", nil, row{}, 0, 1},
		{"a 403 that the route takes for a miss", func(r *config.Route, _ *config.Log, _ *Config) { r.ForbiddenIsMiss = true }, row{status: "403 AccessDenied"}, 0, 1},
		{"a miss that the route does not carry", func(r *config.Route, _ *config.Log, _ *Config) { r.Exclude = []string{"**"} }, row{}, 0, 1},
		{"a miss that is too old to be copied", func(r *config.Route, _ *config.Log, _ *Config) { r.MaxAge = config.Duration(time.Hour) }, row{age: 2 * time.Hour}, 0, 1},
		{"a miss that is only observed", func(r *config.Route, _ *config.Log, _ *Config) { r.Mode = config.ModeObserve }, row{}, 0, 1},
		{"a 403 that the route does not take for a miss", nil, row{status: "403 AccessDenied"}, 0, 0},
		{"another error", nil, row{status: "503 SlowDown"}, 0, 0},
		{"a write", nil, row{status: "200 -", op: "REST.PUT.OBJECT"}, 0, 0},
		{"a copy within S3, found", nil, row{status: "200 -", op: "REST.COPY.OBJECT_GET"}, 0, 0},
		{"a copy within S3, missed", nil, row{op: "REST.COPY.OBJECT_GET"}, 0, 0},
		{"a hit of the ferry's own role", nil, row{status: "200 -", requester: own}, 0, 0},
		{"a miss of the ferry's own role", nil, row{requester: own}, 0, 0},
		{"a hit with the ferry's own agent, signed", nil, row{status: "200 -", requester: signed, agent: agent}, 0, 0},
		{"a miss with the ferry's own agent, signed", nil, row{requester: signed, agent: agent}, 0, 0},
		{"a stranger with the ferry's agent", nil, row{status: "200 -", agent: agent}, 1, 0},
		{"a bucket without a route", nil, row{status: "200 -", bucket: "elsewhere"}, 0, 0},
		{"older than the window", nil, row{status: "200 -", age: 74 * time.Hour}, 0, 0},
		{"far ahead of the clock", nil, row{status: "200 -", age: -3 * time.Hour}, 0, 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			b := newBench(t, c.tune)
			c.row.key = "a.jpg"
			b.Handle(t.Context(), b.log("1", c.row))
			if s3, miss := b.share(); s3 != c.s3 || miss != c.miss {
				t.Errorf("counted %d from S3 and %d missed, want %d and %d", s3, miss, c.s3, c.miss)
			}
		})
	}
}

// TestARepeatedMissIsStillARequest: that a key is asked for once says nothing of
// how many visitors missed it.
func TestARepeatedMissIsStillARequest(t *testing.T) {
	b := newBench(t, nil)
	b.Handle(t.Context(), b.log("1", row{key: "a"}, row{key: "a"}, row{key: "hit", status: "200 -"}))
	b.Handle(t.Context(), b.log("2", row{key: "a", age: time.Second}))
	if s3, miss := b.share(); s3 != 1 || miss != 3 || len(b.sender.keys) != 1 {
		t.Errorf("counted %d from S3 and %d missed, requested %q; want 1, 3 and a once", s3, miss, b.sender.keys)
	}
}

func TestTheShareIsByTheRowsOwnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		var rows []row
		var want []telemetry.Answers
		for _, age := range []time.Duration{50 * time.Hour, 3 * time.Hour, 0} {
			rows = append(rows, row{key: "hit", status: "200 -", age: age}, row{key: age.String(), age: age})
			want = append(want, telemetry.Answers{Bucket: "overseas-media", Hour: telemetry.HourOf(time.Now().Add(-age)), S3: 2, Miss: 2})
		}
		rows = append(rows, rows...) // the hours come again
		b.Handle(t.Context(), b.log("1", rows...))
		if diff := cmp.Diff(want, b.Tel.Share()); diff != "" {
			t.Errorf("share (-want +got):\n%s", diff)
		}
	})
}

// TestALogCountsOnceItWillNotBeReadAgain: an attempt that fails counts nothing, or
// an outage of the sync queue would count its logs over and over.
func TestALogCountsOnceItWillNotBeReadAgain(t *testing.T) {
	for _, done := range []string{"keep", "delete"} {
		b := newBench(t, func(_ *config.Route, l *config.Log, _ *Config) { l.WhenDone = done })
		b.log("1", row{key: "hit", status: "200 -"})
		b.log("2", row{key: "a"})
		d := notification("access/1", "access/2")
		b.sender.fault = func(string) error { return &object.Error{Side: object.Queue, Class: object.Unavailable} }
		b.Handle(t.Context(), d)
		deleted := int64(len(b.store.deleted)) // of those that were, the next attempt sees nothing
		if s3, miss := b.share(); s3 != deleted || miss != 0 {
			t.Errorf("%s: after a failure %d from S3 and %d missed are counted, want %d and 0", done, s3, miss, deleted)
		}
		for _, name := range b.store.deleted {
			delete(b.store.objects, name)
		}
		b.sender.fault = nil
		if got := b.Handle(t.Context(), d); got.Verb != queue.Settle {
			t.Fatalf("%s: %+v", done, got)
		}
		if s3, miss := b.share(); s3 != 1 || miss != 1 {
			t.Errorf("%s: %d from S3 and %d missed are counted, want 1 and 1", done, s3, miss)
		}
	}
}

// TestARowThatIsNoMissCostsNoAllocation: twice the rows, the same allocations.
func TestARowThatIsNoMissCostsNoAllocation(t *testing.T) {
	b := newBench(t, nil)
	hits := row{key: "hit", status: "200 -"}.String() + row{key: "hit", status: "304 -", requester: "arn:aws:iam::999999999999:user/x"}.String()
	cost := func(rows int) float64 {
		b.store.objects["log-bucket/access/1"] = []byte(strings.Repeat(hits, rows/2))
		return testing.AllocsPerRun(5, func() {
			s := b.newSheet("log-bucket", "access/1")
			if err := s.read(t.Context(), &ranges{store: b.store, guard: open{}, bucket: "log-bucket", key: "access/1"}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := cost(500), cost(4500); many > few+5 {
		t.Errorf("500 hits cost %.0f allocations, 4,500 cost %.0f", few, many)
	}
}

// BenchmarkHits is what one row costs that is not a miss.
func BenchmarkHits(b *testing.B) {
	bench := newBench(b, nil)
	hit := row{key: "hit", status: "200 -", requester: "arn:aws:iam::999999999999:user/x"}.String()
	log := []byte(strings.Repeat(hit, chunk/len(hit)))
	bench.store.objects["log-bucket/access/1"] = log
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		s := bench.newSheet("log-bucket", "access/1")
		if err := s.read(b.Context(), &ranges{store: bench.store, guard: open{}, bucket: "log-bucket", key: "access/1"}); err != nil {
			b.Fatal(err)
		}
	}
}
