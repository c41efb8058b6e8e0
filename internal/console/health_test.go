package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/queue"
)

// TestVerdict: what is well, what opens by itself or is unknown, and what needs a
// person.
func TestVerdict(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	down := errors.New("down")
	closed := func(reason string, since time.Duration) func(*snapshot) {
		return func(s *snapshot) {
			s.fleet.Guards.Items = append(s.fleet.Guards.Items, fleet.Guard{Name: "source a", State: "closed", Reason: reason, Since: now.Add(-since), Closed: 1, Pods: 1})
		}
	}
	for name, c := range map[string]struct {
		change func(*snapshot)
		want   level
		says   string
	}{
		"all is well":                           {func(*snapshot) {}, healthy, ""},
		"a slow start is well":                  {func(s *snapshot) { s.fleet.Guards.Items = []fleet.Guard{{Name: "a", State: "slow start"}} }, healthy, ""},
		"a queue may be long":                   {func(s *snapshot) { s.queues[0].Depth = queue.Depth{Visible: 100_000} }, healthy, ""},
		"a dead letter":                         {func(s *snapshot) { s.queues[0].Dead = queue.Depth{Visible: 1} }, act, "1 dead letter in q-dead"},
		"dead letters that are being looked at": {func(s *snapshot) { s.queues[0].Dead = queue.Depth{InFlight: 1200} }, act, "1,200 dead letters in q-dead"},
		"an outage":                             {closed("unavailable: http 503", time.Minute), watch, "it opens by itself"},
		"an outage that lasts":                  {closed("unavailable: http 503", 2*time.Hour), act, "for over 1 h"},
		"throttling":                            {closed("throttled", time.Minute), watch, "Gate closed: source a (throttled)"},
		"a permission is gone":                  {closed("refused: AccessDenied", 0), act, "refused: AccessDenied"},
		"useless answers":                       {closed("corrupt: crc", 0), act, "corrupt: crc"},
		"dead letters are unknown":              {func(s *snapshot) { s.queues[0].DeadErr = down }, watch, "Unknown whether q has dead letters"},
		"a depth is unknown":                    {func(s *snapshot) { s.queues[0].Err = down }, watch, "Unknown how much waits in q"},
		"a pod is silent":                       {func(s *snapshot) { s.fleet.Pods.Items[0].Err = down }, watch, "1 of 2 pods do not answer"},
		"all pods are silent":                   {func(s *snapshot) { s.fleet.Pods.Items[0].Err, s.fleet.Pods.Items[1].Err = down, down }, act, "No pod answers"},
		"a pod is not ready":                    {func(s *snapshot) { s.fleet.Pods.Items[0].Ready = false }, watch, "not ready"},
		"a pod cannot receive":                  {func(s *snapshot) { s.fleet.Pods.Items[0].Queues = []fleet.PodQueue{{Name: "q", Failures: 3}} }, watch, "cannot receive from q"},
		"guards are unknown":                    {func(s *snapshot) { s.fleet.Guards.Err = down }, watch, "Unknown: guards"},
		"nothing of the fleet":                  {func(s *snapshot) { s.fleet = (&fleet.Reader{}).Read(t.Context()) }, watch, "Unknown: ends"},
		"no process is known":                   {func(s *snapshot) { s.fleet.Pods.Items = nil }, act, "No process is known"},
		"Prometheus knows some":                 {func(s *snapshot) { s.fleet.Pods.Items = nil; s.fleet.Guards.Items = []fleet.Guard{{State: "open"}} }, healthy, ""},
		"logs do not come":                      {func(s *snapshot) { s.fleet.Rows.Items = []fleet.Row{{Bucket: "m", Newest: now.Add(-13 * time.Hour)}} }, watch, "No log row of m is newer than 13 h"},
		"logs come late as a rule":              {func(s *snapshot) { s.fleet.Rows.Items = []fleet.Row{{Bucket: "m", Newest: now.Add(-11 * time.Hour)}} }, healthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{at: now, fleet: &fleet.Reading{}, queues: []queueReading{{Queue: Queue{Name: "sync", URL: "https://sqs.example.com/111122223333/q"}, DeadURL: "https://sqs.example.com/111122223333/q-dead"}}}
			s.fleet.Pods.Items = []fleet.Pod{{URL: "http://a", Ready: true}, {URL: "http://b", Ready: true}}
			c.change(s)
			v := judge(s)
			text := ""
			for _, r := range v.Reasons {
				text += r.Text + "\n"
			}
			if v.Level != c.want || !strings.Contains(text, c.says) || (len(v.Reasons) == 0) != (c.want == healthy) {
				t.Errorf("the verdict is %s with %q, want %s with %q", v.Level.Word(), text, c.want.Word(), c.says)
			}
		})
	}
}

func TestTheGravestReasonStandsFirst(t *testing.T) {
	s := &snapshot{at: time.Now(), fleet: &fleet.Reading{}, queues: []queueReading{{Err: errors.New("down")}, {Dead: queue.Depth{Visible: 1}}}}
	if v := judge(s); v.Level != act || v.Reasons[0].Level != act {
		t.Errorf("the verdict is %+v", v)
	}
}
