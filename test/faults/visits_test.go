package faults

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// visits are what visitors have missed on a site so far, from the miss itself on:
// S3 logs it, the log is announced, and the service does the rest.
type visits struct {
	t    *testing.T
	s    *localcloud.Site
	keys []string // that were missed
	junk []string // bodies sent to both queues that nobody can read
}

// miss puts a dozen new objects into COS, lets a visitor miss each in S3, and has
// S3 deliver the access log in three objects. large adds an object of three parts.
func (v *visits) miss(large bool) {
	v.t.Helper()
	for i := range 12 {
		n := len(v.keys)
		length := n * 97 % 5000
		if large && i == 0 {
			length = 11 << 20
		}
		content := make([]byte, length)
		_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(content)
		key := fmt.Sprintf("img//%04d ü+%%2F.bin", n)
		v.s.COS.Put(key, content, cosd.Attributes{
			ContentType: "image/x-test", ContentEncoding: "gzip", ContentLanguage: "de", CacheControl: "max-age=60",
			ContentDisposition: `inline; filename="a.bin"`, Expires: "Thu, 01 Dec 2033 16:00:00 GMT",
			Meta: map[string]string{"title": fmt.Sprintf("number %d", n)}})
		v.keys = append(v.keys, key)

		target := url.URL{Path: "/" + localcloud.Bucket + "/" + key}
		resp, err := http.Get(v.s.S3URL + target.EscapedPath())
		if err != nil {
			v.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			v.t.Fatalf("the visitor's request for %q was answered %d, want 404", key, resp.StatusCode)
		}
		if i%4 == 3 {
			v.s.Cloud.FlushLogs()
		}
	}
}

// spoil sends a message to each queue that nobody can read.
func (v *visits) spoil() {
	v.t.Helper()
	text := fmt.Sprintf("neither request nor notification %d", len(v.junk))
	for _, q := range []string{localcloud.LogsQueue, localcloud.SyncQueue} {
		if err := v.s.Cloud.Send(q, text, nil); err != nil {
			v.t.Fatal(err)
		}
	}
	v.junk = append(v.junk, text)
}

// faithful checks that every object that is visible at the destination is, byte
// for byte and header for header, what COS has.
func (v *visits) faithful() {
	v.t.Helper()
	for _, key := range v.s.Cloud.Keys(localcloud.Bucket) {
		want, a, ok := v.s.COS.Get(key)
		got, there := v.s.Cloud.Object(localcloud.Bucket, key)
		if !ok || !there || !bytes.Equal(got.Body, want) {
			v.t.Errorf("object %q has %d bytes, which are not the %d of its source", key, len(got.Body), len(want))
		}
		for name, value := range map[string]string{"Content-Type": a.ContentType, "Content-Encoding": a.ContentEncoding,
			"Content-Language": a.ContentLanguage, "Content-Disposition": a.ContentDisposition, "Cache-Control": a.CacheControl,
			"Expires": a.Expires, "X-Amz-Meta-Title": a.Meta["title"]} {
			if h := got.Header.Get(name); h != value {
				v.t.Errorf("object %q has %s %q, its source %q", key, name, h, value)
			}
		}
	}
}

// finish lets an undisturbed process do what is left, and checks that every miss
// was carried, that all logs were consumed, and that the dead letters are those
// of the junk.
func (v *visits) finish() {
	v.t.Helper()
	p := ferry.Start(v.t, v.s, ferry.Options{YAML: killable(v.s)})
	settled(v.t, v.s, localcloud.LogsQueue, 2*time.Minute)
	settled(v.t, v.s, localcloud.SyncQueue, 2*time.Minute)
	if err := p.Stop(20 * time.Second); err != nil {
		v.t.Errorf("stop: %v\n%s", err, p.Log())
	}
	v.faithful()
	lost := 0
	for _, key := range v.keys {
		if _, ok := v.s.Cloud.Object(localcloud.Bucket, key); !ok {
			lost++
		}
	}
	if lost > 0 {
		v.t.Errorf("%d of %d misses were not carried", lost, len(v.keys))
	}
	if left := v.s.Cloud.Keys(localcloud.LogBucket); len(left) > 0 {
		v.t.Errorf("log objects are left: %q", left)
	}
	for _, q := range []string{localcloud.LogsQueue, localcloud.SyncQueue} {
		v.letters(q)
		v.t.Logf("most receives of one message of %s: %d", q, v.s.Cloud.MaxReceives(q))
	}
}

// letters checks that each piece of junk has a dead letter in a queue, or several
// since its sender may have died before it heard of the first, and nothing else.
func (v *visits) letters(queue string) {
	v.t.Helper()
	missing := map[string]bool{}
	for _, text := range v.junk {
		missing[text] = true
	}
	for _, m := range v.s.Cloud.Messages(queue + localcloud.DeadSuffix) {
		if _, ours := missing[m.Body]; !ours || m.Attributes["end"] != "poison" {
			v.t.Errorf("dead letter of %s: end %q, detail %q, receives %q, body %q", queue, m.Attributes["end"], m.Attributes["detail"], m.Attributes["receives"], m.Body)
			continue
		}
		missing[m.Body] = false
	}
	for text, lost := range missing {
		if lost {
			v.t.Errorf("%q, sent to %s, has no dead letter", text, queue)
		}
	}
}
