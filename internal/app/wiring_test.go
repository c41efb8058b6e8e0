package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// logMiss delivers a log with a miss of a key.
func logMiss(t *testing.T, s *localcloud.Site, key string) {
	t.Helper()
	row := fmt.Sprintf("o %s [%s] 203.0.113.9 - ID REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" 404 NoSuchKey 287 - 9 - \"-\" \"curl/8.4.0\" -\n",
		localcloud.Bucket, time.Now().UTC().Format("02/Jan/2006:15:04:05 +0000"), key, key)
	if err := s.Cloud.PutObject(localcloud.LogBucket, localcloud.LogPrefix+"one", []byte(row), nil); err != nil {
		t.Fatal(err)
	}
}

// signed are the lines of a route that reads with a signature.
func signed(file string) []string {
	return []string{"  read: signed", "  credentials_file: " + file, `include: ["*.jpg"]`}
}

// A process that only parses runs where the COS credentials are not, and asks
// neither the source nor the destination.
func TestTheParseRoleNeedsNoCredentialsAndAsksNoDestination(t *testing.T) {
	s := newSite(t, cosd.Config{})
	startApp(t, RoleParse, s.YAML([]localcloud.Route{{Lines: signed(filepath.Join(t.TempDir(), "missing.json"))}}))
	logMiss(t, s, "a.jpg")
	until(t, "the miss is requested", func() bool { return s.Cloud.Depth(localcloud.SyncQueue).Waiting == 1 })
	until(t, "the log is settled", func() bool { return s.Cloud.Depth(localcloud.LogsQueue).Total() == 0 })
	if n := s.COS.Counts().Requests; n != 0 {
		t.Errorf("the source was asked %d times", n)
	}
	if n := s.Cloud.Count(strictaws.ServiceS3, "", localcloud.Bucket).Calls; n != 0 {
		t.Errorf("the destination was asked %d times", n)
	}
	if n := s.Cloud.Count(strictaws.ServiceSQS, "ReceiveMessage", localcloud.SyncQueue).Calls; n != 0 {
		t.Errorf("the sync queue was received from %d times", n)
	}
}

func TestTheCopyRoleReadsNoLogs(t *testing.T) {
	s := newSite(t, cosd.Config{})
	s.COS.Put("a.jpg", []byte("picture"), cosd.Attributes{})
	logMiss(t, s, "b.jpg")
	startApp(t, RoleCopy, s.YAML([]localcloud.Route{{}}))
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "a.jpg")
	until(t, "the object is copied", inS3(s, localcloud.Bucket, "a.jpg"))
	if n := s.Cloud.Count(strictaws.ServiceSQS, "", localcloud.LogsQueue).Calls; n != 0 {
		t.Errorf("the logs queue was asked %d times", n)
	}
	if n := s.Cloud.Count(strictaws.ServiceS3, "", localcloud.LogBucket).Calls; n != 0 {
		t.Errorf("the log bucket was asked %d times", n)
	}
}

// A fleet for each sync queue: a process that is told its queue receives from no other.
func TestANamedQueueIsTheOnlyOneConsumed(t *testing.T) {
	s := newSite(t, cosd.Config{})
	if err := s.AddQueue("other-sync"); err != nil {
		t.Fatal(err)
	}
	s.AddBucket("other-media", strictaws.Bucket{})
	s.COS.Put("a.jpg", []byte("picture"), cosd.Attributes{})
	yaml := s.YAML([]localcloud.Route{{}, {Bucket: "other-media", Queue: "other-sync"}})
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "a.jpg")
	ask(t, s, "other-sync", "other-media", "a.jpg")
	startApp(t, RoleCopy, yaml, "other-sync")
	until(t, "the object is copied", inS3(s, "other-media", "a.jpg"))
	if n := s.Cloud.Count(strictaws.ServiceSQS, "ReceiveMessage", localcloud.SyncQueue).Calls; n != 0 {
		t.Errorf("the other queue was received from %d times", n)
	}

	_, err := New(t.Context(), load(t, yaml), Options{Role: RoleCopy, Queues: []string{"other-snyc"}}, telemetry.Nop())
	if err == nil || !strings.Contains(err.Error(), `"other-snyc"`) || !strings.Contains(err.Error(), `"other-sync"`) {
		t.Errorf("a queue that is not there: %v", err)
	}
}

func TestTheCopyRoleNeedsItsCredentials(t *testing.T) {
	s := newSite(t, cosd.Config{})
	file := filepath.Join(t.TempDir(), "missing.json")
	cfg := load(t, s.YAML([]localcloud.Route{{Lines: signed(file)}}))
	for _, role := range []Role{RoleCopy, RoleAll} {
		_, err := New(t.Context(), cfg, Options{Role: role}, telemetry.Nop())
		if err == nil || !strings.Contains(err.Error(), localcloud.Bucket) || !strings.Contains(err.Error(), file) {
			t.Errorf("role %s: %v", role, err)
		}
	}
}

// One bucket that one route reads as a stranger and another with a signature is
// two sources: a stranger's route must never be served with the signature.
func TestRoutesThatReadDifferentlyNeverShareASignature(t *testing.T) {
	p := cosd.Principal{ID: "AKIDEXAMPLE", Key: "secret-of-the-test"}
	s := newSite(t, cosd.Config{Principals: []cosd.Principal{p}})
	s.Cloud.CreateBucket("private-media", strictaws.Bucket{})
	s.COS.Put("signed.jpg", []byte("picture"), cosd.Attributes{})
	s.COS.Put("private.jpg", []byte("nobody's business"), cosd.Attributes{})
	file := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"id": %q, "key": %q}`, p.ID, p.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	// A queue each, so that the stranger's refusals do not hold up the other.
	if err := s.AddQueue("private-sync"); err != nil {
		t.Fatal(err)
	}
	a := startApp(t, RoleCopy, s.YAML([]localcloud.Route{
		{Lines: []string{"  read: anonymous"}},
		{Bucket: "private-media", Queue: "private-sync", Lines: signed(file)},
	}))
	ask(t, s, "private-sync", "private-media", "signed.jpg")
	until(t, "the signed route copies", inS3(s, "private-media", "signed.jpg"))
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, "private.jpg")
	until(t, "the stranger is refused", func() bool { return s.COS.Counts().ByStatus[403] > 0 })

	for _, e := range s.COS.Entries() {
		if e.Key == "private.jpg" && e.Signed {
			t.Errorf("the anonymous route was read with a signature: %+v", e)
		}
		if e.Key == "signed.jpg" && !e.Signed {
			t.Errorf("the signed route was read without: %+v", e)
		}
	}
	if inS3(s, localcloud.Bucket, "private.jpg")() {
		t.Error("a private object has become visible")
	}
	host := strings.TrimPrefix(s.COS.URL(), "http://")
	want := []string{"destination overseas-media", "destination private-media", "source " + host, "source " + host + " signed"}
	if diff := cmp.Diff(want, guardNames(a)); diff != "" {
		t.Errorf("guards (-want +got):\n%s", diff)
	}
}

// Routes that read one bucket in the same way share its guard, or each would have
// to find out by itself that it is down.
func TestRoutesThatReadAlikeShareASource(t *testing.T) {
	s := newSite(t, cosd.Config{})
	a := newApp(t, RoleAll, s.YAML([]localcloud.Route{{}, {Bucket: "more-media"}, {Bucket: "observed-media", COS: "http://127.0.0.1:9", Lines: []string{"mode: observe"}}}))
	host := strings.TrimPrefix(s.COS.URL(), "http://")
	want := []string{"destination more-media", "destination overseas-media", "logs log-bucket", "queue objectferry-sync", "source " + host}
	if diff := cmp.Diff(want, guardNames(a)); diff != "" {
		t.Errorf("guards (-want +got):\n%s", diff)
	}
}

func guardNames(a *App) []string {
	var names []string
	for _, g := range a.Status().Guards {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names
}
