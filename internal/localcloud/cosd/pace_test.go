package cosd

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve answers one GET without a socket, so that synctest's clock rules it.
func serve(ctx context.Context, s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
	return w
}

func TestLatencyIsWithinItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Behaviour: Behaviour{PublicRead: true, LatencyMin: 100 * time.Millisecond, LatencyMax: 300 * time.Millisecond}})
		s.Put("a", []byte("x"), Attributes{})
		least, most := time.Hour, time.Duration(0)
		for range 200 {
			begin := time.Now()
			serve(t.Context(), s, "/a")
			least, most = min(least, time.Since(begin)), max(most, time.Since(begin))
		}
		if least < 100*time.Millisecond || least > 130*time.Millisecond || most < 270*time.Millisecond || most > 300*time.Millisecond {
			t.Errorf("200 requests took %v to %v", least, most)
		}
	})
}

func TestRateIsCappedPerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Behaviour: Behaviour{PublicRead: true, BytesPerSecond: 10 << 20}})
		s.PutSynthetic("big", 20<<20, 1, Attributes{NoCRC: true})
		conn := context.WithValue(t.Context(), meterKey{}, &meter{})
		begin := time.Now()
		serve(conn, s, "/big")
		serve(conn, s, "/big")
		if d := time.Since(begin); d < 3900*time.Millisecond || d > 4100*time.Millisecond {
			t.Errorf("twice 20 MiB over one connection of 10 MiB/s took %v", d)
		}
		s.PutSynthetic("small", 100<<10, 1, Attributes{})
		begin = time.Now()
		for range 100 {
			serve(conn, s, "/small")
		}
		if d := time.Since(begin); d < 900*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("100 times 100 KiB over that connection took %v", d)
		}
		begin = time.Now()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { serve(context.WithValue(t.Context(), meterKey{}, &meter{}), s, "/big") })
		}
		both.Wait()
		if d := time.Since(begin); d < 1900*time.Millisecond || d > 2100*time.Millisecond {
			t.Errorf("20 MiB over each of two connections took %v", d)
		}
	})
}

// A late timer is made up for, so that the rate holds on a machine that is busy;
// a client that stops reading is not.
func TestOnlyShortDelaysAreMadeUpFor(t *testing.T) {
	for _, tc := range []struct {
		name        string
		every, once time.Duration
		want        time.Duration
	}{
		{"late timers", time.Millisecond, 0, 2 * time.Second},
		{"a client that stops", 0, 3 * time.Second, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{Behaviour: Behaviour{PublicRead: true, BytesPerSecond: 10 << 20}})
				s.PutSynthetic("big", 20<<20, 1, Attributes{NoCRC: true})
				w := &slow{ResponseRecorder: httptest.NewRecorder(), every: tc.every, once: tc.once}
				begin := time.Now()
				s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/big", nil))
				if d := time.Since(begin); d < tc.want-150*time.Millisecond || d > tc.want+50*time.Millisecond || w.Body.Len() != 20<<20 {
					t.Errorf("%d bytes took %v, want about %v", w.Body.Len(), d, tc.want)
				}
			})
		})
	}
}

// slow delays every write, of 32 KiB each, and the first one once.
type slow struct {
	*httptest.ResponseRecorder
	every, once time.Duration
}

func (w *slow) Write(p []byte) (int, error) {
	time.Sleep(w.every + w.once)
	w.once = 0
	return w.ResponseRecorder.Write(p)
}

func TestRequestLimitRefusesAndCounts(t *testing.T) {
	for status, code := range map[int]string{0: "SlowDown", 503: "SlowDown", 429: "RequestLimitExceeded"} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Behaviour: Behaviour{PublicRead: true, RequestsPerSecond: 10, LimitStatus: status}})
			s.Put("a", []byte("x"), Attributes{})
			for range 100 { // 5 s at twice the limit, after a second's worth at once
				time.Sleep(50 * time.Millisecond)
				if w := serve(t.Context(), s, "/a"); w.Code != 200 {
					if r := (reply{body: w.Body.Bytes()}); r.code() != code {
						t.Fatalf("refused with %d %q", w.Code, r.code())
					}
				}
			}
			c := s.Counts()
			if c.ByStatus[200] < 58 || c.ByStatus[200] > 61 || c.Throttled != 100-c.ByStatus[200] || c.Answers != 100 {
				t.Errorf("of 100: %v, throttled %d, answers %d", c.ByStatus, c.Throttled, c.Answers)
			}
			answers, throttled := 0, 0
			for _, second := range c.BySecond {
				answers += second.Answers
				throttled += second.Throttled
			}
			if answers != 100 || throttled != c.Throttled || len(c.BySecond) < 5 {
				t.Errorf("by second: %v", c.BySecond)
			}
		})
	}
}

func TestJournalCounts(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("a", []byte("12345"), Attributes{})
	hang := s.Lie(When{Key: "slow"}, Hang())
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() { do(t.Context(), s, "GET", "/slow") })
	}
	waitFor(t, func() bool { return s.Counts().Running == 3 })
	hang.Heal()
	waiting.Wait()
	ask(t, s, "GET", "/a", "Range", "bytes=1-2")
	waitFor(t, func() bool { return s.Counts().Running == 0 })
	c := s.Counts()
	if c.Requests != 4 || c.Answers != 4 || c.MaxConcurrent != 3 || c.ByKey["slow"] != 3 || c.ByStatus[404] != 3 ||
		c.ByStatus[206] != 1 || c.MaxConns != 3 {
		t.Errorf("%+v", c)
	}
	last := s.Entries()[3]
	if last.Key != "a" || last.Range != "bytes=1-2" || last.Status != 206 || last.Bytes != 2 || last.Signed {
		t.Errorf("last entry %+v", last)
	}
	ask(t, s, "HEAD", "/a")
	waitFor(t, func() bool { return s.Counts().Running == 0 })
	if head := s.Entries()[4]; head.Method != "HEAD" || head.Status != 200 || head.Bytes != 0 {
		t.Errorf("HEAD entry %+v", head)
	}
	s.ResetCounts()
	if c := s.Counts(); c.Requests != 0 || len(c.ByKey) != 0 || len(s.Entries()) != 0 {
		t.Errorf("after ResetCounts: %+v", c)
	}
}

func TestDownRefusesAndUpComesBack(t *testing.T) {
	s, body := liar(t, When{})
	honest(t, s, body)
	s.Down()
	if _, err := do(t.Context(), s, "GET", "/k"); !isRefused(err) {
		t.Errorf("down: %v", err)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	honest(t, s, body)
}

func TestResetOnAcceptEndsPresentConnectionsToo(t *testing.T) {
	s, body := liar(t, When{})
	hang := s.Lie(When{}, Hang())
	ended := make(chan error)
	go func() { _, err := do(t.Context(), s, "GET", "/k"); ended <- err }()
	waitFor(t, func() bool { return hang.Told() == 1 })
	s.Change(func(b *Behaviour) { b.ResetOnAccept = true })
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a present connection: %v", err)
	}
	if _, err := do(t.Context(), s, "GET", "/k"); err == nil || isRefused(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a new connection: %v", err)
	}
	s.Heal()
	s.Change(func(b *Behaviour) { b.ResetOnAccept = false })
	honest(t, s, body)
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	s, _ := liar(t, When{})
	s.Change(func(b *Behaviour) { b.MaxConns = 2 })
	hang := s.Lie(When{}, Hang())
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if r, err := do(t.Context(), s, "GET", "/k"); err != nil || r.StatusCode != 200 {
				t.Errorf("%v", err)
			}
		})
	}
	waitFor(t, func() bool { return s.Counts().Running == 2 })
	time.Sleep(50 * time.Millisecond) // a third would have come by now
	if c := s.Counts(); c.Running != 2 || c.Conns != 2 {
		t.Errorf("%d requests over %d connections", c.Running, c.Conns)
	}
	hang.Heal()
	all.Wait()
	if c := s.Counts(); c.MaxConns != 2 || c.Answers != 5 {
		t.Errorf("%+v", c)
	}
}

// isRefused reports whether nobody listened; a reset may reach the dial as well.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
