package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestForeignMessagesCostOnlyThemselves: messages that are no news of a log, or
// that nobody can read, are settled with a reason and disturb nothing.
func TestForeignMessagesCostOnlyThemselves(t *testing.T) {
	sideBySide(t, []report{
		// opentelemetry-collector-contrib#47045, connect PR 4667, vector PR 15331.
		{"test events are acknowledged without an error", func(t *testing.T) {
			s := quietSite(t, 5)
			sent := 0
			for _, n := range notifications(t) {
				if strings.HasPrefix(n.Note, "test event") { // as it is, and inside SNS
					sendTo(t, s, localcloud.LogsQueue, n.Body)
					sent++
				}
			}
			p := serve(t, s, "parse")
			parsedOnce(t, s, 30*time.Second)
			if n := deletes(s, localcloud.LogsQueue); n != 2 || sent != 2 {
				t.Errorf("%d of %d test events were deleted, want 2 of 2", n, sent)
			}
			noDeadLetters(t, s, localcloud.LogsQueue)
			quiet(t, p, 0)
		}},
		// vectordotdev/vector#7437, collector-contrib#42027, grafana/lambda-promtail PR 26.
		{"the log's key is decoded", func(t *testing.T) {
			s := quietSite(t, 5)
			const prefix = "year=2026/a b+c/100%/"
			putLog(t, s, prefix+"log", missOf("a"))
			yaml := strings.Replace(s.YAML([]localcloud.Route{{}}, scaled...), "prefix: "+localcloud.LogPrefix, `prefix: "`+localcloud.LogPrefix+prefix+`"`, 1)
			ferry.Start(t, s, ferry.Options{Args: []string{"--role", "parse"}, YAML: yaml})
			parsedOnce(t, s, 30*time.Second)
			requestedOnce(t, s, "a")
			noDeadLetters(t, s, localcloud.LogsQueue)
		}},
		{"what nobody can read is a dead letter with its reason and one line", foreign},           // elastic/beats#14102
		{"notifications of every shape get their right end beside each other", everyNotification}, // data-transfer-hub-cli
	})
}

func sendTo(t *testing.T, s *localcloud.Site, queue, body string) {
	t.Helper()
	if err := s.Cloud.Send(queue, body, nil); err != nil {
		t.Fatal(err)
	}
}

// quiet checks how many lines of the process's log are warnings or errors.
func quiet(t *testing.T, p *ferry.Process, want int) {
	t.Helper()
	count := func() int {
		log := p.Log()
		return strings.Count(log, `"level":"warn"`) + strings.Count(log, `"level":"error"`)
	}
	// A letter is seen in its queue before the line about it is.
	ferry.Until(t, 10*time.Second, fmt.Sprintf("%d warnings and errors", want), func() bool { return count() >= want })
	if n := count(); n != want {
		t.Errorf("%d warnings and errors, want %d:\n%.4000s", n, want, p.Log())
	}
}

// foreign sends to both queues what is neither a notification nor a request.
func foreign(t *testing.T) {
	s := quietSite(t, 5)
	const marker = "text of a stranger"
	bodies := []string{`{"foo":1,"bar":"` + marker + `"}`, "hello, " + marker, "null", strings.Repeat(marker+" ", 200<<10/len(marker))}
	queues := []string{localcloud.LogsQueue, localcloud.SyncQueue}
	for _, q := range queues {
		for _, body := range bodies {
			sendTo(t, s, q, body)
		}
	}
	keys := put(s.COS, "img", 3)
	logs(t, s, keys)
	p := serve(t, s, "all")
	for _, q := range queues {
		left := map[string]bool{}
		for _, body := range bodies {
			left[body] = true
		}
		for _, m := range deadLettersOf(t, s, q, len(bodies)) {
			if !left[m.Body] || m.Attributes["end"] != "poison" || m.Attributes["detail"] != "undecoded" {
				t.Errorf("dead letter of %s: %.40q of %d bytes, %v; want one for each body, poison, undecoded", q, m.Body, len(m.Body), m.Attributes)
			}
			delete(left, m.Body)
		}
		if most := s.Cloud.MaxReceives(q); most != 1 {
			t.Errorf("a message of %s was received %d times", q, most)
		}
	}
	copied(t, s, localcloud.Bucket, keys)
	quiet(t, p, len(queues)*len(bodies))
	if log := p.Log(); strings.Contains(log, marker) || len(log) > 20<<10 {
		t.Errorf("the log of %d bytes shows what the messages say:\n%.4000s", len(log), log)
	}
}

// notification is a case of s3event's.
type notification struct {
	Note, Body string
	Want       struct {
		Objects    [][2]string
		DeadLetter string `json:"dead_letter"`
	}
}

func notifications(t *testing.T) (all []notification) {
	t.Helper()
	text, err := os.ReadFile("../../pkg/s3event/testdata/notifications.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n notification
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// everyNotification sends all cases of notifications, and one of a hundred
// records, to one worker. The logs that they name are there, with a miss each.
func everyNotification(t *testing.T) {
	s := quietSite(t, 5)
	missed := map[string]string{} // log to key
	log := func(key string) {
		if missed[key] == "" {
			missed[key] = fmt.Sprint("missed", len(missed))
			putLog(t, s, strings.TrimPrefix(key, localcloud.LogPrefix), missOf(missed[key]))
		}
	}
	var many []string
	for i := range 100 {
		key := fmt.Sprintf("%smany/%d", localcloud.LogPrefix, i)
		log(key)
		body := s3event.Format(s3event.Record{Bucket: localcloud.LogBucket, Key: key, Size: -1})
		many = append(many, strings.TrimSuffix(strings.TrimPrefix(body, `{"Records":[`), "]}"))
	}
	sendTo(t, s, localcloud.LogsQueue, `{"Records":[`+strings.Join(many, ",")+"]}")
	dead := 0
	for _, n := range notifications(t) {
		for _, object := range n.Want.Objects {
			log(object[1])
		}
		if n.Want.DeadLetter != "" {
			dead++
		}
		sendTo(t, s, localcloud.LogsQueue, n.Body)
	}
	p := serve(t, s, "parse", "parse: {concurrency: 1}")
	for _, m := range deadLettersOf(t, s, localcloud.LogsQueue, dead) {
		if m.Attributes["end"] != "poison" {
			t.Errorf("dead letter %.80q: %v, want poison", m.Body, m.Attributes)
		}
	}
	if most := s.Cloud.MaxReceives(localcloud.LogsQueue); most != 1 {
		t.Errorf("a message was received %d times", most)
	}
	var keys []string
	for _, key := range missed {
		keys = append(keys, key)
	}
	requestedOnce(t, s, keys...)
	if strings.Contains(p.Log(), "panic") {
		t.Errorf("a message made the service panic:\n%s", p.Log())
	}
}
