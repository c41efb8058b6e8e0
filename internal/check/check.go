// Package check tries, against the real systems, what the service and the
// commands of on-call will need: each permission and each setting of a queue. It
// consumes nothing and changes nothing: no message is received or sent, no object
// is written or deleted. It asks for what S3 and SQS refuse to everybody, such as
// an empty batch or an upload that never was, and tells from the refusal whether
// it was let in. What cannot be tried so is listed as not tried.
//
// A check is done once by one command; its parts run side by side, one a queue,
// bucket and source.
package check

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
)

// Status is how one try went.
type Status string

// The statuses.
const (
	OK       Status = "ok"
	Failed   Status = "failed"
	NotTried Status = "not tried"
)

// Item is one permission or setting.
type Item struct {
	Needs  string `json:"needs"` // the permission, such as s3:ListBucket, or the setting
	On     string `json:"on"`    // the ARN, or the address of a source
	Status Status `json:"status"`
	Note   string `json:"note,omitempty"`

	letters string // of a redrive policy, the ARN of the dead-letter queue
}

// timeout bounds all tries of one queue, bucket or source.
const timeout = 45 * time.Second

// source is what is asked of a COS bucket; *cos.Source is one.
type source interface {
	Reference(ctx context.Context, key string) error
}

// destination is what is asked of a bucket that is written to; *s3store.Store is
// one.
type destination interface {
	List(ctx context.Context, prefix, after, next string) (object.Page, error)
	ReadReference(ctx context.Context) error
	AbortReference(ctx context.Context, key string) error
	PartReference(ctx context.Context, key string) error
	WriteReference(ctx context.Context, key string) error
}

// logs is what is asked of a place of logs.
type logs interface {
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[s3store.LogObject, error]
	Read(ctx context.Context, bucket, key string, r object.Range, pin string) (*object.Read, error)
	Reference(ctx context.Context, bucket string) error
	DeleteReference(ctx context.Context, bucket string) error
}

// Deps are the systems to be tried.
type Deps struct {
	SQS          sqsAPI
	Logs         func(config.Log) logs
	Sources      func(*route.Route) (source, error)
	Destinations func(*route.Route) destination
}

// Role says whose permissions are checked: those of either half of the service,
// of the sweep, or of the people who are called when something fails.
type Role struct{ Parse, Copy, Sweep, OnCall bool }

// ParseRole reads the name of a role: parse, copy, all (both), sweep or oncall.
func ParseRole(name string) (Role, error) {
	switch name {
	case "parse":
		return Role{Parse: true}, nil
	case "copy":
		return Role{Copy: true}, nil
	case "all":
		return Role{Parse: true, Copy: true}, nil
	case "sweep":
		return Role{Sweep: true}, nil
	case "oncall":
		return Role{OnCall: true}, nil
	}
	return Role{}, fmt.Errorf("role %q: must be parse, copy, all, sweep or oncall", name)
}

// Live tries all that role will need with configuration c. The items are in the
// order of the configuration, however long each takes.
func Live(ctx context.Context, c *config.Config, routes *route.Table, role Role, d Deps) []Item {
	l := &live{config: c, deps: d}
	if role.Parse {
		l.parse(routes)
	}
	if role.Copy {
		l.copy(routes)
	}
	if role.Sweep {
		l.sweep()
	}
	if role.OnCall {
		l.onCall(routes)
	}
	items := l.run(ctx)
	ownLetters(items)
	return items
}

func (l *live) parse(routes *route.Table) {
	l.add(func(ctx context.Context) []Item { return l.consumedQueue(ctx, l.config.Queues.Logs) })
	for _, place := range l.config.Logs {
		l.add(func(ctx context.Context) []Item {
			return l.logPlace(ctx, place, place.WhenDone == config.WhenDoneDelete)
		})
	}
	sent := map[string]bool{}
	for _, r := range routes.Routes() {
		url := r.QueueURL(l.config.Queues.Sync)
		if r.Observe() || sent[url] { // nothing is sent for a route that only observes
			continue
		}
		sent[url] = true
		l.add(func(ctx context.Context) []Item { return []Item{l.mayAct(ctx, url, queueARN(url), maySend)} })
	}
}

func (l *live) copy(routes *route.Table) {
	// What others sent is settled also when no route sends now.
	for _, url := range l.config.SyncQueues() {
		l.add(func(ctx context.Context) []Item { return l.consumedQueue(ctx, url) })
	}
	for _, r := range routes.Routes() {
		if r.Observe() { // nothing is read or written for it
			continue
		}
		l.add(func(ctx context.Context) []Item { return l.source(ctx, r) })
		l.add(func(ctx context.Context) []Item { return l.destination(ctx, r, true) })
	}
}

func (l *live) sweep() {
	l.add(func(ctx context.Context) []Item {
		return []Item{l.mayAct(ctx, l.config.Queues.Logs, queueARN(l.config.Queues.Logs), maySend)}
	})
	for _, place := range l.config.Logs {
		l.add(func(ctx context.Context) []Item {
			_, err := firstKey(ctx, l.deps.Logs(place), place)
			return []Item{tried(list, l.bucketARN(place), err)}
		})
	}
}

func (l *live) onCall(routes *route.Table) {
	for _, url := range append([]string{l.config.Queues.Logs}, l.config.SyncQueues()...) {
		l.add(func(ctx context.Context) []Item { return l.answeredQueue(ctx, url) })
	}
	for _, place := range l.config.Logs {
		l.add(func(ctx context.Context) []Item { return l.logPlace(ctx, place, false) })
	}
	for _, r := range routes.Routes() { // explain looks at both sides whatever the mode
		l.add(func(ctx context.Context) []Item { return l.source(ctx, r) })
		l.add(func(ctx context.Context) []Item { return l.destination(ctx, r, false) })
	}
}

// ownLetters finds dead-letter queues of two queues: letters do not say which one
// they came from, so none of them could be redriven.
func ownLetters(items []Item) {
	of := map[string]string{} // dead-letter queue to its queue
	for i := range items {
		letters := items[i].letters
		if letters == "" {
			continue
		}
		if other, ok := of[letters]; ok && other != items[i].On {
			items[i].Status = Failed
			items[i].Note = fmt.Sprintf("the dead-letter queue %s is that of %s, too; give each queue one of its own, or nobody can tell where to redrive a letter to", letters, other)
		}
		of[letters] = items[i].On
	}
}

// live collects the parts of a check and runs them.
type live struct {
	config *config.Config
	deps   Deps
	parts  []func(context.Context) []Item
}

func (l *live) add(part func(context.Context) []Item) { l.parts = append(l.parts, part) }

func (l *live) run(ctx context.Context) []Item {
	results := make([][]Item, len(l.parts))
	var running sync.WaitGroup
	for i, part := range l.parts {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			results[i] = part(ctx)
		})
	}
	running.Wait()
	var items []Item
	for _, r := range results {
		items = append(items, r...)
	}
	return items
}

// tried is the item of a try that ended with err.
func tried(needs, on string, err error) Item {
	if err != nil {
		return wrong(needs, on, err.Error())
	}
	return Item{Needs: needs, On: on, Status: OK}
}

// wrong is an item whose setting was read and is not good.
func wrong(needs, on, note string) Item {
	return Item{Needs: needs, On: on, Status: Failed, Note: note}
}

// notTried is an item that would change something, or that cannot be seen yet.
func notTried(needs, on, why string) Item {
	return Item{Needs: needs, On: on, Status: NotTried, Note: why}
}
