package faults

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestCopiedExactlyOrNotAtAll: what went wrong for users of programs that copy
// objects, as small inputs and the right results; the comment at a row names the
// public report. Two are shown elsewhere: that parts grow when an object has more
// than 10,000 of them (rclone/rclone#6436) in package copier, where it needs no
// 61 GB, and many more lies in lies_test.go.
func TestCopiedExactlyOrNotAtAll(t *testing.T) {
	sideBySide(t, []report{
		{"a gzip object stays packed", gzipStaysPacked},                                   // minio/minio-go#1561, rclone/rclone#2658, #8137
		{"a body that is cut short is never stored", cutBody},                             // aws/aws-sdk-go#780, #4510
		{"an object replaced between two reads is no mixture", replaced},                  // boto/s3transfer#86
		{"keys with empty parts are exact", exactKeys("2026/1//1d8c", "a//", "/img.jpg")}, // rclone/rclone#9383, #7419
		// generalui/s3p#53, Kodiqa-Solutions/VaultS3#9, apache/opendal#6260
		{"keys with signs are exact", exactKeys("a+b", "a b", "100%.txt", "x[1]", "Artik & ASTI $1.wav", "测试.jpg")},
		{"a refused domain is the source's fault", refusedDomain},   // coze-dev/coze-studio#2307, gobackup/gobackup#233
		{"one archived object stops nobody", oneArchived},           // aws/aws-cli#4039
		{"a part that fails is read again alone", onePart},          // aws-solutions-library-samples/data-transfer-hub#171
		{"failures are grouped by reason", grouped},                 // data-transfer-hub#127
		{"an object without a CRC is copied and noted", withoutCRC}, // TencentBlueKing/bk-repo#2106
		{"the content type is kept", contentType},                   // tencentyun/cos_migrate_tool_v5#12, minio/minio#5324
		{"what is there is not overwritten", present},               // minio/mc#2187
		{"a checksum is checked on every path", everyPath},          // juicedata/juicefs#4210
		{"a 403 in the log is no proof", forbidden},                 // aws/aws-cli#2041
		{"the size is what this attempt is told", sizeInMessage},    // data-transfer-hub-cli
		{"a write that fails keeps its message", failedWrite},       // amazon-s3-resumable-upload
	})
}

// inParts are the lines of a configuration in which objects of more than 5 MiB are
// copied in parts.
var inParts = []string{"copy: {part_size: 5MiB, memory: 128MiB}", "guard: {probe_min: 100ms, probe_max: 1s, timeout: 3s}"}

// missed has visitors miss keys, and waits until all that comes of it is settled.
func missed(t *testing.T, s *localcloud.Site, keys ...string) {
	t.Helper()
	for _, key := range keys {
		visit(t, s, key)
	}
	s.Cloud.FlushLogs()
	settled(t, s, localcloud.LogsQueue, time.Minute)
	settled(t, s, localcloud.SyncQueue, time.Minute)
}

// holds checks that this version of an object is in S3.
func holds(t *testing.T, s *localcloud.Site, key string, v version) {
	t.Helper()
	o, ok := s.Cloud.Object(localcloud.Bucket, key)
	if !ok {
		t.Errorf("%q is not there", key)
	} else if why := v.differs(o); why != "" {
		t.Errorf("%q has %s", key, why)
	}
}

func gzipStaysPacked(t *testing.T) {
	var packed bytes.Buffer
	for text := ""; packed.Len() != 56; text += string(rune('a' + len(text)*7%26)) {
		packed.Reset()
		z := gzip.NewWriter(&packed)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	v := version{packed.Bytes(), cosd.Attributes{ContentType: "text/css", ContentEncoding: "gzip"}}
	s := calmSite(t, localcloud.Config{})
	s.COS.Put("site.css", v.body, v.at)
	serve(t, s, "all")
	missed(t, s, "site.css")
	holds(t, s, "site.css", v)
}

func cutBody(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	right := map[string][]version{}
	for key, l := range map[string]cosd.Lie{"with a length": cosd.Cut(50), "without": cosd.CutUnframed(50)} {
		right[key] = []version{{bytes.Repeat([]byte("0123456789"), 10), cosd.Attributes{ContentType: "image/png"}}}
		s.COS.Put(key, right[key][0].body, right[key][0].at)
		s.COS.Lie(cosd.When{Key: key, Times: 4}, l)
	}
	w := watch(t, s, right)
	p := serve(t, s, "copy")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, slices.Collect(maps.Keys(right)))
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 2})
	w.saw(t)
	for key, n := range s.COS.Counts().ByKey {
		if right[key] != nil && n < 5 {
			t.Errorf("%q was read %d times, of which 4 were cut", key, n)
		}
	}
}

func replaced(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	both := versions("k", largeSize)
	s.COS.Put("k", both[0].body, both[0].at)
	s.COS.Lie(cosd.When{Key: "k", After: 1, Times: 1}, cosd.Become(both[1].body, both[1].at))
	w := watch(t, s, map[string][]version{"k": both})
	p := serve(t, s, "copy", inParts...)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{"k"})
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 1})
	w.saw(t)
	holds(t, s, "k", both[1])
}

func exactKeys(keys ...string) func(*testing.T) {
	return func(t *testing.T) {
		s := calmSite(t, localcloud.Config{})
		for _, key := range keys {
			s.COS.Put(key, body(key), cosd.Attributes{})
		}
		serve(t, s, "all")
		missed(t, s, keys...)
		copied(t, s, localcloud.Bucket, keys)
		if there := s.Cloud.Keys(localcloud.Bucket); len(there) != len(keys) {
			t.Errorf("in S3 stand %q", there)
		}
	}
}

func refusedDomain(t *testing.T) {
	s := newSite(t, localcloud.Config{})
	keys := put(s.COS, "img", size(500, 40))
	s.COS.Change(func(b *cosd.Behaviour) { b.PathStyleForbidden = true })
	p := serve(t, s, "copy")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
	ferry.Until(t, 20*time.Second, "the gate is closed with its reason", func() bool {
		_, page, err := p.Get(t.Context(), "/statusz")
		return err == nil && strings.Contains(page, `"state": "closed"`) && strings.Contains(page, "PathStyleDomainForbidden")
	})
	time.Sleep(outageFor)
	if metric(t, p, "objectferry_guard_probes_total", "source ", `result="refused"`) < 2 {
		t.Error("the metrics do not say that the source refuses us")
	}
	if left := s.Cloud.Depth(localcloud.SyncQueue).Total(); left != len(keys) {
		t.Errorf("%d of %d requests are left", left, len(keys))
	}
	s.COS.Change(func(b *cosd.Behaviour) { b.PathStyleForbidden = false })
	settled(t, s, localcloud.SyncQueue, time.Minute)
	copied(t, s, localcloud.Bucket, keys)
	noDeadLetters(t, s, localcloud.SyncQueue)
}

func oneArchived(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	keys := put(s.COS, "img", 9)
	s.COS.Put("archived", body("archived"), cosd.Attributes{StorageClass: "DEEP_ARCHIVE"})
	p := serve(t, s, "copy")
	hourOld := func(key string) {
		text, err := syncrequest.Encode(syncrequest.Request{Bucket: localcloud.Bucket, Key: key, Seen: time.Now().Add(-time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		sendTo(t, s, localcloud.SyncQueue, text)
	}
	for _, key := range append(keys, "archived") {
		hourOld(key)
	}
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 9, "archived": 1})
	copied(t, s, localcloud.Bucket, keys)
	reads := s.COS.Counts().ByKey["archived"]
	hourOld("archived")
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 9, "archived": 2})
	if n := s.COS.Counts().ByKey["archived"]; n != reads {
		t.Errorf("it was asked for again, though that end was remembered")
	}
	if metric(t, p, "objectferry_guard_state", "source ", `state="open"`) != 1 {
		t.Error("the source's gate is not open")
	}
	noDeadLetters(t, s, localcloud.SyncQueue)
}

// onePart: part 148 of 150 fails twice, on the way in and, of another object, on
// the way out; in the sample it is part 3 of 4.
func onePart(t *testing.T) {
	parts, sick := size(150, 4), size(148, 3)
	s := calmSite(t, localcloud.Config{AWS: strictaws.Config{DiscardOver: 1 << 20}})
	length := int64(parts)*firstPart - 100
	for i, key := range []string{"in", "out"} {
		s.COS.PutSynthetic(key, length, uint64(i), cosd.Attributes{})
	}
	sickRange := fmt.Sprintf("bytes=%d-%d", (sick-1)*firstPart, sick*firstPart-1)
	s.COS.Lie(cosd.When{Key: "in", Times: 2, Match: func(q cosd.Request) bool { return q.Range == sickRange }}, cosd.Reset())
	s.Cloud.Faults().Add(strictaws.Fault{Action: "UploadPart", Key: "out", After: sick - 1, Times: 2, Do: strictaws.Fail{Status: 500, Code: "InternalError"}})
	p := serve(t, s, "copy", "copy: {part_size: 5MiB, memory: 256MiB}", "guard: {probe_min: 100ms, probe_max: 1s, timeout: 20s}")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{"in", "out"})
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 2})
	for key, want := range map[string]int{"in": parts + 2, "out": parts} {
		if n := s.COS.Counts().ByKey[key]; n != want {
			t.Errorf("%q has %d parts and was read %d times, want %d", key, parts, n, want)
		}
		if o, _ := s.Cloud.Object(localcloud.Bucket, key); o.Size != length {
			t.Errorf("%q has %d bytes, want %d", key, o.Size, length)
		}
	}
	if n, want := s.Cloud.Count(strictaws.ServiceS3, "UploadPart", localcloud.Bucket).Calls, 2*parts+2; n != want {
		t.Errorf("%d parts were written, want %d", n, want)
	}
}

func grouped(t *testing.T) {
	const each = 4
	s := calmSite(t, localcloud.Config{})
	p := serve(t, s, "all", "retry: {min: 1ms, max: 2s, wait: 1s, receives: 3}") // 1 ms: an unrouted request is handed back 11 times
	for i := range each {
		sendTo(t, s, localcloud.LogsQueue, s3event.Format(s3event.Record{Bucket: "elsewhere", Key: fmt.Sprint("log", i), Size: -1}))
		sendTo(t, s, localcloud.SyncQueue, fmt.Sprint("junk ", i))
		sendTo(t, s, localcloud.SyncQueue, fmt.Sprintf(`{"v":2,"n":%d}`, i))
		for prefix, l := range map[string]cosd.Lie{"flipped/": cosd.Flip(5), "page/": cosd.Page(200)} {
			key := fmt.Sprint(prefix, i)
			s.COS.Put(key, body(key), cosd.Attributes{})
			s.COS.Lie(cosd.When{Key: key}, l)
			ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{key})
		}
	}
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"poison undecoded": each, "failed unrouted": each, "failed corrupt": each, "failed unavailable": each})
	settled(t, s, localcloud.LogsQueue, time.Minute)

	out, err := command(t, s, nil, "deadletter", "ls", "--json").Output()
	if err != nil {
		t.Fatalf("deadletter ls: %v", err)
	}
	want := map[string]string{ // a word of an example's body by reason
		"poison foreign": "elsewhere", "poison undecoded": "junk", "failed unrouted": `"v":2`, "failed corrupt": "flipped/", "failed unavailable": "page/"}
	total := 0
	for line := range bytes.Lines(out) {
		var g deadletter.Group
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		reason := g.End + " " + g.Detail
		if word, known := want[reason]; !known || g.Letters != each || !strings.Contains(g.Example.Body, word) {
			t.Errorf("%d letters are %q, with %q for an example", g.Letters, reason, g.Example.Body)
		}
		total += g.Letters
		delete(want, reason)
	}
	if total != 5*each || len(want) > 0 {
		t.Errorf("%d letters are grouped, want %d; reasons without a group: %v", total, 5*each, want)
	}
}

func withoutCRC(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	want := map[string]version{"small": versions("small", smallSize)[0], "large": versions("large", largeSize)[0]}
	for key, v := range want {
		v.at.NoCRC = true
		s.COS.Put(key, v.body, v.at)
	}
	p := serve(t, s, "copy", inParts...)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{"small", "large"})
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 2})
	for key, v := range want {
		holds(t, s, key, v)
	}
	if n := metric(t, p, "objectferry_unverified_total"); n != 2 {
		t.Errorf("%v objects are counted as not verified", n)
	}
}

func contentType(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	v := version{body("photo"), cosd.Attributes{ContentType: "image/jpeg"}}
	s.COS.Put("photo", v.body, v.at)
	serve(t, s, "all")
	missed(t, s, "photo")
	holds(t, s, "photo", v)
}

func present(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	both := versions("k", smallSize)
	s.COS.Put("k", both[0].body, both[0].at)
	theirs := version{both[1].body, cosd.Attributes{ContentType: "text/plain"}}
	if err := s.Cloud.PutObject(localcloud.Bucket, "k", theirs.body, map[string][]string{"Content-Type": {"text/plain"}}); err != nil {
		t.Fatal(err)
	}
	p := serve(t, s, "copy")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, []string{"k"})
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"present": 1})
	holds(t, s, "k", theirs)
}

func everyPath(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	var keys []string
	for key, lied := range map[string]struct{ size, offset int }{"small": {smallSize, 10}, "ranged": {largeSize, firstPart + 10}, "multipart": {largeSize, 10}} {
		v := versions(key, lied.size)[0]
		s.COS.Put(key, v.body, v.at)
		s.COS.Lie(cosd.When{Key: key}, cosd.Flip(int64(lied.offset)))
		keys = append(keys, key)
	}
	w := watch(t, s, nil)
	p := serve(t, s, "copy", inParts...)
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"failed corrupt": 3})
	w.saw(t)
	if n := s.Cloud.Uploads(localcloud.Bucket); n > 0 {
		t.Errorf("%d uploads are left open", n)
	}
}

// forbidden: the bucket does not tell strangers what is missing, so S3 logs 403.
func forbidden(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	s.Cloud.CreateBucket(localcloud.Bucket, strictaws.Bucket{PublicRead: true, LogBucket: localcloud.LogBucket, LogPrefix: localcloud.LogPrefix})
	theirs := body("theirs")
	if err := s.Cloud.PutObject(localcloud.Bucket, "there", theirs, nil); err != nil {
		t.Fatal(err)
	}
	s.Cloud.Deny("*", "s3:GetObject", localcloud.Bucket+"/there")
	for _, key := range []string{"there", "has"} {
		s.COS.Put(key, body(key), cosd.Attributes{})
	}
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{Lines: []string{"forbidden_is_miss: true"}}}, scaled...)})
	missed(t, s, "has", "has not", "there")
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 1, "absent": 1, "present": 1})
	copied(t, s, localcloud.Bucket, []string{"has"})
	if o, _ := s.Cloud.Object(localcloud.Bucket, "there"); !bytes.Equal(o.Body, theirs) {
		t.Error("what was there was overwritten")
	}
}

func sizeInMessage(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	keys := put(s.COS, "img", 1)
	p := serve(t, s, "copy")
	for _, key := range append(keys, "nowhere") {
		sendTo(t, s, localcloud.SyncQueue, fmt.Sprintf(`{"v":1,"bucket":%q,"key":%q,"seen":"2026-09-04T08:03:42Z","size":0}`, localcloud.Bucket, key))
	}
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 1, "absent": 1})
	copied(t, s, localcloud.Bucket, keys)
	if there := s.Cloud.Keys(localcloud.Bucket); !slices.Equal(there, keys) {
		t.Errorf("in S3 stand %q", there)
	}
}

func failedWrite(t *testing.T) {
	s := calmSite(t, localcloud.Config{})
	keys := put(s.COS, "img", 1)
	fault := s.Cloud.Faults().Add(strictaws.Fault{Action: "PutObject", Target: localcloud.Bucket, Do: strictaws.Fail{Status: 500, Code: "InternalError"}})
	p := serve(t, s, "copy", "retry: {min: 200ms, max: 2s, wait: 1s, receives: 8}")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, keys)
	ferry.Until(t, 20*time.Second, "it was received twice", func() bool { return s.Cloud.MaxReceives(localcloud.SyncQueue) >= 2 })
	if left := s.Cloud.Depth(localcloud.SyncQueue).Total(); left != 1 || fault.Hits() == 0 {
		t.Errorf("after %d writes that failed, %d messages are left", fault.Hits(), left)
	}
	fault.Remove()
	ended(t, p, localcloud.SyncQueue, nil, map[string]int{"copied": 1})
	copied(t, s, localcloud.Bucket, keys)
	noDeadLetters(t, s, localcloud.SyncQueue)
}
