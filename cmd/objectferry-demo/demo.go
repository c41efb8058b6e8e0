package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/localcloud/visitors"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// roundsOnce is how many rounds --once plays: all from COS, then both, then a
// last one that must come from S3 alone.
const roundsOnce = 3

// roundEvery paces the rounds without --once, so that one can watch them.
const roundEvery = time.Second

// Result is the one line of --json.
type Result struct {
	Visits      int     `json:"visits"`
	Errors      int     `json:"errors"`
	Objects     int     `json:"objects"` // distinct keys asked for that COS has
	Copied      int     `json:"copied"`  // distinct keys that the ferry wrote
	FirstFromS3 float64 `json:"served_from_s3_first"`
	LastFromS3  float64 `json:"served_from_s3_last"`
	DeadLetters int     `json:"dead_letters"`
	Seconds     float64 `json:"seconds"`
}

type demo struct {
	seed            uint64
	objects, visits int
	out             io.Writer

	site    *localcloud.Site
	catalog map[string]visitors.Object
	keys    []string // the most popular first
	asked   map[string]bool
	result  Result
}

// play runs the demo: with once to its end, otherwise until ctx ends.
func (d *demo) play(ctx context.Context, once bool) (Result, error) {
	start := time.Now()
	stop, err := d.start(ctx)
	if err != nil {
		return d.result, err
	}
	defer stop()

	fmt.Fprintf(d.out, "%d objects in COS, none in S3; %d visits a round\n", d.objects, d.visits)
	err = d.rounds(ctx, once)
	d.count()
	d.result.Seconds = time.Since(start).Round(100 * time.Millisecond).Seconds()
	switch {
	case ctx.Err() != nil && !once: // Ctrl-C is how it ends
		return d.result, nil
	case err != nil:
		return d.result, err
	}
	return d.result, d.verify()
}

// rounds plays round after round.
func (d *demo) rounds(ctx context.Context, once bool) error {
	for n := 1; ; n++ {
		next := time.After(roundEvery)
		last := once && n == roundsOnce
		seen, err := d.round(ctx, n, last)
		if err != nil {
			return err
		}
		share := seen.ShareFromS3()
		if n == 1 {
			d.result.FirstFromS3 = share
		}
		d.result.LastFromS3 = share
		fmt.Fprintf(d.out, "round %3d  from S3 %s %5.1f %%  errors %d  copied %d of %d asked for\n", n, bar(share), 100*share, seen.Errors, len(d.copied()), len(d.asked))
		if seen.FirstError != nil {
			fmt.Fprintf(d.out, "           first error: %v\n", seen.FirstError)
		}
		if last {
			return nil
		}
		if once {
			continue
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start brings up the cloud, fills COS and starts the real service.
func (d *demo) start(ctx context.Context) (stop func(), err error) {
	d.site, err = localcloud.Start(localcloud.Config{
		AWS: strictaws.Config{LogInterval: time.Hour}, // a round's log is delivered when the round is over
		COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}},
	})
	if err != nil {
		return nil, fmt.Errorf("start the embedded cloud: %w", err)
	}
	defer func() {
		if err != nil {
			d.site.Close()
		}
	}()
	d.catalog, d.asked = map[string]visitors.Object{}, map[string]bool{}
	for _, o := range visitors.Catalogue(d.seed, d.objects, true) {
		d.catalog[o.Key] = o
		d.keys = append(d.keys, o.Key)
		d.site.COS.Put(o.Key, o.Body, cosd.Attributes{ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentLanguage: o.ContentLanguage,
			ContentDisposition: o.ContentDisposition, CacheControl: o.CacheControl, Expires: o.Expires, Meta: o.Meta})
	}
	service, err := d.service(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := service.Stop(drain); err != nil {
			fmt.Fprintf(d.out, "stop: %v\n", err)
		}
		d.site.Close()
	}, nil
}

// service starts the service just as `objectferry run` does, from a file and the
// environment.
func (d *demo) service(ctx context.Context) (*app.App, error) {
	for name, value := range d.site.Environ() {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "objectferry-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "objectferry.yaml")
	yaml := d.site.YAML([]localcloud.Route{{}}, `retry: {wait: 1s}`, `admin: {listen: "127.0.0.1:0"}`)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		return nil, err
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		return nil, err
	}
	tel, err := telemetry.New(ctx, telemetry.Config{Service: "objectferry-demo", Level: "warn"})
	if err != nil {
		return nil, err
	}
	service, err := app.New(ctx, cfg, app.Options{Role: app.RoleAll, Version: "demo"}, tel)
	if err != nil {
		return nil, err
	}
	if err := service.Start(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(d.out, "the service runs; see http://%s/statusz and /metrics\n", service.AdminAddr())
	return service, nil
}

// round sends visitors, has S3 deliver its log, and waits until the service has
// settled what came of it. The last round asks for what was asked for before.
func (d *demo) round(ctx context.Context, n int, last bool) (visitors.Result, error) {
	keys, seed := d.keys, d.seed+uint64(n)
	if last {
		keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !d.asked[k] })
	}
	seen, err := visitors.Round(ctx, visitors.Config{Edge: d.site.EdgeURL, Visits: d.visits, Seed: seed, Keys: keys, Check: d.check})
	d.result.Visits += seen.Visits
	d.result.Errors += seen.Errors
	for _, key := range seen.Distinct {
		d.asked[key] = true
	}
	d.result.Objects = len(d.asked)
	if err != nil {
		return seen, err
	}
	d.site.Cloud.FlushLogs()
	return seen, d.settled(ctx)
}

// settled waits until no message is left anywhere but in the dead letters.
func (d *demo) settled(ctx context.Context) error {
	timeout := time.After(60 * time.Second)
	for {
		left := d.site.Cloud.Depth(localcloud.LogsQueue).Total() + d.site.Cloud.Depth(localcloud.SyncQueue).Total()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return fmt.Errorf("%d messages are still not settled after a minute", left)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// check is what a visitor makes of an answer: the bytes and headers of the
// catalogue, whoever served them.
func (d *demo) check(key string, body []byte, h http.Header) error {
	o := d.catalog[key]
	if !bytes.Equal(body, o.Body) {
		return errors.New("other bytes than COS has")
	}
	for name, want := range map[string]string{"Content-Type": o.ContentType, "Content-Encoding": o.ContentEncoding, "Content-Language": o.ContentLanguage,
		"Content-Disposition": o.ContentDisposition, "Cache-Control": o.CacheControl, "Expires": o.Expires} {
		if got := h.Get(name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	return nil
}

// copied are the keys that the ferry wrote.
func (d *demo) copied() []string { return d.site.Cloud.Keys(localcloud.Bucket) }

// count looks what has become of it all.
func (d *demo) count() {
	d.result.Copied = len(d.copied())
	d.result.DeadLetters = d.site.Cloud.Depth(localcloud.LogsQueue+localcloud.DeadSuffix).Total() + d.site.Cloud.Depth(localcloud.SyncQueue+localcloud.DeadSuffix).Total()
}

// verify checks all that --once promises.
func (d *demo) verify() error {
	var problems []error
	for key := range d.asked {
		o, ok := d.site.Cloud.Object(localcloud.Bucket, key)
		if !ok {
			problems = append(problems, fmt.Errorf("key %q was asked for and is not in S3", key))
		} else if err := d.check(key, o.Body, o.Header); err != nil {
			problems = append(problems, fmt.Errorf("key %q in S3: %w", key, err))
		}
	}
	if d.result.DeadLetters > 0 {
		problems = append(problems, fmt.Errorf("%d dead letters", d.result.DeadLetters))
	}
	if d.result.Errors > 0 {
		problems = append(problems, fmt.Errorf("%d visitors saw an error", d.result.Errors))
	}
	if d.result.LastFromS3 < 1 {
		problems = append(problems, fmt.Errorf("the last round was served from S3 by %.1f %% only", 100*d.result.LastFromS3))
	}
	return errors.Join(problems...)
}

// bar draws a share.
func bar(share float64) string {
	full := int(share*20 + .5)
	return strings.Repeat("█", full) + strings.Repeat("░", 20-full)
}
