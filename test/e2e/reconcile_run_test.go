package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestReconcileThatIsKilledGoesOn kills the command with SIGKILL while it runs, three
// times, and compares what all runs together did with one that was not killed.
func TestReconcileThatIsKilledGoesOn(t *testing.T) {
	s := site(t, localcloud.Config{})
	config := ferry.Config(t, s.YAML([]localcloud.Route{{}}))
	var missing []string
	for i := range 6000 {
		key := fmt.Sprintf("img/%d/\xff %05d", i%7, i)
		s.COS.Put(key, []byte("x"), cosd.Attributes{})
		if i%3 > 0 {
			missing = append(missing, key)
		} else if err := s.Cloud.PutObject(localcloud.Bucket, key, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := reconcile(t, s, config, "--summary")
	if want.code != 0 || want.totals.Classes["missing"] != len(missing) || want.totals.Keys != 6000 {
		t.Fatalf("not disturbed: exit %d, %+v\n%s", want.code, want.totals, want.stderr)
	}

	state := filepath.Join(t.TempDir(), "state.json")
	args := []string{"--summary", "--request", "--yes", "--rate", "0", "--state", state}
	done := func() int {
		var f struct{ Totals totals }
		text, err := os.ReadFile(state)
		if err != nil || json.Unmarshal(text, &f) != nil {
			return 0
		}
		return f.Totals.Keys
	}
	for range 3 {
		before := done()
		hang := s.COS.Lie(cosd.When{Match: func(q cosd.Request) bool { return q.Key == "" }, After: 1}, cosd.Hang())
		cmd := exec.Command(ferry.Binary(t), append([]string{"reconcile", "--config", config, "--bucket", localcloud.Bucket, "--json"}, args...)...)
		cmd.Env = ferry.Environ(s, nil)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ferry.Until(t, time.Minute, "a page is done", func() bool { return done() > before })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		hang.Heal()
	}
	if n := done(); n == 0 || n >= 6000 {
		t.Fatalf("%d keys were done when it was killed", n)
	}
	got := reconcile(t, s, config, args...)
	if got.code != 0 || !strings.Contains(got.stderr, "going on") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	want.totals.Requested = len(missing)
	if diff := cmp.Diff(want.totals, got.totals); diff != "" {
		t.Errorf("totals (-not disturbed +killed):\n%s", diff)
	}
	slices.Sort(missing)
	asked := requested(t, s)
	t.Logf("%d requests for %d keys", len(asked), len(missing))
	if diff := cmp.Diff(missing, slices.Compact(asked)); diff != "" {
		t.Errorf("requested (-missing +requested):\n%s", diff)
	}
}

// TestReconcileNeedsNoMoreMemoryForMoreKeys compares a thousand keys, and a hundred
// thousand or, in full, a million, on servers that make up their listings.
func TestReconcileNeedsNoMoreMemoryForMoreKeys(t *testing.T) {
	const above = 24 << 20
	keys := 100_000
	if os.Getenv("OBJECTFERRY_LONG") != "" {
		keys = 1_000_000
	}
	few, _ := compareListings(t, 1000)
	many, took := compareListings(t, keys)
	t.Logf("1,000 keys: %d MiB; %d keys: %d MiB, %s", few>>20, keys, many>>20, took.Round(time.Millisecond))
	if many > few+above {
		t.Errorf("%d keys took %d bytes at most, 1,000 took %d", keys, many, few)
	}
}

// compareListings runs the command on two listings of n keys, of which every tenth
// is not overseas, and returns its peak memory in bytes.
func compareListings(t *testing.T, n int) (peak int64, took time.Duration) {
	t.Helper()
	cos := httptest.NewServer(madeUp{n: n, cos: true})
	defer cos.Close()
	s3 := httptest.NewServer(madeUp{n: n})
	defer s3.Close()
	s := site(t, localcloud.Config{})
	config := ferry.Config(t, s.YAML([]localcloud.Route{{COS: cos.URL}}))
	cmd := exec.Command(ferry.Binary(t), "reconcile", "--config", config, "--bucket", localcloud.Bucket, "--json", "--state", filepath.Join(t.TempDir(), "state"))
	cmd.Env = ferry.Environ(s, map[string]string{"AWS_ENDPOINT_URL_S3": s3.URL})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	took = time.Since(start)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if want := fmt.Sprintf(`{"keys":%d,"classes":{"missing":%d,"same":%d},"requested":0}`, n, n/10, n-n/10); lines[len(lines)-1] != want || len(lines) != n/10+1 {
		t.Fatalf("%d lines, the last %s, want %s", len(lines), lines[len(lines)-1], want)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no usage of the process")
	}
	return usage.Maxrss << 10, took
}

// madeUp is a bucket of n keys that exist in its listing only. As COS it has all,
// as S3 nine of ten.
type madeUp struct {
	n   int
	cos bool
}

func (m madeUp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-cos-request-id", "R")
	w.Header().Set("x-amz-request-id", "R")
	q := r.URL.Query()
	first := 0
	for _, name := range []string{"marker", "continuation-token", "start-after"} {
		if after := q.Get(name); after != "" {
			last, err := strconv.Atoi(strings.TrimPrefix(after, madeUpPrefix))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			first = last + 1
		}
	}
	var body strings.Builder
	listed, last := 0, ""
	for i := first; i < m.n && listed < 1000; i++ {
		if m.cos || i%10 > 0 {
			last = fmt.Sprintf("%s%08d", madeUpPrefix, i)
			fmt.Fprintf(&body, "<Contents><Key>%s</Key><LastModified>2026-09-04T08:03:42.000Z</LastModified><ETag>\"%032x\"</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>", last, i, i)
			listed++
			first = i
		}
	}
	more := first+1 < m.n && listed == 1000
	fmt.Fprintf(&body, "<Name>b</Name><EncodingType>url</EncodingType><KeyCount>%d</KeyCount><IsTruncated>%t</IsTruncated>", listed, more)
	if more {
		fmt.Fprintf(&body, "<NextMarker>%s</NextMarker><NextContinuationToken>%s</NextContinuationToken>", last, last)
	}
	fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", body.String())
}

const madeUpPrefix = "img/a-rather-usual-directory/and-one-below-it/"
