package console

import (
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// healthy is a system in which all is well.
type healthy struct {
	site    *localcloud.Site
	docs    *cosd.Server
	process *ferry.Process
	console *console
}

func newHealthy(t *testing.T) *healthy {
	t.Helper()
	ferry.Tool(t, "chromium")
	s := newSite(t)
	docs, err := s.AddCOS(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err != nil {
		t.Fatal(err)
	}
	config := yaml(s, docs.URL())
	h := &healthy{site: s, docs: docs, process: ferry.Start(t, s, ferry.Options{YAML: config})}
	h.console = startConsole(t, s, config, "--pod", h.process.Admin)
	deliver(t, s, "1", visits(localcloud.Bucket, time.Now().Truncate(time.Hour), 9, 1))
	return h
}

// TestLiveWithoutReload: what changes in the system changes on the page that
// stands open, and what the reader has opened and typed stays.
func TestLiveWithoutReload(t *testing.T) {
	t.Parallel()
	k := newHealthy(t)
	b := open(t, 1240)
	b.load(k.console.URL)
	b.eval(`window.here = "still here"`)
	b.shows("#word", "Healthy")
	b.shows("#share", "90.0 %")
	b.click("#choose summary")
	b.eval(`(document.querySelector("#choose [name=match]").value = "img/**", document.querySelector("#choose [name=match]").focus())`)

	k.docs.Lie(cosd.When{}, cosd.Page(503))
	deliver(t, k.site, "2", visits(docsBucket, time.Now().Truncate(time.Hour), 0, 3))
	b.shows("#verdict", "Watch", "Gate closed")
	bury(t, k.site, localcloud.SyncQueue, localcloud.Bucket, "failed", "corrupt", "img/a.jpg")
	b.shows("#verdict", "Needs you", "1 dead letter")
	b.shows("#letters", "SQS counts 1 letter")
	ferry.Until(t, 20*time.Second, "the plot that came later is drawn", func() bool { return b.eval("document.querySelector('.plot').naturalWidth > 0") == "true" })
	for what, expression := range map[string]string{
		"the page was not loaded again":       `window.here`,
		"what was opened is open":             `document.querySelector("#choose").open ? "still here" : "closed"`,
		"what was typed is there":             `document.querySelector("#choose [name=match]").value == "img/**" ? "still here" : "gone"`,
		"the focus is where it was":           `document.activeElement.name == "match" ? "still here" : document.activeElement.outerHTML`,
		"the word of the verdict is read out": `document.querySelector("[aria-live]").textContent == "Needs you" ? "still here" : "not read"`,
	} {
		if got := b.eval(expression); got != "still here" {
			t.Errorf("not so: %s: %s", what, got)
		}
	}
}

// TestNeverASilentZero: what cannot be asked is said to be unknown, panel by panel.
func TestNeverASilentZero(t *testing.T) {
	t.Parallel()
	k := newHealthy(t)
	b := open(t, 1240)
	b.load(k.console.URL)
	b.shows("#ends", "parsed")
	k.process.Kill()
	b.shows("#verdict", "Needs you", "No pod answers")
	for _, panel := range []string{"#ends", "#guards", "#share", "#failures", "#pods", "#queues"} {
		b.shows(panel, "Not all is known")
	}
	b.row("#queues", localcloud.SyncQueue, "0", "0", "0", "unknown", "0") // SQS still tells
	k.site.Close()
	b.row("#queues", localcloud.SyncQueue, "unknown", "unknown", "unknown")
	b.shows("#verdict", "Unknown whether objectferry-sync has dead letters")
}
