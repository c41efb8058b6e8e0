package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// jsonLines reads one of the packages' case files.
func jsonLines[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("read %s: %d lines, %v", file, len(all), err)
	}
	return all
}

type notificationCase struct {
	Body string
	Want struct {
		Objects      [][2]string
		Acknowledged bool
		DeadLetter   string `json:"dead_letter"`
	}
}

type logCase struct {
	ID      int
	Line    string
	Verdict string
	Needs   string
	Want    struct{ Bucket, Key string }
}

func notificationCases(t *testing.T) []notificationCase {
	return jsonLines[notificationCase](t, "../../pkg/s3event/testdata/notifications.jsonl")
}

func logCases(t *testing.T) []logCase {
	return jsonLines[logCase](t, "../../pkg/accesslog/testdata/loglines.jsonl")
}

// missingLog is an object that a notification of the cases names and that is not
// there.
const missingLog = "access/2"

// poisoned is a site that is sent what nobody can read, and what must come of it.
type poisoned struct {
	t *testing.T
	s *localcloud.Site

	logs  map[string]bool              // log objects that are there
	sent  map[string]map[string]int    // by queue and end
	dead  map[string]map[string]string // by queue and body: the end of those that are dead letters
	marks map[string]bool              // texts of bodies that nobody can read, so that none of it may be in the log
}

// send puts a message into a queue that must end so, with a dead letter if dead.
func (p *poisoned) send(queue, body, end string) {
	p.t.Helper()
	if err := p.s.Cloud.Send(queue, body, nil); err != nil {
		p.t.Fatal(err)
	}
	p.sent[queue][end]++
	if strings.HasPrefix(end, "poison") || strings.HasPrefix(end, "failed") {
		p.dead[queue][body] = end
	}
}

// log puts a log object into the log bucket, which announces it.
func (p *poisoned) log(key string, content []byte) {
	p.t.Helper()
	if err := p.s.Cloud.PutObject(localcloud.LogBucket, key, content, nil); err != nil {
		p.t.Fatal(err)
	}
	p.logs[key] = true
	if len(content) == 0 {
		p.sent[localcloud.LogsQueue]["parsed empty"]++
	} else {
		p.sent[localcloud.LogsQueue]["parsed"]++
	}
}

// endOfNotification is what must become of a body of the logs queue.
func (p *poisoned) endOfNotification(body string) string {
	records, err := s3event.Parse(body)
	if err != nil {
		return "poison undecoded"
	}
	end := "parsed"
	for _, r := range records {
		switch {
		case r.Bucket != localcloud.LogBucket || !strings.HasPrefix(r.Key, localcloud.LogPrefix):
			return "poison foreign"
		case len(r.Key) > 1024: // S3 refuses to be asked
			end = "failed unknown"
		case !p.logs[r.Key]:
			end = "poison missing"
		}
	}
	return end
}

// endOfRequest is what must become of a body of the sync queue, when COS has none
// of what is asked for.
func endOfRequest(body string) string {
	r, err := syncrequest.Decode(body)
	switch {
	case errors.Is(err, syncrequest.ErrNewer):
		return "failed unrouted"
	case err != nil:
		return "poison undecoded"
	case r.Bucket != localcloud.Bucket:
		return "failed unrouted"
	case len(r.Key) > 1024:
		return "unfit"
	}
	return "absent"
}

// markHere stands in a seed where each message gets a text of its own.
const markHere = "MARK"

// fuzz returns a body made of one of seeds by a few random changes.
func fuzz(r *rand.Rand, seeds []string) string {
	odd := []string{"null", "-1", "1e999", `"`, "\\", "\\u0000", "\\ud800", "{", "}", "[]", `{"Records":`, "\t\r\n", "测试", "\U0001F6A2", "%zz", "%00", "%ff",
		strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 5000), strings.Repeat("x", 200<<10), `"v":2`, `"v":99999999999999999999`}
	body := seeds[r.IntN(len(seeds))]
	at := func() int { return r.IntN(len(body) + 1) }
	for range 1 + r.IntN(4) {
		from, to := at(), at()
		if from > to {
			from, to = to, from
		}
		switch r.IntN(6) {
		case 0:
			body = body[:from] + odd[r.IntN(len(odd))] + body[from:]
		case 1:
			body = body[:from] + string(rune(r.IntN(0x3000))) + body[min(from+1, len(body)):]
		case 2:
			body = body[:to]
		case 3:
			body = body[:from] + body[min(to, from+20):]
		case 4:
			other := seeds[r.IntN(len(seeds))]
			cut := r.IntN(len(other))
			body = body[:from] + other[cut:min(len(other), cut+r.IntN(60))] + body[from:]
		case 5:
			body = body[:to] + body[from:]
		}
	}
	carried := strings.Map(func(c rune) rune { // what SQS carries
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0xfffe && c <= 0xffff {
			return -1
		}
		return c
	}, strings.ToValidUTF8(body, "\uFFFD"))
	if carried == "" {
		return "x"
	}
	return carried[:len(strings.ToValidUTF8(carried[:min(len(carried), 700<<10)], ""))]
}

// TestPoisonCostsOneMessage is rule 9 and rule 7: what nobody can read costs one
// row or one message, which becomes a dead letter with its reason. The process
// never panics, goes on serving, writes no body to its log, and needs little
// memory, also for a log of 100 MB without a line end. Idle is a process that has
// carried one object and has nothing to do.
func TestPoisonCostsOneMessage(t *testing.T) {
	t.Parallel()
	const most = 32 << 20 // bytes above what the idle process has
	s := calmSite(t, localcloud.Config{})
	p := &poisoned{t: t, s: s, logs: map[string]bool{}, sent: map[string]map[string]int{}, dead: map[string]map[string]string{}, marks: map[string]bool{}}
	for _, q := range []string{localcloud.LogsQueue, localcloud.SyncQueue} {
		p.sent[q], p.dead[q] = map[string]int{}, map[string]string{}
	}
	process := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{Lines: []string{"max_age: 876000h"}}},
		"retry: {min: 1ms, max: 2s, wait: 1s, receives: 3}", // 1 ms: hand-backs have no limit but their number
		"guard: {probe_min: 100ms, probe_max: 1s, timeout: 2s}")})
	p.sent[localcloud.LogsQueue]["parsed"]++ // S3's test event, from when the bucket was set up
	p.heals("first/miss.bin")                // and is idle then
	idle, err := process.PeakMemory()
	if err != nil {
		t.Fatal(err)
	}

	keys := p.cases()
	p.log("access/one-line-of-100-MB", bytes.Repeat([]byte("x"), 100<<20))
	p.log("access/empty", nil)
	p.fuzzed(size(10_000, 500))

	settled(t, s, localcloud.LogsQueue, 5*time.Minute)
	settled(t, s, localcloud.SyncQueue, 5*time.Minute)
	for queue, want := range p.sent {
		ended(t, process, queue, nil, want)
		p.letters(queue)
	}
	copied(t, s, localcloud.Bucket, keys)
	if n := metric(t, process, "objectferry_rows_total", `verdict="unparsed"`, `why="too long"`); n != 1 {
		t.Errorf("a line of 100 MB is counted as %v rows", n)
	}

	peak, err := process.PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak memory %d MiB, idle %d MiB", peak>>20, idle>>20)
	if peak > idle+most {
		t.Errorf("peak memory is %d MiB, %d MiB above idle, want at most %d", peak>>20, (peak-idle)>>20, most>>20)
	}
	p.heals("last/miss.bin")
	p.isWell(process)
}

// heals has a visitor miss an object and waits until it is there.
func (p *poisoned) heals(key string) {
	p.t.Helper()
	p.s.COS.Put(key, body(key), cosd.Attributes{})
	visit(p.t, p.s, key)
	p.s.Cloud.FlushLogs()
	ferry.Until(p.t, 20*time.Second, "an honest miss is healed", func() bool { _, ok := p.s.Cloud.Object(localcloud.Bucket, key); return ok })
	p.sent[localcloud.LogsQueue]["parsed"]++
	p.sent[localcloud.SyncQueue]["copied"]++
}

// isWell checks that the process is alive, and that its log holds neither a panic
// nor a body.
func (p *poisoned) isWell(process *ferry.Process) {
	p.t.Helper()
	if status, page, err := process.Get(p.t.Context(), "/healthz"); err != nil || status != 200 {
		p.t.Errorf("healthz: %d %q, %v", status, page, err)
	}
	log := process.Log()
	if strings.Contains(log, "panic") {
		p.t.Errorf("it panicked:\n%s", log)
	}
	for _, mark := range regexp.MustCompile(`mark\d{5}`).FindAllString(log, -1) {
		if p.marks[mark] {
			p.t.Errorf("the log holds the body with %q", mark)
		}
	}
}

// letters checks that the dead letters of a queue are the messages that must die,
// each with its body and reason.
func (p *poisoned) letters(queue string) {
	p.t.Helper()
	left := map[string]string{}
	for body, end := range p.dead[queue] {
		left[body] = end
	}
	for _, m := range p.s.Cloud.Messages(queue + localcloud.DeadSuffix) {
		if got, want := m.Attributes["end"]+" "+m.Attributes["detail"], p.dead[queue][m.Body]; got != want {
			p.t.Errorf("a dead letter of %s says %q, want %q: %.300q", queue, got, want, m.Body)
		}
		delete(left, m.Body)
	}
	for body, end := range left {
		p.t.Errorf("no dead letter of %s says %q of %.300q", queue, end, body)
	}
}

// cases sends all cases, and returns the keys that are in COS and that the logs
// among them ask for.
func (p *poisoned) cases() (keys []string) {
	miss := func(key string) {
		keys = append(keys, key)
		p.s.COS.Put(key, body(key), cosd.Attributes{})
		p.sent[localcloud.SyncQueue]["copied"]++
	}
	all := notificationCases(p.t)
	for _, n := range all {
		for _, o := range n.Want.Objects {
			if o[1] == missingLog || p.logs[o[1]] {
				continue
			}
			miss(fmt.Sprintf("named/%d", len(keys)))
			p.log(o[1], []byte(missOf(keys[len(keys)-1])))
		}
	}
	// What a log asks for is not asked for again when it is named again, unless that
	// is while it is read.
	settled(p.t, p.s, localcloud.LogsQueue, time.Minute)
	for _, n := range all {
		end := p.endOfNotification(n.Body)
		if n.Want.DeadLetter != "" && end != n.Want.DeadLetter+" undecoded" || n.Want.Acknowledged && end != "parsed" {
			p.t.Errorf("%.100q ends %q", n.Body, end)
		}
		p.send(localcloud.LogsQueue, n.Body, end)
	}

	var log strings.Builder
	for _, l := range logCases(p.t) {
		log.WriteString(l.Line + "\n")
		switch {
		case l.Want.Bucket != localcloud.Bucket || slices.Contains(keys, l.Want.Key):
		case l.Needs == "max_age", l.Verdict == "miss" && l.Want.Key == "/": // COS cannot hold it
			p.sent[localcloud.SyncQueue]["absent"]++
		case l.Verdict == "miss":
			miss(l.Want.Key)
		}
	}
	p.log("access/cases", []byte(log.String()))
	return keys
}

// fuzzed sends n messages to each queue.
func (p *poisoned) fuzzed(n int) {
	for _, of := range []struct {
		queue string
		seeds []string
		end   func(string) string
	}{
		{localcloud.LogsQueue, marked(notificationCases(p.t)), p.endOfNotification},
		{localcloud.SyncQueue, []string{
			`{"v":1,"bucket":"overseas-media","key":"nowhere/a.jpg","seen":"2026-09-04T08:03:42Z","cause":"NoSuchKey","log":"s3://log-bucket/access/1","x":"MARK"}`,
			`{"x":["MARK"],"v":1,"bucket":"overseas-media","key":"nowhere/m%C3%BCnchen%20a%FF.jpg","seen":"2026-09-04T08:03:42.5+02:00"}`,
			`{"v":2,"MARK":{}}`, `MARK`, `["MARK"]`,
		}, endOfRequest},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			mark := fmt.Sprintf("mark%05d", len(p.marks))
			body := strings.ReplaceAll(fuzz(r, of.seeds), markHere, mark)
			end := of.end(body)
			p.marks[mark] = end == "poison undecoded"
			if p.dead[of.queue][body] == "" { // each once, so that letters can be told apart
				p.send(of.queue, body, end)
			}
		}
	}
}

// marked are the bodies of notifications with a mark in each.
func marked(all []notificationCase) (seeds []string) {
	for _, n := range all {
		if rest, ok := strings.CutPrefix(n.Body, "{"); ok && rest != "}" {
			seeds = append(seeds, `{"x":"MARK",`+rest)
		} else {
			seeds = append(seeds, n.Body+" MARK")
		}
	}
	return seeds
}
