package console

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/queue"
)

func TestWhatAConfirmationNeeds(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		plan plan
		say  confirmation
		want string
	}{
		"a rate":                       {plan{State: ready, Found: 1}, confirmation{Rate: 50}, ""},
		"a rate above 0":               {plan{State: ready, Found: 1}, confirmation{}, "rate"},
		"a rate that is a number":      {plan{State: ready, Found: 1}, confirmation{Rate: math.NaN()}, "rate"},
		"a rate within bounds":         {plan{State: ready, Found: 1}, confirmation{Rate: math.Inf(1)}, "rate"},
		"no tick up to 100":            {plan{State: ready, Found: 100}, confirmation{Rate: 1}, ""},
		"a tick above 100":             {plan{State: ready, Found: 101}, confirmation{Rate: 1}, "more than 100"},
		"the tick":                     {plan{State: ready, Found: 101}, confirmation{Rate: 1, Many: true}, ""},
		"a file for a drop":            {plan{State: ready, Found: 1, Drop: true}, confirmation{Rate: 1}, ""},
		"a word for a drop without":    {plan{State: ready, Found: 1, Drop: true}, confirmation{Rate: 1, Discard: true}, `type "discard"`},
		"that word":                    {plan{State: ready, Found: 1, Drop: true}, confirmation{Rate: 1, Discard: true, Word: "yes"}, `type "discard"`},
		"the word":                     {plan{State: ready, Found: 1, Drop: true}, confirmation{Rate: 1, Discard: true, Word: "discard"}, ""},
		"to be counted":                {plan{State: counting}, confirmation{Rate: 1}, "once only"},
		"not to be under way":          {plan{State: moving}, confirmation{Rate: 1}, "once only"},
		"not to have ended":            {plan{State: ended}, confirmation{Rate: 1}, "once only"},
		"to be counted not long since": {plan{State: ready, Made: now.Add(-16 * time.Minute)}, confirmation{Rate: 1}, "too long ago"},
	} {
		if c.plan.Made.IsZero() {
			c.plan.Made = now
		}
		err := c.plan.check(c.say, now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// letters is a console on the embedded cloud.
func letters(t *testing.T) (*localcloud.Site, *Console) {
	t.Helper()
	s, err := localcloud.Start(localcloud.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	client := queue.Client(aws.Config{Region: "us-west-2", BaseEndpoint: &s.SQSURL, Credentials: credentials.NewStaticCredentialsProvider(localcloud.AccessKey, localcloud.SecretKey, "")})
	url := s.QueueURL(localcloud.SyncQueue)
	c, _ := newTest(t, func(d *Deps, cfg *Config) {
		d.Queues = []Queue{{Name: "sync", URL: url}}
		d.Depth = func(ctx context.Context, url string) (queue.Depth, error) { return queue.ReadDepth(ctx, client, url) }
		d.Boxes = func(ctx context.Context) ([]*deadletter.Box, error) {
			b, err := deadletter.Open(ctx, client, "sync", url)
			return []*deadletter.Box{b}, err
		}
		cfg.SaveDir = t.TempDir()
	})
	return s, c
}

const dead = localcloud.SyncQueue + localcloud.DeadSuffix

func bury(t *testing.T, s *localcloud.Site, n int) {
	t.Helper()
	for range n {
		if err := s.Cloud.Send(dead, "a letter", map[string]string{"end": "failed", "detail": "unavailable"}); err != nil {
			t.Fatal(err)
		}
	}
}

// counted is a plan for all letters that are there.
func counted(t *testing.T, c *Console, drop bool) plan {
	t.Helper()
	id, err := c.desk.newPlan(drop, 0, deadletter.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	c.desk.jobs.Wait()
	p, _ := c.desk.plan(id)
	if p.State != ready {
		t.Fatalf("it is %+v", p)
	}
	return p
}

// TestNoneButWhatWasConfirmed: letters that died since are left, also in the place
// of one that is gone, and a plan is carried out once.
func TestNoneButWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	bury(t, s, 4)
	p := counted(t, c, false)
	boxes, err := c.deps.Boxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, err := boxes[0].Look(t.Context(), func(*deadletter.Letter) (bool, error) { return true, deadletter.ErrEnough })
	if err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	if _, err := boxes[0].Drop(t.Context(), gone, io.Discard, 0); err != nil {
		t.Fatal(err)
	}
	bury(t, s, 2)
	if err := c.desk.confirm(p.ID, confirmation{Rate: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := c.desk.confirm(p.ID, confirmation{Rate: 1000}); err == nil || errors.Is(err, errBusy) {
		t.Errorf("confirmed again, it says %v", err)
	}
	c.desk.jobs.Wait()
	if p, _ = c.desk.plan(p.ID); p.State != ended || p.Moved != 3 || p.Err != nil {
		t.Errorf("moved: %+v", p)
	}
	if in, left := s.Cloud.Depth(localcloud.SyncQueue).Waiting, s.Cloud.Depth(dead).Waiting; in != 3 || left != 2 {
		t.Errorf("%d are in the queue and %d dead, want 3 and 2", in, left)
	}
}

// TestOnlyTheQueueThatWasCountedIsMoved: others in its place, or none, are not.
func TestOnlyTheQueueThatWasCountedIsMoved(t *testing.T) {
	for name, found := range map[string][]*deadletter.Box{"another": {new(deadletter.Box)}, "none": nil} {
		c, _ := newTest(t, func(d *Deps, _ *Config) {
			d.Boxes = func(context.Context) ([]*deadletter.Box, error) { return found, nil }
		})
		c.desk.plans = []*plan{{ID: name, Made: time.Now(), State: ready, Found: 1, dead: "https://sqs.example.com/111122223333/q-dead"}}
		if err := c.desk.confirm(name, confirmation{Rate: 1000}); err != nil {
			t.Fatal(err)
		}
		c.desk.jobs.Wait()
		if p, _ := c.desk.plan(name); p.State != ended || p.Err == nil || !strings.Contains(p.Err.Error(), "elsewhere") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestPlansThatAreOverHoldNoLetters: what is remembered is bounded by time.
func TestPlansThatAreOverHoldNoLetters(t *testing.T) {
	now := time.Now()
	letters := map[string]bool{"1": true}
	d := &desk{plans: []*plan{{State: ready, Made: now.Add(-time.Hour), letters: letters}, {State: ended, Made: now, letters: letters},
		{State: ready, Made: now, letters: letters}, {State: moving, Made: now.Add(-time.Hour), letters: letters}}}
	d.forget(now)
	for i, want := range []int{0, 0, 1, 1} {
		if got := len(d.plans[i].letters); got != want {
			t.Errorf("plan %d holds %d letters, want %d", i, got, want)
		}
	}
}

// TestCountingMovesNothing: a plan that nobody confirms has done nothing.
func TestCountingMovesNothing(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	bury(t, s, 3)
	id, err := c.desk.newPlan(false, 0, deadletter.Filter{Detail: "unavailable"})
	if err != nil {
		t.Fatal(err)
	}
	c.desk.jobs.Wait()
	if p, _ := c.desk.plan(id); p.State != ready || p.Found != 3 || s.Cloud.Depth(dead).Waiting != 3 {
		t.Errorf("counted: %+v with %+v", p, s.Cloud.Depth(dead))
	}
}

// TestNothingIsDroppedThatCannotBeSaved: the file comes first.
func TestNothingIsDroppedThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	bury(t, s, 1)
	p := counted(t, c, true)
	if err := os.Remove(c.cfg.SaveDir); err != nil {
		t.Fatal(err)
	}
	if err := c.desk.confirm(p.ID, confirmation{Rate: 1000}); err != nil {
		t.Fatal(err)
	}
	c.desk.jobs.Wait()
	if p, _ = c.desk.plan(p.ID); p.Err == nil || p.Moved != 0 || s.Cloud.Depth(dead).Waiting != 1 {
		t.Errorf("dropped: %+v, left %+v", p, s.Cloud.Depth(dead))
	}
}

// TestOneThingAtATime: a box is for one command; what comes second is told so.
func TestOneThingAtATime(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	bury(t, s, 1)
	if err := c.desk.look(); err != nil {
		t.Fatal(err)
	}
	if err := c.desk.look(); !errors.Is(err, errBusy) {
		t.Errorf("a second look gives %v", err)
	}
	if _, err := c.desk.newPlan(false, 0, deadletter.Filter{}); !errors.Is(err, errBusy) {
		t.Errorf("a plan during a look gives %v", err)
	}
	c.desk.jobs.Wait()
	if busy, seen, last := c.desk.now(); busy != "" || seen != 1 || last == nil || last.Letters != 1 || last.Groups[0].From != localcloud.SyncQueue {
		t.Errorf("after the look: %q, %d, %+v", busy, seen, last)
	}
}

// TestStopHandsLettersBack: a look that is under way ends, and what it has seen is
// handed back; only a batch that was on its way comes back by itself.
func TestStopHandsLettersBack(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	bury(t, s, 60)
	if err := c.desk.look(); err != nil {
		t.Fatal(err)
	}
	for c.desk.seen.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.desk.stop(ctx); err != nil {
		t.Fatal(err)
	}
	if d := s.Cloud.Depth(dead); d.InFlight > queue.BatchMax {
		t.Errorf("after the stop the letters are %+v", d)
	}
	if err := c.desk.look(); !errors.Is(err, errBusy) {
		t.Errorf("after the stop a look gives %v", err)
	}
}

// TestAReasonWithoutADetailHasNoButtons: its form would mean any detail.
func TestAReasonWithoutADetailHasNoButtons(t *testing.T) {
	c, _ := newTest(t, nil)
	c.desk.last = &looked{Groups: []group{{Group: &deadletter.Group{End: "failed", Detail: "unavailable"}}, {Group: &deadletter.Group{End: "failed"}}}}
	r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	r.Host = "localhost"
	c.Handler().ServeHTTP(w, r)
	if n := strings.Count(w.Body.String(), `id="redrive-`); n != 1 || strings.Contains(w.Body.String(), `name="detail" value=""`) {
		t.Errorf("%d reasons can be redriven, want that with a detail", n)
	}
}

// TestReasonsAreBounded: whoever may send to the queue may write any reason.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	s, c := letters(t)
	for i := range maxGroups + 5 {
		if err := s.Cloud.Send(dead, "a letter", map[string]string{"end": "failed", "detail": strings.Repeat("x", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if found := c.desk.lookAt(t.Context()); len(found.Groups) != maxGroups || found.More != 5 || found.Letters != maxGroups+5 {
		t.Errorf("%d groups, %d more, %d letters, %v", len(found.Groups), found.More, found.Letters, found.Err)
	}
}
