package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// logs writes one access-log object for each key into the log bucket, which
// announces it, each with one miss of that key.
func logs(t *testing.T, s *localcloud.Site, keys []string) {
	t.Helper()
	now := time.Now().UTC()
	for i, key := range keys {
		row := fmt.Sprintf("owner %s [%s] 203.0.113.9 - REQ%013d REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" 404 NoSuchKey 287 - 11 - \"-\" \"visitor\" -\n",
			localcloud.Bucket, now.Format("02/Jan/2006:15:04:05 -0700"), i, key, key)
		name := fmt.Sprintf("%s%s-%016X", localcloud.LogPrefix, now.Format("2006-01-02-15-04-05"), i)
		if err := s.Cloud.PutObject(localcloud.LogBucket, name, []byte(row), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusalSettlesNothing: a permission taken away with messages waiting
// deletes none of them, kills none, and all are done once it is given back.
func TestRefusalSettlesNothing(t *testing.T) {
	signer := cosd.Principal{ID: "AKIDlocal", Key: "cos-secret"}
	signed := []string{"include: [\"img/**\"]"}
	for _, refusal := range []struct {
		name   string
		bucket strictaws.Bucket
		queue  string // the one that must wait
		take   func(*localcloud.Site)
		give   func(*localcloud.Site)
		reason string
	}{
		{"s3:ListBucket", strictaws.Bucket{}, localcloud.SyncQueue,
			func(s *localcloud.Site) { s.Cloud.Deny("*", "s3:ListBucket", localcloud.Bucket) },
			func(s *localcloud.Site) { s.Cloud.Allow("*", "s3:ListBucket", localcloud.Bucket) }, "AccessDenied"},
		{"kms:GenerateDataKey", strictaws.Bucket{KMS: true}, localcloud.SyncQueue,
			func(s *localcloud.Site) { s.Cloud.Deny("*", "kms:GenerateDataKey", "*") },
			func(s *localcloud.Site) { s.Cloud.Allow("*", "kms:GenerateDataKey", "*") }, "refused"},
		{"COS policy", strictaws.Bucket{}, localcloud.SyncQueue,
			func(s *localcloud.Site) { s.COS.Revoke("") }, func(s *localcloud.Site) { s.COS.Restore() }, "AccessDenied"},
		{"log bucket", strictaws.Bucket{}, localcloud.LogsQueue,
			func(s *localcloud.Site) { s.Cloud.Deny("*", "s3:GetObject", localcloud.LogBucket+"/*") },
			func(s *localcloud.Site) { s.Cloud.Allow("*", "s3:GetObject", localcloud.LogBucket+"/*") }, "AccessDenied"},
		{"sqs:SendMessage", strictaws.Bucket{}, localcloud.LogsQueue,
			func(s *localcloud.Site) { s.Cloud.Deny("*", "sqs:SendMessage", localcloud.SyncQueue) },
			func(s *localcloud.Site) { s.Cloud.Allow("*", "sqs:SendMessage", localcloud.SyncQueue) }, "refused"},
	} {
		for _, warm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/warm=%v", refusal.name, warm), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, localcloud.Config{Bucket: refusal.bucket, COS: cosd.Config{Principals: []cosd.Principal{signer}}})
				credentials := filepath.Join(t.TempDir(), "cos.json")
				if err := os.WriteFile(credentials, []byte(`{"id":"AKIDlocal","key":"cos-secret"}`), 0o600); err != nil {
					t.Fatal(err)
				}
				yaml := s.YAML([]localcloud.Route{{Lines: signed}}, scaled...)
				yaml = strings.Replace(yaml, "read: anonymous", "read: signed\n      credentials_file: "+credentials, 1)
				p := ferry.Start(t, s, ferry.Options{YAML: yaml})
				if warm { // the service knows keys that were let through
					first := put(s.COS, "img/first", 5)
					logs(t, s, first)
					settled(t, s, localcloud.LogsQueue, time.Minute)
					settled(t, s, localcloud.SyncQueue, time.Minute)
					copied(t, s, localcloud.Bucket, first)
				}
				refusal.take(s)
				n := size(500, 40)
				keys := put(s.COS, "img/then", n)
				if refusal.queue == localcloud.LogsQueue {
					logs(t, s, keys)
				} else {
					ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
				}
				ferry.Until(t, 20*time.Second, "the gate closes with its reason", func() bool {
					_, page, err := p.Get(t.Context(), "/statusz")
					return err == nil && strings.Contains(page, `"state": "closed"`) && strings.Contains(page, refusal.reason)
				})
				if n := metric(t, p, "objectferry_guard_closed", `reason="refused"`); n < 1 {
					t.Error("metrics do not say that a gate is closed because it is refused")
				}
				time.Sleep(outageFor) // longer than own limit × visibility
				if left := s.Cloud.Depth(refusal.queue).Total(); left != n {
					t.Errorf("while refused, %d of %d messages are left", left, n)
				}
				noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
				refusal.give(s)
				settled(t, s, localcloud.LogsQueue, time.Minute)
				settled(t, s, localcloud.SyncQueue, time.Minute)
				copied(t, s, localcloud.Bucket, keys)
				noDeadLetters(t, s, localcloud.LogsQueue, localcloud.SyncQueue)
				t.Logf("most receives of one message: %d", s.Cloud.MaxReceives(refusal.queue))
			})
		}
	}
}
