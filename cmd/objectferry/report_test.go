package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/report"
)

// runReport runs the command as the command line does.
func runReport(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	root := newRootCommand()
	root.SetIn(stdin)
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs(append([]string{"report"}, args...))
	code = exitCode(root.ExecuteContext(ctx), &errOut)
	return code, out.String(), errOut.String()
}

// reported is what --json prints.
func reported(t *testing.T, out string) report.Result {
	t.Helper()
	var r report.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportReadsFilesPlainAndGzip(t *testing.T) {
	code, out, errOut := runReport(t.Context(), strings.NewReader(missRow), "--json", logFile(t, missRow+hitRow), logFile(t, packed(t, missRow)), "-")
	got := reported(t, out)
	if code != exitDone || errOut != "" || got.Rows != 4 || got.Buckets[0].Missed != 3 || got.Buckets[0].Keys.Value != 1 || got.Buckets[1].S3 != 1 {
		t.Errorf("exit %d, %s, %+v", code, errOut, got)
	}
	code, out, _ = runReport(t.Context(), strings.NewReader(missRow+hitRow), "--per-day")
	for _, want := range []string{"overseas-media\n", "1 miss NoSuchKey\n", "1, of which S3 answered 0.0 %\n", "1 distinct keys, missed 1 times\n", "unknown; --config FILE --sizes N", "2026-09-04"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
}

func TestReportCountsWhatParseCounts(t *testing.T) {
	var log strings.Builder
	for _, c := range parseCases(t) {
		log.WriteString(c.Line + "\n")
	}
	name := logFile(t, log.String())
	_, out, _ := runParse(t.Context(), nil, "--summary", name)
	var want counts
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatal(err)
	}
	_, out, _ = runReport(t.Context(), nil, "--json", name)
	got, r := counts{}, reported(t, out)
	for _, b := range r.Buckets {
		for _, c := range b.Counts {
			for range c.Rows {
				got.add(c.Verdict)
			}
		}
	}
	if got != want || r.Rows != want.Rows {
		t.Errorf("report counts %+v, parse %+v", got, want)
	}
}

func TestReportOfLogsThatCannotBeReadIsPartlyDone(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.log")
	if code, out, errOut := runReport(t.Context(), nil, "--json", missing, logFile(t, missRow)); code != exitPartly || reported(t, out).Rows != 1 || !strings.Contains(errOut, missing) {
		t.Errorf("exit %d, %s, %s", code, errOut, out)
	}
	if code, out, errOut := runReport(t.Context(), nil, missing); code != exitFailed || out != "" || !strings.Contains(errOut, missing) {
		t.Errorf("nothing could be read: exit %d, %s, %s", code, errOut, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, _ := runReport(ctx, strings.NewReader(missRow)); code != exitFailed || out != "" {
		t.Errorf("interrupted: exit %d, printed %s", code, out)
	}
}

func TestReportMistakesAreUsageErrors(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("egress: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"need --config":             {"--sizes", "10"},
		"--from-bucket and --sizes": {"--from-bucket"},
		"--days -1":                 {"--days", "-1"},
		"--since \"yesterday\"":     {"--since", "yesterday"},
		"keys 1":                    {"--keys", "1"},
		"delay -1h0m0s":             {"--delay", "-1h"},
		"--prices: open":            {"--prices", "missing.yaml"},
		"--prices: read prices":     {"--prices", prices},
		"missing.yaml":              {"--config", "missing.yaml"},
	} {
		code, out, errOut := runReport(t.Context(), strings.NewReader(missRow), args...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%q: exit %d, %s", args, code, errOut)
		}
	}
}

// A site with logs that were delivered, and a configuration for it.
func reportSite(t *testing.T) (site *localcloud.Site, configFile string) {
	t.Helper()
	site, err := localcloud.Start(localcloud.Config{AWS: strictaws.Config{LogInterval: -1}, COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	for name, value := range site.Environ() {
		t.Setenv(name, value)
	}
	configFile = filepath.Join(t.TempDir(), "objectferry.yaml")
	yaml := site.YAML([]localcloud.Route{{Lines: []string{`exclude: ["tmp/**"]`, "max_age: 87600h"}}}, "guard: {probe_min: 100ms, timeout: 2s}")
	if err := os.WriteFile(configFile, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return site, configFile
}

// missOf is a row of a miss, on the n-th day of September 2026.
func missOf(key string, n int) string {
	return fmt.Sprintf(`o overseas-media [%02d/Sep/2026:08:03:42 +0000] 203.0.113.9 - ID REST.GET.OBJECT %s "GET /%[2]s HTTP/1.1" 404 NoSuchKey 287 - 9 - "-" "curl/8.4.0" -`+"\n", n, key)
}

func TestReportFromTheLogBucketWithSizesOfTheSource(t *testing.T) {
	site, config := reportSite(t)
	for i, body := range []string{missOf("a", 1) + missOf("b", 1) + missOf("c", 1), packed(t, missOf("a", 2)+missOf("tmp/x", 2)), ""} {
		if err := site.Cloud.PutObject(localcloud.LogBucket, fmt.Sprintf("%s2026-09-0%d", localcloud.LogPrefix, i+1), []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := site.Cloud.PutObject(localcloud.LogBucket, "elsewhere", []byte(missOf("d", 1)), nil); err != nil {
		t.Fatal(err)
	}
	site.COS.Put("a", make([]byte, 1000), cosd.Attributes{})
	site.COS.Put("b", make([]byte, 500), cosd.Attributes{ACL: cosd.Private})
	before := site.Cloud.Count("", "", "")
	code, out, errOut := runReport(t.Context(), nil, "--config", config, "--from-bucket", "--sizes", "100", "--json")
	b := reported(t, out).Buckets[0]
	if code != exitDone || errOut != "" || b.Rows != 5 || b.Keys.Value != 3 || b.Missed != 4 || b.Saved.Value != 1 {
		t.Fatalf("exit %d, %s, %s", code, errOut, out)
	}
	if s := b.Sizes; s.Asked != 3 || s.There != 1 || s.Not["denied"] != 1 || s.Not["absent"] != 1 || s.Bytes != (report.Estimate{Value: 1000}) {
		t.Errorf("sizes: %+v", s)
	}
	reads := 0
	for _, action := range []string{"ListObjectsV2", "GetObject"} {
		reads += site.Cloud.Count(strictaws.ServiceS3, action, "").Calls
	}
	if after := site.Cloud.Count("", "", ""); after.Calls-before.Calls != reads {
		t.Errorf("%d calls, %d of them reads", after.Calls-before.Calls, reads)
	}
	if n := site.COS.Counts().Bytes; n > 4<<10 { // refusals have bodies
		t.Errorf("%d bytes were read at the source", n)
	}

	// A source that is down leaves sizes unknown, and the rest as it is.
	site.COS.Lie(cosd.When{}, cosd.Reset())
	code, out, errOut = runReport(t.Context(), nil, "--config", config, "--from-bucket", "--sizes", "100", "--json")
	if b := reported(t, out).Buckets[0]; code != exitPartly || b.Sizes != nil || b.Keys.Value != 3 || !strings.Contains(errOut, `ask the source of bucket "overseas-media"`) {
		t.Errorf("exit %d, %s, %s", code, errOut, out)
	}

	// These logs were delivered long after their rows: the service would not act on
	// them any more.
	yaml, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "short.yaml")
	if err := os.WriteFile(short, bytes.Replace(yaml, []byte("max_age: 87600h"), []byte("max_age: 1h"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ = runReport(t.Context(), nil, "--config", short, "--from-bucket", "--json")
	if b := reported(t, out).Buckets[0]; code != exitDone || b.Missed != 0 || b.Miss != 5 || !strings.Contains(out, `"why":"stale","rows":4`) {
		t.Errorf("late logs: exit %d, %s", code, out)
	}

	// Nothing is as young as that; and a bucket that refuses is told.
	code, out, _ = runReport(t.Context(), nil, "--config", config, "--from-bucket", "--since", "2999-01-01T00:00:00Z", "--json")
	if got := reported(t, out); code != exitDone || got.Rows != 0 {
		t.Errorf("since the future: exit %d, %s", code, out)
	}
	site.Cloud.Deny("*", "s3:GetObject", localcloud.LogBucket+"/*")
	if code, _, errOut = runReport(t.Context(), nil, "--config", config, "--from-bucket"); code != exitFailed || !strings.Contains(errOut, "AccessDenied") {
		t.Errorf("refused: exit %d, %s", code, errOut)
	}
}

func TestTheExampleOfPricesIsRead(t *testing.T) {
	f, err := os.Open("../../docs/prices.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := report.ReadPrices(f)
	for _, price := range []*float64{p.SourceEgressGB, p.SourceRequests, p.S3Writes, p.S3Reads, p.S3StorageGBMonth, p.QueueRequests} {
		if err != nil || price == nil || *price != 0 {
			t.Fatalf("%+v, %v", p, err)
		}
	}
}
