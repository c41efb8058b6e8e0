package explain

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
)

// world is a cloud and an Explainer on it.
type world struct {
	*localcloud.Site
	*Explainer
}

func newWorld(t *testing.T, public bool, lines ...string) *world {
	t.Helper()
	site, err := localcloud.Start(localcloud.Config{
		AWS: strictaws.Config{LogInterval: -1}, Bucket: strictaws.Bucket{Versioned: true},
		COS: cosd.Config{Principals: []cosd.Principal{{ID: "AKIDlocal", Key: "key"}}, Behaviour: cosd.Behaviour{PublicRead: public}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	for name, value := range site.Environ() {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "ferry's.yaml")
	yaml := site.YAML([]localcloud.Route{{Lines: lines}}, "copy: {max_size: 1MiB, part_size: 5MiB, memory: 16MiB}", "guard: {probe_min: 100ms, timeout: 1s}")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := New(cfg, file, app.Lane)
	if err != nil {
		t.Fatal(err)
	}
	return &world{site, x}
}

func (w *world) explain(t *testing.T, key string) *Explanation {
	t.Helper()
	e, err := w.Explain(t.Context(), localcloud.Bucket, key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// seen is what a row of a table looks at.
type seen struct {
	Destination, Source string
	Outcome             string
	Code                string
}

func look(e *Explanation) seen {
	return seen{e.Destination.State, e.Source.State, strings.TrimSpace(string(e.Request.Then) + ": " + string(e.Request.End) + " " + string(e.Request.Detail)), e.Destination.Code + e.Source.Code}
}

// strange is a key of strange bytes: quotes, a line feed, an escape sequence, what
// is not UTF-8, and what a path or a shell would take for something else.
const strange = "img/a'b\"c\n\x1b[31m $(id) `id` \\ \xff\xfe//../%2F+测.jpg"

func TestEveryAnswerOfSourceAndDestinationIsExplained(t *testing.T) {
	body := []byte("picture")
	put := func(w *world, key string) { w.COS.Put(key, body, cosd.Attributes{}) }
	fault := func(w *world, f strictaws.Fault) { f.Service = strictaws.ServiceS3; w.Cloud.Faults().Add(f) }
	overseas := func(t *testing.T, w *world, key string, h http.Header) {
		t.Helper()
		if err := w.Cloud.PutObject(localcloud.Bucket, key, body, h); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		set  func(t *testing.T, w *world, key string)
		want seen
	}{
		"to be copied": {func(_ *testing.T, w *world, key string) { put(w, key) },
			seen{"missing", "present", "settled: copied", ""}},
		"empty, to be copied": {func(_ *testing.T, w *world, key string) { w.COS.Put(key, nil, cosd.Attributes{}) },
			seen{"missing", "present", "settled: copied", ""}},
		"absent": {func(*testing.T, *world, string) {},
			seen{"missing", "absent", "settled: absent", "NoSuchKey"}},
		"present, the ferry's": {func(t *testing.T, w *world, key string) {
			put(w, key)
			overseas(t, w, key, http.Header{"X-Amz-Meta-Ferry-Copy": {"id"}})
		}, seen{"present", "present", "settled: present", ""}},
		"present, somebody else's, and nowhere else": {func(t *testing.T, w *world, key string) { overseas(t, w, key, nil) },
			seen{"present", "absent", "settled: present", "NoSuchKey"}},
		"deleted overseas": {func(t *testing.T, w *world, key string) {
			put(w, key)
			overseas(t, w, key, nil)
			if err := w.Cloud.DeleteObject(localcloud.Bucket, key); err != nil {
				t.Fatal(err)
			}
		}, seen{"deleted", "present", "settled: filtered deleted", ""}},
		"this key is denied overseas": {func(_ *testing.T, w *world, key string) {
			put(w, key)
			w.Cloud.Deny("*", "s3:GetObject", localcloud.Bucket+"/"+strings.ReplaceAll(key, "*", "?"))
		}, seen{"denied", "present", "settled: denied", "AccessDenied"}},
		"all is denied overseas": {func(_ *testing.T, w *world, key string) {
			put(w, key)
			w.Cloud.Deny("*", "s3:*", "*")
		}, seen{"denied", "present", "waits:", "AccessDenied"}},
		"the destination fails": {func(_ *testing.T, w *world, key string) {
			put(w, key)
			fault(w, strictaws.Fault{Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
		}, seen{"unavailable", "present", "waits:", "ServiceUnavailable"}},
		"the destination fails once": {func(_ *testing.T, w *world, key string) {
			put(w, key)
			fault(w, strictaws.Fault{Times: 1, Do: strictaws.Fail{Status: 500, Code: "InternalError"}})
		}, seen{"missing", "present", "settled: copied", ""}},
		"the destination fails once, and the source has nothing": {func(_ *testing.T, w *world, _ string) {
			fault(w, strictaws.Fault{Times: 1, Do: strictaws.Fail{Status: 500, Code: "InternalError"}})
		}, seen{"missing", "absent", "settled: absent", "NoSuchKey"}},
		"private at the source": {func(_ *testing.T, w *world, key string) { w.COS.Put(key, body, cosd.Attributes{ACL: cosd.Private}) },
			seen{"missing", "denied", "settled: denied", "AccessDenied"}},
		"archived": {func(_ *testing.T, w *world, key string) {
			w.COS.Put(key, body, cosd.Attributes{StorageClass: "ARCHIVE"})
		},
			seen{"missing", "archived", "settled: archived", "InvalidObjectState"}},
		"too large": {func(_ *testing.T, w *world, key string) { w.COS.Put(key, make([]byte, 1<<20+1), cosd.Attributes{}) },
			seen{"missing", "present", "settled: unfit", ""}},
		"too much metadata": {func(_ *testing.T, w *world, key string) {
			w.COS.Put(key, body, cosd.Attributes{Meta: map[string]string{"a": strings.Repeat("x", 3000)}})
		}, seen{"missing", "present", "settled: unfit", ""}},
		"the source throttles": {func(_ *testing.T, w *world, _ string) { w.COS.Lie(cosd.When{}, cosd.Refuse(503, "SlowDown")) },
			seen{"missing", "throttled", "waits:", "SlowDown"}},
		"the source is down": {func(_ *testing.T, w *world, _ string) { w.COS.Lie(cosd.When{}, cosd.Reset()) },
			seen{"missing", "unavailable", "waits:", ""}},
		"the source hangs": {func(_ *testing.T, w *world, _ string) { w.COS.Lie(cosd.When{}, cosd.Hang()) },
			seen{"missing", "unavailable", "waits:", ""}},
		"something else answers for the source": {func(_ *testing.T, w *world, _ string) { w.COS.Lie(cosd.When{}, cosd.Page(404)) },
			seen{"missing", "unavailable", "waits:", "http 404"}},
		"this key fails at a source that lives": {func(_ *testing.T, w *world, key string) {
			w.COS.Lie(cosd.When{Key: key}, cosd.Refuse(500, "InternalError"))
		}, seen{"missing", "unavailable", "tried again: failed unavailable", "InternalError"}},
		"ranges are ignored": {func(_ *testing.T, w *world, key string) { put(w, key); w.COS.Lie(cosd.When{}, cosd.IgnoreRange()) },
			seen{"missing", "corrupt", "tried again: failed corrupt", "http 200"}},
		"the source refuses us": {func(_ *testing.T, w *world, _ string) {
			w.COS.Change(func(b *cosd.Behaviour) { b.NoSuchBucket = true })
		}, seen{"missing", "refused", "waits:", "NoSuchBucket"}},
		"the source refuses every read": {func(_ *testing.T, w *world, key string) {
			w.COS.Put(key, body, cosd.Attributes{})
			w.COS.Change(func(b *cosd.Behaviour) { b.PublicRead = false })
		}, seen{"missing", "denied", "waits:", "AccessDenied"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			tt.set(t, w, strange)
			e := w.explain(t, strange)
			if diff := cmp.Diff(tt.want, look(e)); diff != "" {
				t.Errorf("(-want +got)\n%s%+v", diff, e.Request)
			}
			if w.changed() {
				t.Error("something was written, sent or received")
			}
		})
	}
}

// changed reports whether the cloud saw anything but reads of its stores.
func (w *world) changed() bool {
	reads := 0
	for _, action := range []string{"HeadObject", "GetObject", "ListObjectsV2"} {
		reads += w.Cloud.Count(strictaws.ServiceS3, action, "").Calls
	}
	return w.Cloud.Count("", "", "").Calls != reads || w.COS.Counts().Bytes > 4<<10
}

func TestExplainReadsOneByteOfTheSource(t *testing.T) {
	w := newWorld(t, true)
	w.COS.Put("a", make([]byte, 1<<20), cosd.Attributes{})
	e := w.explain(t, "a")
	if e.Request.End != object.EndCopied || *e.Source.Size != 1<<20 || w.COS.Counts().Bytes > 1 {
		t.Errorf("%+v, %d bytes were read", e.Request, w.COS.Counts().Bytes)
	}
	if w.changed() {
		t.Error("something was written, sent or received")
	}
}

func TestAnswersTellWhatIsKnownOfTheObject(t *testing.T) {
	w := newWorld(t, true)
	w.COS.Put("a", []byte("picture"), cosd.Attributes{StorageClass: "STANDARD_IA"})
	crc, _ := w.COS.CRC64("a")
	if err := w.Cloud.PutObject(localcloud.Bucket, "a", []byte("picture"), http.Header{"X-Amz-Meta-Ferry-Copy": {"id"}, "X-Amz-Meta-Ferry-Etag": {`"older"`}}); err != nil {
		t.Fatal(err)
	}
	e := w.explain(t, "a")
	from, to := e.Source, e.Destination
	if *from.Size != 7 || from.ETag == "" || from.StorageClass != "STANDARD_IA" || from.CRC64 == "" || crc == 0 || from.LastModified == nil {
		t.Errorf("source: %+v", from)
	}
	if *to.Size != 7 || to.ETag == "" || to.StorageClass != "STANDARD" || to.CopyID != "id" || to.LastModified == nil {
		t.Errorf("destination: %+v", to)
	}
	if !strings.Contains(e.Steps[0].Text, "another version") {
		t.Errorf("steps: %+v", e.Steps)
	}
}

// What the route does not carry is not read for the asking: the destination may be
// looked at, the source not.
func TestFilteredKeysAreNotReadAtTheSource(t *testing.T) {
	credentials := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(credentials, []byte(`{"id":"AKIDlocal","key":"key"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, false, `include: ["img/**"]`, `exclude: ["img/tmp/**"]`)
	w.routes.Routes()[0].Source.Read, w.routes.Routes()[0].Source.CredentialsFile = config.ReadSigned, credentials
	for key, want := range map[string]struct {
		route.Decision
		seen
	}{
		"img/a":          {route.Decision{Carries: true, By: route.ByInclude, Glob: "img/**"}, seen{"missing", "absent", "settled: absent", "NoSuchKey"}},
		"img/tmp/a":      {route.Decision{By: route.ByExclude, Glob: "img/tmp/**"}, seen{"missing", "not asked", "settled: filtered", ""}},
		"private":        {route.Decision{By: route.ByNoMatch}, seen{"missing", "not asked", "settled: filtered", ""}},
		"img/../private": {route.Decision{By: route.ByDots}, seen{"missing", "not asked", "settled: filtered", ""}},
	} {
		e := w.explain(t, key)
		if e.Route.Decision != want.Decision || look(e) != want.seen {
			t.Errorf("%s: %+v, %+v", key, e.Route, look(e))
		}
		if n := w.COS.Counts().ByKey[key]; !want.Carries && n > 0 {
			t.Errorf("%s was read %d times", key, n)
		}
	}
}

func TestObservedAndUnroutedKeysAreExplained(t *testing.T) {
	w := newWorld(t, true, "mode: observe")
	w.COS.Put("a", []byte("picture"), cosd.Attributes{})
	if got, want := look(w.explain(t, "a")), (seen{"missing", "present", "settled: filtered observed", ""}); got != want {
		t.Errorf("observed: %+v", got)
	}
	e, err := w.Explain(t.Context(), "other-bucket", "a")
	if err != nil || e.Route != nil || e.Destination != nil || e.Source != nil || e.Request.Then != Again || e.Request.Detail != object.DetailUnrouted {
		t.Errorf("without a route: %+v, %v", e, err)
	}
}

func TestKeysTooLongAreExplainedWithoutAsking(t *testing.T) {
	w := newWorld(t, true)
	e := w.explain(t, strings.Repeat("x", 1025))
	if e.Request.End != object.EndUnfit || e.Destination.State != string(object.Unfit) || w.Cloud.Count("", "", "").Calls != 0 {
		t.Errorf("%+v %+v", e.Request, e.Destination)
	}
}
