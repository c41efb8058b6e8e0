package app

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// fakeApp is a process with one queue on a fake SQS; its gate admits so many.
func fakeApp(t *testing.T, api *fakeSQS, slots int, h queue.Handler) *App {
	t.Helper()
	a := &App{cfg: config.Default(), tel: telemetry.Nop(), failed: make(chan error, 1)}
	a.work, a.hasten = context.WithCancel(context.Background())
	c := queue.DefaultConfig()
	c.Name, c.URL = "sync", "https://sqs.us-west-2.amazonaws.com/111122223333/sync"
	consumer, err := queue.NewConsumer(api, guard.Slots(slots), h, c, a.tel)
	if err != nil {
		t.Fatal(err)
	}
	a.consumers = append(a.consumers, consumer)
	return a
}

func idle(ctx context.Context, _ *queue.Delivery) queue.Outcome {
	<-ctx.Done()
	return queue.Outcome{Verb: queue.HandBack}
}

func TestHealthzIsRedWhenALoopStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fakeApp(t, &fakeSQS{}, 1, idle) // nobody runs its loops
		time.Sleep(staleAfter - time.Second)
		if status, body := get(a, "/healthz"); status != http.StatusOK {
			t.Errorf("after less than two minutes %d: %s", status, body)
		}
		time.Sleep(2 * time.Second)
		status, body := get(a, "/healthz")
		if want := "the loop of queue sync has not ticked for 2m1s"; status != http.StatusServiceUnavailable || first(body) != want {
			t.Errorf("after two minutes %d: %s", status, body)
		}
	})
}

func TestHealthzStaysGreenWhileNothingCanBeDone(t *testing.T) {
	for name, tt := range map[string]struct {
		api   fakeSQS
		slots int
	}{
		"the gate is closed":      {slots: 0},
		"the queue is empty":      {slots: 1},
		"AWS cannot be reached":   {api: fakeSQS{down: true}, slots: 1},
		"one message takes hours": {api: fakeSQS{message: "{}"}, slots: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := fakeApp(t, &tt.api, tt.slots, idle)
				a.startConsumers()
				for range 60 {
					time.Sleep(time.Minute)
					if status, body := get(a, "/healthz"); status != http.StatusOK {
						t.Fatalf("%d: %s", status, body)
					}
				}
				now, cancel := context.WithCancel(t.Context())
				cancel()
				if err := a.Stop(now); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An AWS that cannot be reached at start is retried; until then it is not ready.
// From then on it is, also while a source is down: a rollout must pass then, too.
func TestReadyzWaitsForTheQueuesAndForNothingElse(t *testing.T) {
	s := newSite(t, cosd.Config{})
	down := s.Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Do: strictaws.Reset{}})
	a := startApp(t, RoleAll, s.YAML([]localcloud.Route{{}}))
	until(t, "both queues were asked for twice", func() bool {
		return s.Cloud.Count(strictaws.ServiceSQS, "GetQueueAttributes", localcloud.LogsQueue).Calls > 1 &&
			s.Cloud.Count(strictaws.ServiceSQS, "GetQueueAttributes", localcloud.SyncQueue).Calls > 1
	})
	if status, body := get(a, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not all queues have been opened yet") {
		t.Errorf("without queues %d: %s", status, body)
	}
	down.Remove()
	ready := func() bool { status, _ := get(a, "/readyz"); return status == http.StatusOK }
	until(t, "ready", ready)

	s.COS.Change(func(b *cosd.Behaviour) { b.ResetOnAccept = true })
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "a.jpg")
	until(t, "the source's gate is closed", func() bool { _, page := get(a, "/statusz"); return strings.Contains(page, `"state": "closed"`) })
	if status, body := get(a, "/healthz"); status != http.StatusOK || !ready() {
		t.Errorf("while the source is down: healthz %d %s", status, body)
	}
}
