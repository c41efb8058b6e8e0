package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cosd"
)

// TestMissBecomesObject is the service's main job on someone else's cloud: rows
// of two logs, announced by moto itself before the service starts.
func TestMissBecomesObject(t *testing.T) {
	t.Parallel()
	w := newTown(t, moto(t))
	w.announce()
	keys := []string{"img/plain.jpg", "img/a b+c.jpg", "img/100%25.jpg", "img/测试.jpg", "img/a//b.jpg", "img/x&y=z;'().jpg", "img/empty", "img/large.bin"}
	if long {
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("img/%03d.jpg", i))
		}
	}
	for _, key := range keys {
		w.cos.Put(key, []byte("picture "+key), cosd.Attributes{ContentType: "image/jpeg", CacheControl: "max-age=60", Meta: map[string]string{"title": "über"}})
	}
	w.cos.Put("img/empty", nil, cosd.Attributes{})
	w.cos.Put("img/large.bin", bytes.Repeat([]byte("0123456789abcdef!"), 700_000), cosd.Attributes{ContentType: "model/gltf-binary"}) // three parts
	w.cos.Put("img/theirs.jpg", []byte("ours"), cosd.Attributes{})
	w.media.put("img/theirs.jpg", "theirs")
	for _, key := range []string{"img/hit.jpg", "private/secret.txt"} {
		w.cos.Put(key, []byte("not asked for"), cosd.Attributes{})
	}
	var first, second strings.Builder
	for i, key := range append(keys, "img/theirs.jpg") {
		log := &first
		if i%2 == 1 {
			log = &second
		}
		log.WriteString(w.miss(key))
	}
	first.WriteString(w.miss("img/nowhere.jpg")) // COS has it neither
	first.WriteString(w.miss("private/secret.txt"))
	second.WriteString(w.row("REST.GET.OBJECT", "img/hit.jpg", 200, "-"))
	second.WriteString("this is no row\n")
	second.WriteString(w.miss(keys[0])) // again
	w.archive.put("access/2026-09-04-09-00-00-0123456789ABCDEF", first.String())
	w.archive.put("access/2026-09-04-09-00-00-FEDCBA9876543210", second.String())

	p := w.run()
	w.healed(p, keys...)
	w.stop(p)

	want := append([]string{"img/theirs.jpg"}, keys...)
	slices.Sort(want)
	if diff := cmp.Diff(want, w.media.keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if body, err := w.media.body("img/theirs.jpg"); err != nil || body != "theirs" {
		t.Errorf("theirs became %q, %v", body, err)
	}
	found, err := w.media.store.Head(t.Context(), "img/测试.jpg")
	_, source, _ := w.cos.Get("img/测试.jpg")
	if err != nil || found.ContentType != "image/jpeg" || found.CacheControl != "max-age=60" || found.Metadata["title"] != "über" ||
		found.CopyID == "" || found.Metadata["ferry-etag"] != source.ETag || found.ETag != source.ETag {
		t.Errorf("of the source's %+v S3 has %+v, %v", source, found, err)
	}
	if logs := w.archive.keys(); len(logs) != 0 {
		t.Errorf("logs that were read are not deleted: %q", logs)
	}
	if uploads := w.media.uploads(); len(uploads) != 0 {
		t.Errorf("%d uploads are left open", len(uploads))
	}
	if n := w.logsDead.total() + w.dead.total(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestDeadLettersAreRedrivenAndDropped goes the way of on-call: a source that
// brings wrong bytes until somebody mends it, and a message that nobody can read.
func TestDeadLettersAreRedrivenAndDropped(t *testing.T) {
	t.Parallel()
	w := newTown(t, moto(t))
	keys := []string{"img/1.jpg", "img/2.jpg", "img/good.jpg"}
	for _, key := range keys {
		w.cos.Put(key, []byte("picture "+key), cosd.Attributes{})
	}
	for _, key := range keys[:2] {
		w.cos.Lie(cosd.When{Key: key}, cosd.Flip(3))
	}
	w.sync.send("nobody can read this")
	p := w.run()
	w.must(append([]string{"request", "--bucket", w.media.bucket}, keys...)...)
	w.healed(p, "img/good.jpg")
	w.until(p, "three dead letters", func() bool { return w.dead.total() == 3 })

	got := map[string]int{}
	for line := range strings.Lines(w.must("deadletter", "ls", "--queue", "sync", "--json")) {
		var group struct {
			Queue, End, Detail string
			Letters            int
		}
		if err := json.Unmarshal([]byte(line), &group); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		got[group.Queue+" "+group.End+" "+group.Detail] = group.Letters
	}
	if diff := cmp.Diff(map[string]int{"sync failed corrupt": 2, "sync poison undecoded": 1}, got); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}

	w.cos.Heal()
	if out := w.must("deadletter", "redrive", "--queue", "sync", "--detail", "corrupt"); out != "2 of 2 letters redriven\n" {
		t.Errorf("redrive printed %q", out)
	}
	w.healed(p, keys...)
	if out := w.must("deadletter", "drop", "--queue", "sync", "--end", "poison", "--discard"); out != "1 of 1 letters dropped\n" {
		t.Errorf("drop printed %q", out)
	}
	if n := w.dead.total(); n != 0 {
		t.Errorf("%d dead letters are left", n)
	}
	w.stop(p)
}

// TestSweepFindsUnannouncedLogs has logs that were delivered before anybody
// announced them.
func TestSweepFindsUnannouncedLogs(t *testing.T) {
	t.Parallel()
	w := newTown(t, moto(t))
	keys := make([]string, motoPage+2)
	for i := range keys {
		keys[i] = fmt.Sprintf("img/%d.jpg", i)
		w.cos.Put(keys[i], []byte("picture "+keys[i]), cosd.Attributes{})
		w.archive.put(fmt.Sprintf("access/2026-09-04-09-00-00-%016X", i), w.miss(keys[i]))
	}
	w.archive.put("elsewhere", w.miss("img/elsewhere.jpg"))
	want := fmt.Sprintf("%d log objects would be announced, 0 failed\n", len(keys))
	if out := w.must("sweep", "--dry-run"); out != want {
		t.Errorf("sweep --dry-run printed %q, want %q", out, want)
	}
	want = fmt.Sprintf("%d log objects announced, 0 failed\n", len(keys))
	if out := w.must("sweep", "--max-age", "1h"); out != want {
		t.Errorf("sweep printed %q, want %q", out, want)
	}
	p := w.run()
	w.healed(p, keys...)
	w.stop(p)
}

// TestCheckLive passes where all is as it should be, and names what is not.
func TestCheckLive(t *testing.T) {
	t.Parallel()
	w := newTown(t, moto(t))
	w.archive.put("access/2026-09-04-09-00-00-0123456789ABCDEF", w.miss("img/1.jpg"))
	failed := func(want int) (list []string) {
		stdout, stderr, exit := w.command("check", "--live", "--json")
		var report struct {
			OK   bool
			Live []struct{ Needs, On, Status, Note string }
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("%v in %s%s", err, stdout, stderr)
		}
		if exit != want || report.OK != (want == 0) || len(report.Live) == 0 {
			t.Errorf("exit code %d, want %d; %s%s", exit, want, stdout, stderr)
		}
		for _, item := range report.Live {
			if item.Status == "failed" {
				list = append(list, item.Needs)
			}
		}
		return list
	}
	if list := failed(0); len(list) != 0 {
		t.Errorf("failed: %q", list)
	}
	w.sync.set("VisibilityTimeout", "5")
	w.cos.Revoke("")
	if diff := cmp.Diff([]string{"VisibilityTimeout", "cos:GetObject"}, failed(1)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if len(w.media.keys())+len(w.media.uploads())+w.logs.total()+w.sync.total()+w.dead.total() != 0 || len(w.archive.keys()) != 1 {
		t.Error("the check changed something")
	}
}
