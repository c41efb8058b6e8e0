package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// killable is a configuration for processes that are killed: logs are deleted
// when they are done, objects above 5 MiB take several parts, and the limits of
// receives are out of reach, so that kills alone dead-letter nothing.
func killable(s *localcloud.Site) string {
	yaml := s.YAML([]localcloud.Route{{}},
		"retry: {min: 200ms, max: 1s, wait: 1s, receives: 100}",
		"guard: {probe_min: 100ms, probe_max: 1s, timeout: 5s}",
		"copy: {part_size: 5MiB, memory: 64MiB}",
		"drain: 10s")
	return strings.Replace(yaml, "when_done: keep", "when_done: delete", 1)
}

// window is a call at which a process may die.
type window struct {
	name, action, target string
	large, poison        bool // what must be on its way for such calls to be made
}

// nth is true once: at a moment of the window's n-th call, from 0.
func (w window) nth(n int, m moment) func(call, moment) bool {
	var seen atomic.Int64
	return func(c call, at moment) bool {
		return at == m && c.action == w.action && c.target == w.target && seen.Add(1)-1 == int64(n)
	}
}

// TestKillAtEachCallLosesNothing: the process is killed just before each call
// that makes something durable is forwarded, and just before it is answered.
// Every miss is carried all the same, nothing wrong becomes visible, and no dead
// letter comes of it but those of messages that nobody can read.
func TestKillAtEachCallLosesNothing(t *testing.T) {
	const dead = localcloud.DeadSuffix
	windows := []window{
		{name: "send batch", action: "SendMessageBatch", target: localcloud.SyncQueue},
		{name: "delete log", action: "DeleteObject", target: localcloud.LogBucket},
		{name: "delete notification", action: "DeleteMessageBatch", target: localcloud.LogsQueue},
		{name: "delete request", action: "DeleteMessageBatch", target: localcloud.SyncQueue},
		{name: "PutObject", action: "PutObject", target: localcloud.Bucket},
		{name: "UploadPart", action: "UploadPart", target: localcloud.Bucket, large: true},
		{name: "Complete", action: "CompleteMultipartUpload", target: localcloud.Bucket, large: true},
		{name: "dead letter of a notification", action: "SendMessageBatch", target: localcloud.LogsQueue + dead, poison: true},
		{name: "dead letter of a request", action: "SendMessageBatch", target: localcloud.SyncQueue + dead, poison: true},
	}
	// Most of a window's time is waiting for visibility timeouts, so more of them
	// run at once than there are processors.
	atOnce := make(chan struct{}, 5)
	var all sync.WaitGroup
	for _, w := range windows {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			t.Run(w.name, func(t *testing.T) {
				s := newSite(t, localcloud.Config{Visibility: time.Second, MaxReceive: 1000})
				v := &visits{t: t, s: s}
				for n := range size(3, 1) {
					for _, m := range []moment{beforeForwarding, beforeAnswering} {
						v.killAt(w, n%2, m)
					}
				}
				v.finish()
			})
		})
	}
	all.Wait()
}

// killAt runs a process until it dies at a moment of w's n-th call. Visitors go
// on missing objects meanwhile.
func (v *visits) killAt(w window, n int, m moment) {
	v.t.Helper()
	p := newProxy(v.t, v.s, w.nth(n, m))
	process := ferry.Start(v.t, v.s, ferry.Options{YAML: killable(v.s), Env: p.environ()})
	p.victim <- process.Kill
	for deadline := time.Now().Add(time.Minute); ; {
		v.miss(w.large)
		if w.poison {
			v.spoil()
		}
		select {
		case <-p.killed:
			p.close()
			v.faithful()
			return
		case <-time.After(time.Second):
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("no call %d of %s (%s %s) within a minute\n%s", n, w.name, w.action, w.target, process.Log())
		}
	}
}

// TestRandomKillsLoseNothing: the process is killed again and again at any moment
// at which it holds a message.
func TestRandomKillsLoseNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, localcloud.Config{Visibility: time.Second, MaxReceive: 1000, COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 20 * time.Millisecond, LatencyMax: 80 * time.Millisecond}}})
	v := &visits{t: t, s: s}
	for n := range size(30, 5) {
		p := ferry.Start(t, s, ferry.Options{YAML: killable(s)})
		v.miss(n%3 == 0)
		time.Sleep(rand.N(600 * time.Millisecond)) // the moment is what is tested
		ferry.Until(t, time.Minute, "the process holds a message", func() bool {
			if metric(t, p, "objectferry_messages_held") > 0 {
				return true
			}
			if s.Cloud.Depth(localcloud.LogsQueue).Total()+s.Cloud.Depth(localcloud.SyncQueue).Total() == 0 {
				v.miss(false)
			}
			return false
		})
		p.Kill()
		v.faithful()
	}
	v.finish()
}

// TestKilledRedriveLosesNothing: `deadletter redrive` dies at its send. Each
// letter is still a dead letter or on the sync queue, and the next redrive heals
// what is left.
func TestKilledRedriveLosesNothing(t *testing.T) {
	t.Parallel()
	const dead = localcloud.SyncQueue + localcloud.DeadSuffix
	s := newSite(t, localcloud.Config{Visibility: time.Second, MaxReceive: 1000})
	v := &visits{t: t, s: s}

	// Letters as they come about: a source that lives, with keys that fail alone.
	s.COS.Lie(cosd.When{Match: func(q cosd.Request) bool { return !strings.HasSuffix(q.Key, ".objectferry-probe") }}, cosd.Refuse(500, "InternalError"))
	p := ferry.Start(t, s, ferry.Options{YAML: strings.Replace(killable(s), "receives: 100", "receives: 1", 1)})
	for range 2 {
		v.miss(false)
	}
	settled(t, s, localcloud.LogsQueue, time.Minute)
	settled(t, s, localcloud.SyncQueue, time.Minute)
	if err := p.Stop(20 * time.Second); err != nil {
		t.Fatalf("stop: %v\n%s", err, p.Log())
	}
	s.COS.Heal()
	letters := requested(t, s, dead)
	if len(letters) < 21 {
		t.Fatalf("%d dead letters, want three sends of ten", len(letters))
	}

	send := window{name: "redrive send", action: "SendMessageBatch", target: localcloud.SyncQueue}
	for n := range size(3, 1) {
		for _, m := range []moment{beforeForwarding, beforeAnswering} {
			p := newProxy(t, s, send.nth(n%2, m))
			c := command(t, s, p.environ(), "deadletter", "redrive", "--queue", "sync")
			var said bytes.Buffer
			c.Stderr = &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			p.victim <- func() { _ = c.Process.Kill() }
			err := c.Wait()
			select {
			case <-p.killed:
			case <-time.After(5 * time.Second): // the victim may be gone before the proxy says so
				t.Fatalf("the redrive ended without send %d (%v): %s", n%2, err, &said)
			}
			p.close()
			asked := requested(t, s, dead, localcloud.SyncQueue)
			for key := range letters {
				if !asked[key] {
					t.Errorf("after a kill %s the request for %q is lost", m, key)
				}
			}
			s.Cloud.Expire(dead) // five minutes, scaled
		}
	}
	if out, err := command(t, s, nil, "deadletter", "redrive", "--queue", "sync").CombinedOutput(); err != nil {
		t.Errorf("redrive: %v\n%s", err, out)
	}
	v.finish()
}

// TestAKillerDiesAlone: a request that ends the process, with 63 others in flight
// beside it, becomes the one dead letter; SQS itself moves it, since nobody lives
// to say why. Visibility timeouts end when the process does, or 30 receives would
// take half a minute.
func TestAKillerDiesAlone(t *testing.T) {
	t.Parallel()
	const (
		killer = "killer.bin"
		limit  = 30 // maxReceiveCount
	)
	s := newSite(t, localcloud.Config{Visibility: time.Second, MaxReceive: limit, COS: cosd.Config{Behaviour: cosd.Behaviour{LatencyMin: 2 * time.Second, LatencyMax: 2 * time.Second}}})
	innocents := put(s.COS, "innocent", 63)
	s.COS.Put(killer, body(killer), cosd.Attributes{})
	copier := func(env map[string]string) *ferry.Process {
		return ferry.Start(t, s, ferry.Options{Args: []string{"--role", "copy"}, YAML: killable(s), Env: env})
	}

	// The others have been received before the killer comes; that must not make them
	// stand behind it each time.
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, innocents)
	before := copier(nil)
	ferry.Until(t, 10*time.Second, "the others are in flight", func() bool { return s.Cloud.Depth(localcloud.SyncQueue).InFlight == len(innocents) })
	before.Kill()
	s.Cloud.Expire(localcloud.SyncQueue)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{killer})

	over := func() bool { return s.Cloud.Depth(localcloud.SyncQueue).Total() == 0 }
	processes := 0
	for ; !over(); processes++ {
		if processes > limit {
			t.Fatalf("the process has died %d times, maxReceiveCount is %d", processes, limit)
		}
		first := processes == 0
		p := newProxy(t, s, func(c call, m moment) bool {
			if m != beforeForwarding || c.action != "HeadObject" || c.key != killer {
				return false
			}
			if first { // it strikes once all others are in flight too, which the slow source keeps there
				for wait := time.Now().Add(2 * time.Second); s.Cloud.Depth(localcloud.SyncQueue).Waiting > 0 && time.Now().Before(wait); {
					time.Sleep(5 * time.Millisecond)
				}
				if d := s.Cloud.Depth(localcloud.SyncQueue); d.InFlight != 64 {
					t.Errorf("at the first death %+v, want 64 in flight", d)
				}
			}
			return true
		})
		process := copier(p.environ())
		p.victim <- process.Kill
		ferry.Until(t, time.Minute, "the process has died or has nothing left to do", func() bool {
			select {
			case <-process.Done():
				return true
			default:
				return over()
			}
		})
		p.close()
		// From now on a request takes longer than it takes the killer to strike, so that
		// nobody is saved by being quick.
		s.COS.Change(func(b *cosd.Behaviour) { b.LatencyMin, b.LatencyMax = 150*time.Millisecond, 150*time.Millisecond })
		s.Cloud.Expire(localcloud.SyncQueue)
	}
	copied(t, s, localcloud.Bucket, innocents)
	t.Logf("it took %d processes; most receives of one message: %d", processes, s.Cloud.MaxReceives(localcloud.SyncQueue))

	var group struct {
		Queue, End, Detail string
		Letters            int
		Example            struct{ Key string }
	}
	out, err := command(t, s, nil, "deadletter", "ls", "--queue", "sync", "--json").Output()
	if err != nil {
		t.Fatalf("deadletter ls: %v", err)
	}
	if err := json.Unmarshal(out, &group); err != nil { // an error too if there are several groups
		t.Fatalf("deadletter ls printed %q: %v", out, err)
	}
	if group.Letters != 1 || group.End != "failed" || group.Detail != "interrupted" || group.Example.Key != killer {
		t.Errorf("the dead letters are %+v, want the killer's one, failed, interrupted", group)
	}
}

// command is an objectferry command on the site, not started yet.
func command(t *testing.T, s *localcloud.Site, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, ferry.Binary(t), append(args, "--config", ferry.Config(t, killable(s)))...)
	c.Env = ferry.Environ(s, env)
	return c
}

// requested are the keys that the messages of queues ask for.
func requested(t *testing.T, s *localcloud.Site, queues ...string) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, q := range queues {
		for _, m := range s.Cloud.Messages(q) {
			r, err := syncrequest.Decode(m.Body)
			if err != nil {
				t.Fatalf("message of %s: %v", q, err)
			}
			keys[r.Key] = true
		}
	}
	return keys
}
