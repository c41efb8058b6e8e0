package app

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestNewOpensNoSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			c.Close()
		}
	}()
	leaks := goleak.IgnoreCurrent()
	at := "http://" + l.Addr().String()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": at, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"} {
		t.Setenv(name, value)
	}
	// The admin address is taken, which New must not notice.
	a := newApp(t, RoleAll, strings.NewReplacer("ENDPOINT", at, "TAKEN", l.Addr().String()).Replace(`
region: us-west-2
queues: {logs: ENDPOINT/111122223333/logs, sync: ENDPOINT/111122223333/sync}
logs: [{bucket: log-bucket, when_done: keep}]
routes: [{bucket: media, source: {cos: ENDPOINT, custom_domain: true, read: anonymous}}]
admin: {listen: "TAKEN"}
`))
	goleak.VerifyNone(t, leaks)
	if n := connections.Load(); n != 0 {
		t.Errorf("New made %d connections", n)
	}
	a.cfg.Admin.Listen = ""
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "Start makes connections", func() bool { return connections.Load() > 0 })
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	l.Close()
	<-accepting
}

func TestAFailedStartLeavesNothingBehind(t *testing.T) {
	s := newSite(t, cosd.Config{})
	leaks := goleak.IgnoreCurrent()
	taken := strings.TrimPrefix(s.S3URL, "http://")
	a := newApp(t, RoleAll, s.YAML([]localcloud.Route{{}}, `admin: {listen: "`+taken+`"}`))
	err := a.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), `admin.listen "`+taken+`"`) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Start with a taken admin address: %v", err)
	}
	goleak.VerifyNone(t, leaks)
	if n := s.Cloud.Count("", "", "").Calls + s.COS.Counts().Requests; n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Errorf("stop after it: %v", err)
	}
}

func TestNothingRunsAfterStop(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	s := newSite(t, cosd.Config{})
	s.COS.Put("a.jpg", []byte("picture"), cosd.Attributes{})
	a := newApp(t, RoleAll, s.YAML([]localcloud.Route{{}}, `admin: {listen: "127.0.0.1:0"}`))
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "a.jpg")
	until(t, "the object is copied", inS3(s, localcloud.Bucket, "a.jpg"))
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if d := s.Cloud.Depth(localcloud.SyncQueue); d.Total() != 0 {
		t.Errorf("after the drain the queue holds %+v", d)
	}
	if c, err := net.Dial("tcp", a.AdminAddr()); err == nil {
		c.Close()
		t.Error("the admin server still listens")
	}
	s.Close() // ends the connections that clients keep
	goleak.VerifyNone(t, leaks)
}

// hanging starts a process that holds a message, on which the source leaves it
// waiting for a minute.
func hanging(t *testing.T) (*localcloud.Site, *App) {
	t.Helper()
	t.Setenv("OBJECTFERRY_GUARD_TIMEOUT", "1m")
	s := newSite(t, cosd.Config{})
	s.COS.Put("a.jpg", []byte("picture"), cosd.Attributes{})
	s.COS.Lie(cosd.When{}, cosd.Hang())
	a := newApp(t, RoleCopy, s.YAML([]localcloud.Route{{}}))
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "a.jpg")
	until(t, "the source is asked", func() bool { return s.COS.Counts().ByKey["a.jpg"] > 0 })
	return s, a
}

func TestStopIsBoundedByItsDeadline(t *testing.T) {
	s, a := hanging(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := a.Stop(ctx); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d < 150*time.Millisecond || d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
	if m := s.Cloud.Messages(localcloud.SyncQueue); len(m) != 1 || len(s.Cloud.Messages(localcloud.SyncQueue+localcloud.DeadSuffix)) > 0 {
		t.Errorf("the message was not handed back: %+v", m)
	}
}

func TestASecondStopHastensTheFirst(t *testing.T) {
	s, a := hanging(t)
	stopped := make(chan error)
	go func() { stopped <- a.Stop(context.Background()) }()
	until(t, "the drain has begun", a.stopping.Load)
	select {
	case err := <-stopped:
		t.Fatalf("it did not wait for the work in hand: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	start := time.Now()
	if err := errors.Join(a.Stop(t.Context()), <-stopped); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
	if m := s.Cloud.Messages(localcloud.SyncQueue); len(m) != 1 {
		t.Errorf("the message was not handed back: %+v", m)
	}
}

// What a drain could not do is told, or an operator takes it for a clean one.
func TestStopTellsWhatADrainLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fakeApp(t, &fakeSQS{message: "{}", deaf: true}, 1, idle)
		a.startConsumers()
		time.Sleep(time.Second) // it is worked on
		now, cancel := context.WithCancel(t.Context())
		cancel()
		err := a.Stop(now)
		if err == nil || !strings.Contains(err.Error(), `stop consumers: drain queue "sync": 1 messages were left to their visibility timeout`) {
			t.Errorf("stop: %v", err)
		}
		select {
		case err := <-a.Failed():
			t.Errorf("a drain is no failure of a part: %v", err)
		default:
		}
	})
}

func TestAQueueWithoutRedrivePolicyIsRefused(t *testing.T) {
	s := newSite(t, cosd.Config{})
	t.Setenv("OBJECTFERRY_QUEUES_SYNC", s.QueueURL(localcloud.SyncQueue+localcloud.DeadSuffix))
	a := startApp(t, RoleAll, s.YAML([]localcloud.Route{{}}))
	select {
	case err := <-a.Failed():
		for _, want := range []string{`open queue "objectferry-sync-dead"`, "redrive policy", "give the queue a redrive policy"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if n := s.Cloud.Count(strictaws.ServiceSQS, "ReceiveMessage", localcloud.SyncQueue+localcloud.DeadSuffix).Calls; n != 0 {
		t.Errorf("it was received from %d times", n)
	}
}

func TestTheStackUnwindsLastInFirstOut(t *testing.T) {
	var s stack
	var order []string
	for _, name := range []string{"admin", "guards", "consumers"} {
		s.push(name, func(context.Context) error {
			order = append(order, name)
			if name == "guards" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	err := s.unwind(t.Context())
	if diff := cmp.Diff([]string{"consumers", "guards", "admin"}, order); diff != "" {
		t.Error(diff)
	}
	if err == nil || err.Error() != "stop guards: stuck" {
		t.Errorf("a failing step is not named: %v", err)
	}
	if err := s.unwind(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("again: %v, %v", err, order)
	}
}

func TestALoopIsWaitedForUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for work, want := range map[time.Duration]error{time.Second: nil, time.Minute: context.DeadlineExceeded} {
			var s stack
			s.loop("guard", func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(work)
				return ctx.Err()
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			start := time.Now()
			if err := s.unwind(ctx); !errors.Is(err, want) {
				t.Errorf("work of %s: %v", work, err)
			}
			if d := time.Since(start); d != min(work, 10*time.Second) {
				t.Errorf("work of %s was waited for %s", work, d)
			}
			cancel()
			time.Sleep(time.Minute)
		}
	})
}

func TestAQueueIsOpenedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mendable, final := errors.New("connection refused"), errors.New("no redrive policy")
		permanent := func(err error) bool { return err == final }
		start := time.Now()
		open := func(answers ...error) (int, error) {
			tries := 0
			err := untilOpen(t.Context(), 5*time.Second, func(context.Context) error { tries++; return answers[tries-1] }, permanent, func(error) {})
			return tries, err
		}
		if tries, err := open(mendable, mendable, nil); err != nil || tries != 3 || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %d tries and %s", err, tries, time.Since(start))
		}
		if tries, err := open(mendable, final, nil); err != final || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour-time.Second)
		defer cancel()
		var failed []error
		err := untilOpen(ctx, 5*time.Second, func(context.Context) error { return mendable }, permanent, func(err error) { failed = append(failed, err) })
		if !errors.Is(err, context.DeadlineExceeded) || len(failed) != 720 || slices.ContainsFunc(failed, permanent) {
			t.Errorf("%v after %d failures", err, len(failed))
		}
	})
}

func TestRolesAreParsed(t *testing.T) {
	for _, s := range []string{"parse", "copy", "all"} {
		if r, err := ParseRole(s); err != nil || string(r) != s {
			t.Errorf("%s is %q, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "All", "both"} {
		if _, err := ParseRole(s); err == nil {
			t.Errorf("%q passes", s)
		}
	}
}
