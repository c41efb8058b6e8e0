package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

const (
	markup  = `img/<script>window.ran=1</script><img src=x onerror="window.ran=2">.jpg`
	chinese = "手册/维修 第3版.pdf"
	escapes = "img/\x1b[31mred\u202egpj.jpg"
)

// sick is a system with a bit of everything that can be wrong.
type sick struct {
	site    *localcloud.Site
	process *ferry.Process
	console *console
	docs    string // host of the source that is down
}

// newSick waits until what is wrong has come about.
func newSick(t *testing.T) *sick {
	s := newSite(t)
	docs, err := s.AddCOS(cosd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	docs.Lie(cosd.When{}, cosd.Page(503))
	s.COS.Put("model/damaged.glb", []byte("a model"), cosd.Attributes{})
	s.COS.Lie(cosd.When{Key: "model/damaged.glb"}, cosd.Flip(3))
	config := yaml(s, docs.URL())
	k := &sick{site: s, docs: host(docs.URL())}
	k.process = ferry.Start(t, s, ferry.Options{YAML: config, Env: traced(t)})
	k.console = startConsole(t, s, config, "--pod", k.process.Admin, "--trace-url", "https://apm.example.com/trace/{trace_id}")

	hour := time.Now().Truncate(time.Hour).Add(-2 * time.Hour)
	deliver(t, s, "1", visits(localcloud.Bucket, hour, 30, 10)+visits(docsBucket, hour, 5, 5))
	deliver(t, s, "2", visits(localcloud.Bucket, hour.Add(time.Hour), 9, 1))
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "model/damaged.glb")
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "unavailable", markup)
	bury(t, s, docsQueue, docsBucket, "failed", "throttled", chinese, escapes)
	if err := s.Cloud.Send(localcloud.LogsQueue+localcloud.DeadSuffix, "<b>not ours</b>", map[string]string{"end": "poison", "detail": "undecoded"}); err != nil {
		t.Fatal(err)
	}
	// The damaged object dies last.
	ferry.Until(t, time.Minute, "the damaged object is a dead letter", func() bool { return s.Cloud.Depth(deadSync).Total() == 2 })
	return k
}

// TestSickSystem: each panel shows what is so, what strangers wrote is text, and
// the page is readable in light and dark.
func TestSickSystem(t *testing.T) {
	t.Parallel()
	ferry.Tool(t, "chromium")
	k := newSick(t)
	b := open(t, 1240)
	b.load(k.console.URL)
	b.click("#look")
	b.shows("#letters", "5 letters", "undecoded")

	t.Run("the verdict names what needs a person first", func(t *testing.T) {
		b := b.in(t)
		b.shows("#verdict", "Needs you", "2 dead letters in objectferry-sync-dead", "2 dead letters in objectferry-sync-docs-dead", "1 dead letter in objectferry-logs-dead",
			"Gate closed: source "+k.docs+" (unavailable: http 503); it opens by itself")
		if text := b.text("#verdict"); strings.Index(text, "dead letter") > strings.Index(text, "Gate closed") {
			t.Errorf("what opens by itself stands first: %s", text)
		}
		if title := b.eval("document.title"); title != "Needs you · objectferry" {
			t.Errorf("the title is %q", title)
		}
	})
	t.Run("queues", func(t *testing.T) {
		b := b.in(t)
		for _, q := range []string{localcloud.LogsQueue, localcloud.SyncQueue, docsQueue} {
			ferry.Until(t, 40*time.Second, "the page shows the depths of "+q, func() bool {
				d, dead := k.site.Cloud.Depth(q), k.site.Cloud.Depth(q+localcloud.DeadSuffix)
				row := b.cells("#queues", q)
				return len(row) == 6 && slices.Equal([]string{row[1], row[2], row[3], row[5]},
					[]string{fmt.Sprint(d.Waiting), fmt.Sprint(d.InFlight), fmt.Sprint(d.Delayed), fmt.Sprint(dead.Total())})
			})
		}
		if d := k.site.Cloud.Depth(docsQueue); d.Total() != 5 {
			t.Errorf("%d requests wait for the source that is down, want 5", d.Total())
		}
		if age := b.cells("#queues", localcloud.SyncQueue)[4]; !strings.HasPrefix(age, "up to ") {
			t.Errorf("the oldest message is %q", age)
		}
	})
	t.Run("share from S3", func(t *testing.T) {
		b := b.in(t)
		b.row("#share", localcloud.Bucket, "90.0 %*", "78.0 %", "39", "11", "*")
		b.row("#share", docsBucket, "50.0 %*", "50.0 %", "5", "5", "*")
		ferry.Until(t, 20*time.Second, "the plot is drawn", func() bool { return b.eval("document.querySelector('.plot').naturalWidth > 0") == "true" })
		svg := page(t, k.console.URL+"/plot/share.svg?look=light")
		if !strings.Contains(svg, docsBucket) || !strings.Contains(svg, localcloud.Bucket) {
			t.Errorf("the plot does not name both buckets: %.400s", svg)
		}
	})
	t.Run("guards", func(t *testing.T) {
		b := b.in(t)
		var status struct {
			Guards []struct {
				Name, State, Reason string
				Since               time.Time
			}
		}
		_, text, err := k.process.Get(t.Context(), "/statusz")
		if err != nil || json.Unmarshal([]byte(text), &status) != nil {
			t.Fatalf("status: %v\n%s", err, text)
		}
		for _, g := range status.Guards {
			row := strings.Join(b.cells("#guards", g.Name), " ")
			closed := g.Name == "source "+k.docs
			if !strings.Contains(row, g.Since.UTC().Format("15:04:05Z")) || closed == strings.Contains(row, "open") || closed != strings.Contains(row, "unavailable: http 503") {
				t.Errorf("guard %+v is shown as %s", g, row)
			}
		}
	})
	t.Run("ends", func(t *testing.T) {
		b := b.in(t)
		ferry.Until(t, 40*time.Second, "all misses have ended, and the page shows each end as the process counts it", func() bool {
			_, metrics, err := k.process.Get(t.Context(), "/metrics")
			ends := regexp.MustCompile(`objectferry_ends_total\{detail="(.*)",end="(.*)",queue="(.*)"\} (\d+)`).FindAllStringSubmatch(metrics, -1)
			text := b.text("#ends")
			for _, e := range ends {
				if !strings.Contains(text, fmt.Sprintf("%s %s %s %s", e[3], e[2], cmp.Or(e[1], "–"), e[4])) {
					return false
				}
			}
			return err == nil && len(ends) >= 3 && strings.Contains(text, localcloud.SyncQueue+" absent – 11") && strings.Contains(text, localcloud.SyncQueue+" failed corrupt 1")
		})
	})
	t.Run("latest failures with their traces", func(t *testing.T) {
		b := b.in(t)
		text := b.text("#failures")
		for _, want := range []string{`failed corrupt 3 [0-9a-f]{32} `, `tried again corrupt 2 [0-9a-f]{32} `, `tried again corrupt 1 [0-9a-f]{32} `} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("no failure is %s in %s", want, text)
			}
		}
		if href := b.eval(`document.querySelector("#failures a").href`); !strings.HasPrefix(href, "https://apm.example.com/trace/") || len(href) != len("https://apm.example.com/trace/")+32 {
			t.Errorf("the trace is a link to %s", href)
		}
	})
	t.Run("dead letters by reason with an example", func(t *testing.T) {
		b := b.in(t)
		b.shows("#letters", "failed throttled objectferry-sync-docs 2", "poison undecoded objectferry-logs 1", "failed unavailable objectferry-sync 1", "failed corrupt objectferry-sync 1", chinese)
		for q, n := range map[string]int{deadSync: 2, docsQueue + localcloud.DeadSuffix: 2, localcloud.LogsQueue + localcloud.DeadSuffix: 1} {
			if d := k.site.Cloud.Depth(q); d.Waiting != n {
				t.Errorf("%s has %+v after the look, want all %d handed back", q, d, n)
			}
		}
	})
	t.Run("pods", func(t *testing.T) { b.in(t).shows("#pods", k.process.Admin, "ready", "role all") })
	t.Run("markup in keys and bodies is text", func(t *testing.T) {
		b := b.in(t)
		b.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`)
		b.shows("#letters", markup, "<b>not ours</b>")
		if n := b.eval(`document.querySelectorAll("main script, main img:not(.plot), main b").length + " " + window.ran`); n != "0 undefined" {
			t.Errorf("elements from keys, and what ran: %s", n)
		}
	})
	t.Run("what a reader would not see is made visible", func(t *testing.T) {
		source := page(t, k.console.URL)
		if strings.ContainsAny(source, "\x1b\u202e") {
			t.Error("an escape or a mark of direction is in the page")
		}
	})
	t.Run("text has a contrast of 4.5 in light and dark", func(t *testing.T) { contrast(b.in(t)) })
	t.Run("nothing is asked of another host", func(t *testing.T) {
		for _, u := range b.asked() {
			if host(u) != host(k.console.URL) {
				t.Errorf("the page asked for %s", u)
			}
		}
		if len(b.asked()) < 5 {
			t.Errorf("only %q was asked", b.asked())
		}
	})
}
