package console

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

var update = flag.Bool("update", false, "take the screenshots of docs/ anew")

// shoot takes a picture of the whole page for the documentation.
func (b *tab) shoot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("take a picture: %v", err)
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", name), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
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

// TestScreenshots takes the pictures of the documentation when it is asked to.
func TestScreenshots(t *testing.T) {
	if !*update {
		t.Skip("run with -update to take the screenshots anew")
	}
	s := newSite(t)
	docs, err := s.AddCOS(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err != nil {
		t.Fatal(err)
	}
	config := yaml(s, docs.URL())
	p := ferry.Start(t, s, ferry.Options{YAML: config})
	c := startConsole(t, s, config, "--pod", p.Admin)
	deliverDay(t, s, localcloud.Bucket, 12, 95)
	deliverDay(t, s, docsBucket, 55, 90)
	b := open(t, 1240)
	b.load(c.URL)
	b.shows("#share", docsBucket+" 9", localcloud.Bucket+" 9")
	b.shows("#word", "Healthy")
	b.shoot("console-healthy.png")

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
