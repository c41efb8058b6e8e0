package faults

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

var (
	endLine  = regexp.MustCompile(`(?m)^objectferry_ends_total\{(.*)\} (\d+)$`)
	endLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// ends counts the deliveries of a queue that a process has settled, by "end" or
// "end detail".
func ends(t *testing.T, p *ferry.Process, queue string) map[string]int {
	t.Helper()
	status, page, err := p.Get(t.Context(), "/metrics")
	if err != nil || status != 200 {
		t.Fatalf("get metrics: status %d, %v", status, err)
	}
	counts := map[string]int{}
	for _, line := range endLine.FindAllStringSubmatch(page, -1) {
		label := map[string]string{}
		for _, l := range endLabel.FindAllStringSubmatch(line[1], -1) {
			label[l[1]] = l[2]
		}
		n, err := strconv.Atoi(line[2])
		if err != nil {
			t.Fatal(err)
		}
		if label["queue"] == strings.TrimPrefix(queue, "objectferry-") || label["queue"] == queue {
			counts[strings.TrimSpace(label["end"]+" "+label["detail"])] += n
		}
	}
	return counts
}

// calmSite is a site for tests that count ends exactly: with a visibility timeout of
// 5 s no message comes twice because the machine is busy.
func calmSite(t *testing.T, c localcloud.Config) *localcloud.Site {
	t.Helper()
	c.Visibility = 5 * time.Second
	return newSite(t, c)
}

// sum is how many ends there are.
func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// ended waits until as many deliveries of a queue have been settled since before
// as want has, and checks that they ended so.
func ended(t *testing.T, p *ferry.Process, queue string, before, want map[string]int) {
	t.Helper()
	var got map[string]int
	ferry.Until(t, time.Minute, fmt.Sprintf("%d deliveries of %s have ended", sum(want), queue), func() bool {
		got = ends(t, p, queue)
		return sum(got)-sum(before) >= sum(want)
	})
	for end, n := range before {
		got[end] -= n
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ends of %s (-want +got):\n%s", queue, diff)
	}
}

// deadRequests returns the end and detail of each sync request that is a dead letter,
// by the key it asks for.
func deadRequests(t *testing.T, s *localcloud.Site) map[string]string {
	t.Helper()
	of := map[string]string{}
	for _, m := range s.Cloud.Messages(localcloud.SyncQueue + localcloud.DeadSuffix) {
		r, err := syncrequest.Decode(m.Body)
		if err != nil {
			t.Errorf("a dead letter that is no request: end %q, detail %q", m.Attributes["end"], m.Attributes["detail"])
			continue
		}
		of[r.Key] = m.Attributes["end"] + " " + m.Attributes["detail"]
	}
	return of
}

// version is one version of an object as the source has it.
type version struct {
	body []byte
	at   cosd.Attributes
}

// differs says in what o is not this version, "" when it is.
func (v version) differs(o strictaws.Object) string {
	if !bytes.Equal(o.Body, v.body) {
		return fmt.Sprintf("%d bytes that are not the %d of the source", len(o.Body), len(v.body))
	}
	want := map[string]string{
		"Content-Type": v.at.ContentType, "Content-Encoding": v.at.ContentEncoding, "Content-Language": v.at.ContentLanguage,
		"Content-Disposition": v.at.ContentDisposition, "Cache-Control": v.at.CacheControl, "Expires": v.at.Expires}
	for name, value := range v.at.Meta {
		want["X-Amz-Meta-"+strings.ToUpper(name[:1])+name[1:]] = value
	}
	for name, value := range want {
		if got := o.Header.Get(name); got != value {
			return fmt.Sprintf("%s %q, not %q", name, got, value)
		}
	}
	return ""
}

// witness is told by S3 of every object that becomes visible in the bucket, and
// looks at each as soon as it is there. Objects are never replaced or deleted (which
// is checked, too), so one that is right when it is looked at was never wrong.
type witness struct {
	s     *localcloud.Site
	right map[string][]version // what may stand under each key
	stop  chan struct{}
	done  sync.WaitGroup

	seen  map[string]bool // by key
	wrong []string
}

const witnessQueue = "witness"

// watch begins to look; the versions must not be changed any more.
func watch(t *testing.T, s *localcloud.Site, right map[string][]version) *witness {
	t.Helper()
	if err := s.AddQueue(witnessQueue); err != nil {
		t.Fatal(err)
	}
	s.AddBucket(localcloud.Bucket, strictaws.Bucket{Notify: []strictaws.Notification{{ID: "witness", Queue: witnessQueue}}})
	w := &witness{s: s, right: right, stop: make(chan struct{}), seen: map[string]bool{}}
	w.done.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(5 * time.Millisecond):
				w.look()
			}
		}
	})
	return w
}

// look checks what has become visible since.
func (w *witness) look() {
	for _, key := range w.s.Cloud.Keys(localcloud.Bucket) {
		if w.seen[key] {
			continue
		}
		w.seen[key] = true
		o, _ := w.s.Cloud.Object(localcloud.Bucket, key)
		why := "no version of it may be there"
		for _, v := range w.right[key] {
			if why = v.differs(o); why == "" {
				break
			}
		}
		if why != "" {
			w.wrong = append(w.wrong, fmt.Sprintf("object %q is wrong: %s", key, why))
		}
	}
}

// saw ends the watch, checks that nothing wrong was ever visible, and returns the
// keys of all that is.
func (w *witness) saw(t *testing.T) map[string]bool {
	t.Helper()
	close(w.stop)
	w.done.Wait()
	w.look()
	for _, text := range w.wrong {
		t.Error(text)
	}
	created := map[string]int{}
	for _, m := range w.s.Cloud.Messages(witnessQueue) {
		records, err := s3event.Parse(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			created[r.Key]++
		}
	}
	for key, n := range created {
		if n != 1 || !w.seen[key] {
			t.Errorf("object %q became visible %d times; there at the end: %v", key, n, w.seen[key])
		}
	}
	if n := w.s.Cloud.Count(strictaws.ServiceS3, "DeleteObject", localcloud.Bucket).Calls; n > 0 {
		t.Errorf("%d objects were deleted", n)
	}
	return w.seen
}
