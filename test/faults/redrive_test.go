package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

const syncDead = localcloud.SyncQueue + localcloud.DeadSuffix

// die puts a dead letter for each key behind the sync queue.
func die(t *testing.T, s *localcloud.Site, keys []string) {
	t.Helper()
	for _, key := range keys {
		text, err := syncrequest.Encode(syncrequest.Request{Bucket: localcloud.Bucket, Key: key, Seen: time.Now(), Cause: "NoSuchKey"})
		if err != nil {
			t.Fatal(err)
		}
		attributes := map[string]string{"end": "failed", "detail": "unavailable", "receives": "8", "dead_at": "2026-09-04T09:00:00Z"}
		if err := s.Cloud.Send(syncDead, text, attributes); err != nil {
			t.Fatal(err)
		}
	}
}

// redrive runs `deadletter redrive` for all sync letters and returns what it said.
func redrive(t *testing.T, s *localcloud.Site) (stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	c := command(t, s, nil, "deadletter", "redrive", "--queue", "sync", "--rate", "0", "--yes")
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		t.Fatalf("redrive: %v\n%s", err, &said)
	}
	return out.String(), said.String()
}

// TestRedriveKilledInTheMiddle: the process that redrives many letters is killed
// twice, before and after SQS heard of a batch, and run again. No letter is lost,
// none is left, the counts are right, and every object is carried.
func TestRedriveKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	n := size(5000, 300)
	s := newSite(t, localcloud.Config{MaxReceive: 1000})
	keys := put(s.COS, "dead", n)
	die(t, s, keys)

	send := window{name: "redrive send", action: "SendMessageBatch", target: localcloud.SyncQueue}
	for i, m := range []moment{beforeForwarding, beforeAnswering} {
		killRedrive(t, s, send, n/30, m)
		asked := requested(t, s, syncDead, localcloud.SyncQueue)
		if diff := cmp.Diff(keys, slices.Sorted(maps.Keys(asked))); diff != "" {
			t.Fatalf("after a kill %s (-letters +asked):\n%s", m, diff)
		}
		// What a dead process holds is little, and comes back by itself.
		if held := s.Cloud.Depth(syncDead).InFlight; held != 10*(i+1) {
			t.Errorf("after a kill %s %d letters are held, want a batch of each dead process", m, held)
		}
	}

	held := s.Cloud.Depth(syncDead).InFlight
	left := s.Cloud.Depth(syncDead).Total()
	out, said := redrive(t, s)
	if want := fmt.Sprintf("%d of %[1]d letters redriven\n", left-held); out != want {
		t.Errorf("it said %q, want %q", out, want)
	}
	if want := fmt.Sprintf("about %d letters are held", held); !strings.Contains(said, want) {
		t.Errorf("it said %q, and not that %s", said, want)
	}
	s.Cloud.Expire(syncDead) // five minutes, scaled
	if out, said = redrive(t, s); out != fmt.Sprintf("%d of %[1]d letters redriven\n", held) || said != "" {
		t.Errorf("it said %q, %q, want %d letters redriven", out, said, held)
	}
	if left := s.Cloud.Depth(syncDead).Total(); left != 0 {
		t.Errorf("%d letters are left", left)
	}
	messages := s.Cloud.Messages(localcloud.SyncQueue)
	if more := len(messages) - n; more < 0 || more > 10 { // the batch that SQS took before the kill
		t.Errorf("%d messages for %d letters", len(messages), n)
	}
	for _, m := range messages {
		if diff := cmp.Diff(map[string]string{"redriven": "1"}, m.Attributes); diff != "" {
			t.Fatalf("attributes of a redriven message (-want +got):\n%s", diff)
		}
	}

	serve(t, s, "copy", scaled...)
	settled(t, s, localcloud.SyncQueue, 5*time.Minute)
	copied(t, s, localcloud.Bucket, keys)
	noDeadLetters(t, s, localcloud.SyncQueue)
}

// killRedrive runs a redrive that dies at its n-th send.
func killRedrive(t *testing.T, s *localcloud.Site, send window, n int, m moment) {
	t.Helper()
	p := newProxy(t, s, send.nth(n, m))
	defer p.close()
	c := command(t, s, p.environ(), "deadletter", "redrive", "--queue", "sync", "--rate", "0", "--yes")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p.victim <- func() { _ = c.Process.Kill() }
	err := c.Wait()
	select {
	case <-p.killed:
	case <-time.After(30 * time.Second): // the victim may be gone before the proxy says so
		t.Fatalf("the redrive ended without send %d (%v): %s", n, err, &said)
	}
}

// TestEachRedriveIsCounted: letters that die again and again say how often they
// were redriven.
func TestEachRedriveIsCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, localcloud.Config{MaxReceive: 1000})
	keys := put(s.COS, "sick", 5)
	die(t, s, keys)
	s.COS.Lie(cosd.When{Match: func(q cosd.Request) bool { return !strings.HasSuffix(q.Key, ".objectferry-probe") }}, cosd.Refuse(500, "InternalError"))
	ferry.Start(t, s, ferry.Options{YAML: strings.Replace(killable(s), "receives: 100", "receives: 1", 1)})
	for round := range size(5, 2) {
		redrive(t, s)
		ferry.Until(t, time.Minute, "all letters are dead again", func() bool { return s.Cloud.Depth(syncDead).Waiting == len(keys) })
		out, err := command(t, s, nil, "deadletter", "show", "--queue", "sync", "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		for line := range strings.Lines(string(out)) {
			var l struct {
				Key      string
				Redriven int
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			told[l.Key+" "+strconv.Itoa(l.Redriven)]++
		}
		want := map[string]int{}
		for _, key := range keys {
			want[key+" "+strconv.Itoa(round+1)]++
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("key and count after %d redrives (-want +got):\n%s", round+1, diff)
		}
	}
}
