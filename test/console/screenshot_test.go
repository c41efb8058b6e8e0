//go:build screenshots

package console

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// shoot takes a picture of the whole page for the documentation.
func (b *tab) shoot(name string) {
	b.t.Helper()
	ferry.Until(b.t, 20*time.Second, "the plot is drawn for this page", func() bool {
		return b.eval(`(({currentSrc, complete, naturalWidth}) => complete && naturalWidth > 0 &&
			currentSrc.includes(matchMedia("(prefers-color-scheme: dark)").matches ? "look=dark" : "look=light"))(document.querySelector(".plot"))`) == "true"
	})
	full, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("take a picture: %v", err)
	}
	small, err := fewerColours(full)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", name), small, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// fewerColours draws a picture with its 256 commonest colours: what is lost are
// shades at the edges of letters, and two thirds of its size.
func fewerColours(data []byte) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	area, pixels := picture.Bounds(), map[color.Color]int{}
	for y := range area.Dy() {
		for x := range area.Dx() {
			pixels[picture.At(x, y)]++
		}
	}
	common := slices.SortedFunc(maps.Keys(pixels), func(a, b color.Color) int { return pixels[b] - pixels[a] })
	palette := color.Palette(common[:min(256, len(common))])
	nearest := map[color.Color]uint8{}
	for c := range pixels {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(area, palette)
	for y := range area.Dy() {
		for x := range area.Dx() {
			out.SetColorIndex(x, y, nearest[picture.At(x, y)])
		}
	}
	var small bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, out)
	return small.Bytes(), err
}

// deliverDay has S3 deliver the log of a day in which the share of bucket climbs.
func deliverDay(t testing.TB, s *localcloud.Site, bucket string, low, high int) {
	t.Helper()
	hour := time.Now().Truncate(time.Hour).Add(-23 * time.Hour)
	for i := range 24 {
		hits := low + (high-low)*i/23 + (i*7)%5
		deliver(t, s, bucket+hour.Format("-15"), visits(bucket, hour, hits, 100-hits))
		hour = hour.Add(time.Hour)
	}
}

// TestScreenshots takes the pictures of the documentation. It checks nothing that
// other tests do not, so it runs only when it is asked for.
func TestScreenshots(t *testing.T) {
	s := newSite(t)
	docs, err := s.AddCOS(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err != nil {
		t.Fatal(err)
	}
	config := yaml(s, docs.URL())
	p := ferry.Start(t, s, ferry.Options{YAML: config, Env: traced(t)})
	c := startConsole(t, s, config, "--pod", p.Admin, "--trace-url", "https://apm.example.com/trace/{trace_id}")
	deliverDay(t, s, localcloud.Bucket, 12, 95)
	deliverDay(t, s, docsBucket, 55, 90)
	b := open(t, 1240)
	b.load(c.URL)
	b.shows("#share", docsBucket+" 9", localcloud.Bucket+" 9")
	b.shows("#word", "Healthy")
	b.shoot("console-healthy.png")

	damaged := "model/damaged part.glb"
	s.COS.Put(damaged, []byte("a model"), cosd.Attributes{})
	s.COS.Lie(cosd.When{Key: damaged}, cosd.Flip(3))
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, damaged)
	b.shows("#failures", "failed", "corrupt")
	docs.Lie(cosd.When{}, cosd.Page(503))
	bury(t, s, docsQueue, docsBucket, "failed", "unavailable", "manual/维修手册 第3版.pdf", "b", "c")
	bury(t, s, localcloud.SyncQueue, localcloud.Bucket, "failed", "corrupt", "img/<script>alert(1)</script>.jpg", "model/part\x1b[31m.glb")
	deliver(t, s, "later", visits(docsBucket, time.Now(), 2, 8))
	b.shows("#guards", "closed")
	b.click("#look")
	b.shows("#letters", "unavailable", "corrupt")
	b.shows("#word", "Needs you")
	b.shoot("console-sick.png")
	b.dark(true)
	b.shoot("console-dark.png")
}
