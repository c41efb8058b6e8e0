package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/objectferry/objectferry/test/ferry"
)

// browser is the one Chromium of all tests; each test has a context of its own in it.
var browser struct {
	sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

func closeBrowser() {
	browser.Lock()
	defer browser.Unlock()
	if browser.cancel != nil {
		browser.cancel()
	}
}

// tab is one page in the browser, and what it has asked the network for.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu   sync.Mutex
	urls []string
}

// open starts a tab of the given width; the test ends with it after two minutes.
func open(t testing.TB, width int64) *tab {
	t.Helper()
	chromium := ferry.Tool(t, "chromium")
	browser.Lock()
	if browser.ctx == nil {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute))
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		if err := chromedp.Do(ctx); err != nil {
			cancel()
			stop()
			browser.Unlock()
			t.Fatalf("start Chromium: %v", err)
		}
		browser.ctx, browser.cancel = ctx, func() { cancel(); stop() }
	}
	browser.Unlock()
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute) // once the tab is there: before, it would be the browser's
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	b.run(chromedp.EmulateViewport(width, 900))
	err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.urls = append(b.urls, e.Request.URL)
		}
	})
	if err != nil {
		t.Fatalf("listen to the browser: %v", err)
	}
	return b
}

// in is the same tab for a part of the test.
func (b *tab) in(t testing.TB) *tab { return &tab{t: t, ctx: b.ctx} }

// run does actions and fails the test when one cannot be done.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("drive the browser: %v", err)
	}
}

// load opens a page.
func (b *tab) load(url string) { b.t.Helper(); b.run(chromedp.Navigate(url)) }

// eval is the text that an expression gives in the page.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return text
}

// click clicks what a CSS selector finds, once it is there.
func (b *tab) click(selector string) { b.t.Helper(); b.run(chromedp.Click(chromedp.CSS(selector))) }

// text is what a reader sees of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(b.eval("(document.querySelector(`"+selector+"`) || {innerText: 'nothing is there'}).innerText")), " ")
}

// shows waits until an element's text holds all of words.
func (b *tab) shows(selector string, words ...string) {
	b.t.Helper()
	var text string
	deadline := time.Now().Add(40 * time.Second)
	for {
		text = b.text(selector)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s does not show all of %q, but\n%s", selector, words, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cells is the row of a panel's table that begins with name, its own cell included.
func (b *tab) cells(panel, name string) []string {
	b.t.Helper()
	var cells []string
	text := b.eval(fmt.Sprintf(`JSON.stringify([...document.querySelectorAll(%q + " tbody tr")].map((row) => [...row.cells].map((c) => c.innerText.trim())).find((row) => row[0].split("\n")[0] == %q) || [])`, panel, name))
	if err := json.Unmarshal([]byte(text), &cells); err != nil {
		b.t.Fatal(err)
	}
	return cells
}

// row waits until a panel's row is what is wanted; a "*" at the end stands
// for more.
func (b *tab) row(panel string, want ...string) {
	b.t.Helper()
	var got []string
	deadline := time.Now().Add(40 * time.Second)
	for {
		got = b.cells(panel, want[0])
		if slices.EqualFunc(got, want, func(g, w string) bool {
			return g == w || strings.HasSuffix(w, "*") && strings.HasPrefix(g, w[:len(w)-1])
		}) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the row of %s is %q, want %q", panel, got, want)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// press types keys into whatever has the focus.
func (b *tab) press(keys string) { b.t.Helper(); b.run(chromedp.KeyEvent(keys)) }

// tabTo moves the focus with the Tab key until it is on what selector finds.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 200 {
		if b.eval(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == "true" {
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("the Tab key does not reach %s", selector)
}

// dark has the page drawn for readers who want it dark, or light.
func (b *tab) dark(on bool) {
	b.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
	if err != nil {
		b.t.Fatalf("emulate a %s page: %v", value, err)
	}
}

// asked is every URL that the page has asked for.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.urls)
}
