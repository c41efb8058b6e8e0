package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/glob"

	"github.com/objectferry/objectferry/pkg/accesslog"
)

// Limits of the vendors.
const (
	minPart       = 5 << 20            // S3's floor of a part
	maxPart       = 5 << 30            // S3's limit of one PUT and of a part
	maxParts      = 10_000             // S3's limit of parts of an object
	maxObject     = 50_000_000_000_000 // S3's largest object, 50 TB
	maxVisibility = 12 * time.Hour     // SQS's longest time that a message stays hidden
	maxWait       = 20 * time.Second   // SQS's longest poll
)

var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionForm = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	ownerForm  = regexp.MustCompile(`^[0-9]{12}$`)
	kmsForm    = regexp.MustCompile(`^(default|[0-9a-f-]{36}|mrk-[0-9a-f]{32}|alias/[\w/-]+|arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[\w/-]+)$`)
)

// Validate returns all problems of c as Errors, or nil.
func (c *Config) Validate() error { return c.problems().err() }

func (c *Config) problems() Errors {
	var e Errors
	switch {
	case c.Region == "":
		e.add("region", "is missing; name the AWS region of the queues, such as us-west-2")
	case !regionForm.MatchString(c.Region):
		e.add("region", "is not the name of an AWS region, such as us-west-2")
	}
	c.checkQueues(&e)
	c.checkLogs(&e)
	if c.Own != "" {
		if _, err := accesslog.ParseRole(c.Own); err != nil {
			e.add("own_role", "%v; write arn:aws:sts::<12 digits>:assumed-role/<role>, without a session name, or the role's own arn:aws:iam::<12 digits>:role/<role>", err)
		}
	}
	c.checkRoutes(&e)
	c.checkCopy(&e)
	c.checkTimes(&e)
	if c.Admin.Listen != "" {
		_, port, err := net.SplitHostPort(c.Admin.Listen)
		if n, errPort := strconv.Atoi(port); err != nil || errPort != nil || n < 0 || n > 65535 {
			e.add("admin.listen", `must be host:port or :port, such as ":8080"; "" is off`)
		}
	}
	e.oneOf("log.level", c.Log.Level, "", "debug", "info", "warn", "error")
	return e
}

func (c *Config) checkQueues(e *Errors) {
	urls := map[string]string{} // URL to the field that has it, for queues that must differ
	for _, q := range []struct{ field, url string }{{"queues.logs", c.Queues.Logs}, {"queues.sync", c.Queues.Sync}} {
		if q.url == "" {
			e.add(q.field, "is missing; give the queue's URL, such as https://sqs.us-west-2.amazonaws.com/111122223333/name")
			continue
		}
		c.checkQueueURL(e, q.field, q.url)
		if other, ok := urls[q.url]; ok {
			e.add(q.field, "is the same queue as %s; notifications and sync requests need a queue each", other)
		}
		urls[q.url] = q.field
	}
	for i, r := range c.Routes {
		if r.Source.Queue == "" {
			continue
		}
		field := fmt.Sprintf("routes[%d].source.queue", i)
		c.checkQueueURL(e, field, r.Source.Queue)
		if r.Source.Queue == c.Queues.Logs {
			e.add(field, "is the same queue as queues.logs; notifications and sync requests need a queue each")
		}
	}
}

func (c *Config) checkLogs(e *Errors) {
	if len(c.Logs) == 0 {
		e.add("logs", "is missing; name at least one bucket that S3 delivers access logs to")
	}
	for i, l := range c.Logs {
		field := fmt.Sprintf("logs[%d]", i)
		e.bucket(field+".bucket", l.Bucket)
		e.oneOf(field+".when_done", l.WhenDone, "there is no default, because delete cannot be undone and keep needs a lifecycle rule", WhenDoneKeep, WhenDoneDelete)
		for j, other := range c.Logs[:i] {
			if l.Bucket == other.Bucket && (strings.HasPrefix(l.Prefix, other.Prefix) || strings.HasPrefix(other.Prefix, l.Prefix)) {
				e.add(field, "overlaps logs[%d]: one prefix begins with the other, so a log would belong to both", j)
			}
		}
		for j, r := range c.Routes {
			if l.Bucket != "" && l.Bucket == r.Bucket {
				e.add(field+".bucket", "is also routes[%d].bucket: what is written there would be logged there and feed itself; use another bucket for the logs", j)
			}
		}
	}
}

func (c *Config) checkCopy(e *Errors) {
	e.within("copy.concurrency", c.Copy.Concurrency, 1, 10_000)
	e.within("parse.concurrency", c.Parse.Concurrency, 1, 10_000)
	if c.Parse.RecentKeys < 0 {
		e.add("parse.recent_keys", "must not be negative")
	}
	part := c.Copy.PartSize
	if part < minPart || part > maxPart {
		e.add("copy.part_size", "must be between 5MiB and 5GiB, S3's limits of a part")
		return
	}
	if c.Copy.MaxSize < 1 || c.Copy.MaxSize > maxObject {
		e.add("copy.max_size", "must be between 1B and 50TB, S3's largest object")
		return
	}
	// Parts grow so that 10,000 suffice for the largest object; in whole MiB, to be readable.
	grown := max(part, (c.Copy.MaxSize/maxParts+1<<20-1)>>20<<20)
	if c.Copy.Memory < 2*grown {
		e.add("copy.memory", "must hold at least two parts: %s or more (parts are copy.part_size, or as large as 10,000 of them need to be for copy.max_size)", 2*grown)
	}
}

func (c *Config) checkTimes(e *Errors) {
	e.within("retry.receives", c.Retry.Receives, 1, 100)
	for _, t := range []struct {
		field string
		d     Duration
	}{
		{"drain", c.Drain}, {"retry.min", c.Retry.Min}, {"retry.max", c.Retry.Max},
		{"guard.probe_min", c.Guard.ProbeMin}, {"guard.probe_max", c.Guard.ProbeMax}, {"guard.timeout", c.Guard.Timeout},
	} {
		if t.d <= 0 {
			e.add(t.field, "must be longer than nothing")
		}
	}
	if c.Parse.Recent < 0 {
		e.add("parse.recent", "must not be negative; 0s is off")
	}
	if c.Retry.Min > c.Retry.Max {
		e.add("retry.min", "must not be longer than retry.max")
	}
	if time.Duration(c.Retry.Max) > maxVisibility {
		e.add("retry.max", "must be at most 12h, as long as SQS can hide a message")
	}
	if w := time.Duration(c.Retry.Wait); w < time.Second || w > maxWait || w%time.Second != 0 {
		e.add("retry.wait", "must be whole seconds from 1s to 20s, as SQS takes them")
	}
	if c.Guard.ProbeMin > c.Guard.ProbeMax {
		e.add("guard.probe_min", "must not be longer than guard.probe_max")
	}
	if c.Guard.MinRate < 1 {
		e.add("guard.min_rate", "must be at least 1B a second")
	}
}

// oneOf demands one of words; why, if there is one, ends the sentence.
func (e *Errors) oneOf(field, value, why string, words ...string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if value == w {
			return
		}
		quoted[i] = strconv.Quote(w)
	}
	text := "must be " + strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
	if why != "" {
		text += "; " + why
	}
	e.add(field, "%s", text)
}

func (e *Errors) within(field string, n, least, most int) {
	if n < least || n > most {
		e.add(field, "must be between %d and %d", least, most)
	}
}

func (e *Errors) bucket(field, name string) {
	switch {
	case name == "":
		e.add(field, "is missing; name the bucket")
	case !bucketForm.MatchString(name) || strings.Contains(name, ".."):
		e.add(field, "is not the name of an S3 bucket (3 to 63 of a-z, 0-9, dot and hyphen; no URL, no ARN)")
	}
}

// globs checks each pattern and returns the set of all, if all are good.
func (e *Errors) globs(field string, patterns []string) (glob.Set, bool) {
	before := len(*e)
	for i, p := range patterns {
		if _, err := glob.Compile(p); err != nil {
			e.add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
	}
	if len(*e) > before {
		return glob.Set{}, false
	}
	set, err := glob.Compile(patterns...)
	return set, err == nil
}
