package console

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/objectferry/objectferry/test/ferry"
)

// lowContrast lists the texts of a page whose contrast with what is behind them is
// less than 4.5, as WCAG 2 reckons it.
const lowContrast = `(() => {
  const parse = (c) => (c.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = []; let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walker.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility() || e.closest(".unseen, .skip, noscript")) continue;
    seen++;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(ratio.toFixed(2) + " " + n.data.trim().slice(0, 40));
  }
  return seen + " texts" + (bad.length ? ", too faint: " + bad.join("; ") : "");
})()`

// contrast checks all text of the page, and that dark mode is dark.
func contrast(b *tab) {
	b.t.Helper()
	background := map[bool]string{}
	for _, on := range []bool{false, true} {
		b.dark(on)
		if text := b.eval(lowContrast); len(text) > 12 || text == "0 texts" {
			b.t.Errorf("dark %v: %s", on, text)
		}
		background[on] = b.eval("getComputedStyle(document.body).backgroundColor")
	}
	if background[false] == background[true] {
		b.t.Errorf("dark and light have the same background, %s", background[true])
	}
	ferry.Until(b.t, 20*time.Second, "the plot is drawn for a dark page", func() bool {
		return b.eval("document.querySelector('.plot').currentSrc.includes('look=dark')") == "true"
	})
	b.dark(false)
}

// TestReadableOnAPhone: no panel is wider than the screen, and the plot is drawn
// for it.
func TestReadableOnAPhone(t *testing.T) {
	t.Parallel()
	k := newHealthy(t)
	b := open(t, 390)
	b.load(k.console.URL)
	b.shows("#share", "90.0 %")
	if got := b.eval("document.documentElement.scrollWidth <= 390"); got != "true" {
		t.Errorf("the page is %s wide", b.eval("document.documentElement.scrollWidth"))
	}
	if b.eval("document.querySelector('.plot').currentSrc.includes('narrow')") != "true" {
		t.Error("the plot is the wide one")
	}
}

// TestWithoutScript: the page is whole without its script, and comes again by itself.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	k := newHealthy(t)
	b := open(t, 1240)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.load(k.console.URL)
	b.shows("#word", "Healthy")
	b.shows("#queues", "objectferry-sync-docs")
	if b.eval("document.querySelectorAll('noscript meta[http-equiv=refresh]').length") != "1" {
		t.Error("nothing loads the page again")
	}
	b.click("#look") // forms work
	ferry.Until(t, 40*time.Second, "a page that is loaded later shows what was found", func() bool { return strings.Contains(page(t, k.console.URL), "Looked at") })
}
