package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// keys is n keys.
func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("img/%03d.jpg", i)
	}
	return list
}

// quiet is a site with a console, and nobody who works on the queues.
func quiet(t *testing.T) (*localcloud.Site, *console) {
	t.Helper()
	ferry.Tool(t, "chromium")
	s := newSite(t)
	return s, startConsole(t, s, yaml(s, s.COS.URL()))
}

// TestRedriveByKeyboard: from the overview to objects that are healed, without a
// mouse; nothing moves before it is confirmed, others stay, and it is logged who
// did it.
func TestRedriveByKeyboard(t *testing.T) {
	t.Parallel()
	k := newHealthy(t)
	for _, key := range keys(3) {
		k.site.COS.Put(key, []byte(key), cosd.Attributes{})
	}
	bury(t, k.site, localcloud.SyncQueue, localcloud.Bucket, "failed", "unavailable", keys(3)...)
	bury(t, k.site, localcloud.SyncQueue, localcloud.Bucket, "failed", "corrupt", "img/corrupt.jpg")
	b := open(t, 1240)
	b.load(k.console.URL)
	b.tabTo("#look")
	b.press(kb.Enter)
	b.shows("#letters", "4 letters", "failed unavailable objectferry-sync 3")
	b.tabTo(`#letters button[aria-label="Redrive failed unavailable …"]`)
	if b.eval("getComputedStyle(document.activeElement).outlineStyle") == "none" {
		t.Error("one does not see where the focus is")
	}
	b.press(kb.Enter)
	b.shows("#plan", "Redrive 3 letters", "failed, unavailable, any key", deadSync, "Go to objectferry-sync", "night-shift")
	if n := k.site.Cloud.Depth(deadSync).Total(); n != 4 {
		t.Errorf("%d letters are left before it was confirmed, want 4", n)
	}
	b.tabTo("#confirm")
	b.press(" ")
	b.shows("#plan", "3 of 3 letters redriven")
	ferry.Until(t, 40*time.Second, "the objects are in S3", func() bool {
		for _, key := range keys(3) {
			if _, ok := k.site.Cloud.Object(localcloud.Bucket, key); !ok {
				return false
			}
		}
		return true
	})
	if left := k.site.Cloud.Messages(deadSync); len(left) != 1 || left[0].Attributes["detail"] != "corrupt" {
		t.Errorf("dead letters left: %+v", left)
	}
	var line struct {
		Who, Action, Detail, Message string
		Confirmed, Moved             int
	}
	for text := range strings.Lines(k.console.Log()) {
		if strings.Contains(text, "letters moved") {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if line.Who != "night-shift" || line.Action != "redrive" || line.Detail != "unavailable" || line.Confirmed != 3 || line.Moved != 3 {
		t.Errorf("it is logged as %+v in\n%s", line, k.console.Log())
	}
}

// TestForeignOriginIsRefused: a page of another port of this machine, opened in
// the same browser, sends the console's own forms and gets nowhere, even with the
// token.
func TestForeignOriginIsRefused(t *testing.T) {
	t.Parallel()
	s, c := quiet(t)
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "unavailable", "img/a.jpg")
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page(t, c.URL))
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><form method="post" action="%s/plans"><input name="token" value="%s"><input name="queue" value="1"><input name="verb" value="redrive"><button id="go">Go</button></form>`, c.URL, token[1])
	}))
	t.Cleanup(foreign.Close)
	b := open(t, 1240)
	b.load(foreign.URL)
	b.eval(`(fetch("` + c.URL + `/").then((r) => r.text()).then((text) => { window.got = text }, () => { window.got = "kept out" }), 0)`)
	ferry.Until(t, 20*time.Second, "the foreign page cannot read the console", func() bool { return b.eval("window.got") == "kept out" })
	b.click("#go")
	b.shows("body", "refused: the request comes from another origin")
	if d := s.Cloud.Depth(deadSync); d.Waiting != 1 || s.Cloud.MaxReceives(deadSync) != 0 {
		t.Errorf("the letters were touched: %+v", d)
	}
	if !strings.Contains(c.Log(), `"message":"request refused"`) {
		t.Errorf("it is not logged:\n%s", c.Log())
	}
}

// TestDropAsksForAFileOrAWord: dropped letters are in a file, or a word was typed.
func TestDropAsksForAFileOrAWord(t *testing.T) {
	t.Parallel()
	s, c := quiet(t)
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "corrupt", "img/saved.jpg")
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "unknown", "img/discarded.jpg")
	b := open(t, 1240)
	drop := func(detail string) {
		b.load(c.URL)
		b.click("#choose summary")
		b.eval(`(document.querySelector("#choose [name=queue]").value = "1", document.querySelector("#choose [name=detail]").value = "` + detail + `")`)
		b.click(`#choose button[value=drop]`)
		b.shows("#plan", "Drop 1 letter", detail)
	}
	drop("corrupt")
	b.click("#confirm")
	b.shows("#plan", "1 of 1 letter dropped", "Saved to")
	files, _ := filepath.Glob(filepath.Join(c.Dir, "objectferry-dropped-*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("files: %q", files)
	}
	if saved, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(saved), "img/saved.jpg") {
		t.Errorf("saved are %v, %s", err, saved)
	}

	drop("unknown")
	b.click(`[name=keep][value=discard]`)
	b.click("#confirm")
	b.shows("#plan", `Nothing was done: to keep no copy, type "discard"`)
	if n := s.Cloud.Depth(deadSync).Total(); n != 1 {
		t.Fatalf("%d letters are left, want the one that was not dropped", n)
	}
	b.click(`[name=keep][value=discard]`)
	b.click(`[name=word]`)
	b.press("discard")
	b.click("#confirm")
	b.shows("#plan", "1 of 1 letter dropped")
	if n := s.Cloud.Depth(deadSync).Total(); n != 0 {
		t.Errorf("%d letters are left", n)
	}
}

// TestMoreThanHundredNeedATick, which the browser asks for, and the server too.
func TestMoreThanHundredNeedATick(t *testing.T) {
	t.Parallel()
	s, c := quiet(t)
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "unavailable", keys(101)...)
	b := open(t, 1240)
	b.load(c.URL)
	b.click("#choose summary")
	b.eval(`document.querySelector("#choose [name=queue]").value = "1"`)
	b.click(`#choose button[value=redrive]`)
	b.shows("#plan", "Redrive 101 letters", "more than 100")
	b.click("#confirm") // the browser does not send it
	form := url.Values{"token": {b.eval(`document.querySelector("[name=token]").value`)}, "rate": {"1000"}}
	resp, err := http.PostForm(b.eval("location.href"), form)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without the tick the server says %d", resp.StatusCode)
	}
	if n := s.Cloud.Depth(deadSync).Total(); n != 101 {
		t.Errorf("%d letters are left, want all", n)
	}
	b.click("#many")
	b.eval(`document.querySelector("[name=rate]").value = "1000"`)
	b.click("#confirm")
	b.shows("#plan", "101 of 101 letters redriven")
	if in, left := s.Cloud.Depth(localcloud.SyncQueue).Total(), s.Cloud.Depth(deadSync).Total(); in != 101 || left != 0 {
		t.Errorf("%d are in the sync queue and %d dead, want 101 and 0", in, left)
	}
}

// TestListeningWideIsSaidLoudly: whoever reaches the console may move letters.
func TestListeningWideIsSaidLoudly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const loud = "THIS CONSOLE HAS NO LOGIN"
	if c := startConsole(t, s, yaml(s, s.COS.URL())); strings.Contains(c.Log(), loud) {
		t.Errorf("on loopback it says:\n%s", c.Log())
	}
	if c := startConsole(t, s, yaml(s, s.COS.URL()), "--listen", "0.0.0.0:0"); !strings.Contains(c.Log(), `"level":"warn"`) || !strings.Contains(c.Log(), loud) {
		t.Errorf("for everybody it says only:\n%s", c.Log())
	}
}
