// Package check tries, against the real systems, what the service will need:
// each permission and each setting of a queue. It consumes nothing and changes
// nothing: no message is received or sent, no object is written or deleted. What
// cannot be tried without that is listed as not tried.
//
// A check is done once by one command; its parts run side by side, one a queue,
// bucket and source.
package check

import (
	"context"
	"sync"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/route"
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
	ReadReference(ctx context.Context) error
	WriteReference(ctx context.Context, key string) error
}

// logs is what is asked of a place of logs.
type logs interface {
	Reference(ctx context.Context, bucket string) error
	// First reads one byte of a log object, and reports whether there was one.
	First(ctx context.Context, bucket, prefix string) (bool, error)
}

// Deps are the systems to be tried.
type Deps struct {
	SQS          sqsAPI
	Logs         func(config.Log) logs
	Sources      func(*route.Route) (source, error)
	Destinations func(*route.Route) destination
}

// Role says which half of the service is checked.
type Role struct{ Parse, Copy bool }

// Live tries all that role will need with configuration c. The items are in the
// order of the configuration, however long each takes.
func Live(ctx context.Context, c *config.Config, routes *route.Table, role Role, d Deps) []Item {
	l := &live{config: c, deps: d}
	copied := false // whether any route is copied, not only observed
	consumed := map[string]bool{}
	consume := func(url string) {
		if !consumed[url] {
			consumed[url] = true
			l.add(func(ctx context.Context) []Item { return l.consumedQueue(ctx, url) })
		}
	}
	if role.Parse {
		consume(c.Queues.Logs)
		for _, place := range c.Logs {
			l.add(func(ctx context.Context) []Item { return l.logPlace(ctx, place) })
		}
	}
	sent := map[string]bool{}
	for _, r := range routes.Routes() {
		if r.Observe() { // nothing is sent, read or written for it
			continue
		}
		copied = true
		url := r.QueueURL(c.Queues.Sync)
		if role.Parse && !sent[url] {
			sent[url] = true
			l.add(func(ctx context.Context) []Item { return []Item{l.mayAct(ctx, url, maySend)} })
		}
		if role.Copy {
			consume(url)
			l.add(func(ctx context.Context) []Item { return l.source(ctx, r) })
			l.add(func(ctx context.Context) []Item { return l.destination(ctx, r) })
		}
	}
	if role.Copy && !copied { // what others sent is settled all the same
		consume(c.Queues.Sync)
	}
	return l.run(ctx)
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
		return Item{needs, on, Failed, err.Error()}
	}
	return Item{Needs: needs, On: on, Status: OK}
}

// wrong is an item whose setting was read and is not good.
func wrong(needs, on, note string) Item { return Item{needs, on, Failed, note} }

// notTried is an item that would change something, or that cannot be seen yet.
func notTried(needs, on, why string) Item { return Item{needs, on, NotTried, why} }
