package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	missRow = `o overseas-media [04/Sep/2026:08:03:42 +0000] 203.0.113.9 - ID REST.GET.OBJECT a%2520b "GET /a%20b HTTP/1.1" 404 NoSuchKey 287 - 9 - "-" "curl/8.4.0" -` + "\n"
	hitRow  = `o other-bucket [04/Sep/2026:08:03:42 +0000] 203.0.113.9 - ID REST.GET.OBJECT c "GET /c HTTP/1.1" 200 - 7 7 9 1 "-" "curl/8.4.0" -` + "\n"
	badKey  = `o overseas-media [04/Sep/2026:08:03:42 +0000] 203.0.113.9 - ID REST.GET.OBJECT %zz "GET /%zz HTTP/1.1" 404 NoSuchKey 287 - 9 - "-" "curl/8.4.0" -` + "\n"
)

// runParse runs the command as the command line does.
func runParse(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	root := newRootCommand()
	root.SetIn(stdin)
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs(append([]string{"parse"}, args...))
	code = exitCode(root.ExecuteContext(ctx), &errOut)
	return code, out.String(), errOut.String()
}

// printedRow is what tests look at of a printed row.
type printedRow struct {
	File       string `json:"file"`
	LineNumber int    `json:"line_number"`
	Verdict    string `json:"verdict"`
	Why        string `json:"why"`
	Bucket     string `json:"bucket"`
	Key        string `json:"key"`
}

func printedRows(t *testing.T, out string) []printedRow {
	t.Helper()
	var rows []printedRow
	for line := range strings.Lines(out) {
		var row printedRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, row)
	}
	return rows
}

func logFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestParsePrintsTheMisses(t *testing.T) {
	log := "\n" + hitRow + missRow + "nonsense\n" + badKey
	for _, args := range [][]string{nil, {"-"}} {
		code, out, errOut := runParse(t.Context(), strings.NewReader(log), args...)
		want := []printedRow{{"-", 3, "miss", "NoSuchKey", "overseas-media", "a b"}}
		if diff := cmp.Diff(want, printedRows(t, out)); diff != "" || code != exitDone || errOut != "" {
			t.Errorf("exit %d, %s\n%s", code, errOut, diff)
		}
	}
}

func TestParseAllPrintsEveryRowButBlankOnes(t *testing.T) {
	name := logFile(t, "\n"+hitRow+"\r\n"+missRow+"nonsense\n"+badKey)
	code, out, _ := runParse(t.Context(), nil, "--all", name)
	want := []printedRow{
		{name, 2, "skip", "hit", "other-bucket", "c"},
		{name, 4, "miss", "NoSuchKey", "overseas-media", "a b"},
		{name, 5, "unparsed", "not a row", "", ""},
		{name, 6, "unparsed", "bad key", "overseas-media", "%zz"},
	}
	if diff := cmp.Diff(want, printedRows(t, out)); diff != "" || code != exitDone {
		t.Errorf("exit %d\n%s", code, diff)
	}
}

func TestParseNamesFieldsAsTheCasesDo(t *testing.T) {
	_, out, _ := runParse(t.Context(), strings.NewReader(missRow))
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range parseCases(t) {
		for name := range c.Want {
			if _, ok := got[name]; !ok && name != "blank" && name != "parse_error" {
				t.Errorf("no field %s", name)
			}
		}
	}
}

func TestParseSummaryEqualsWhatAllCounts(t *testing.T) {
	var log strings.Builder
	for _, c := range parseCases(t) {
		log.WriteString(c.Line + "\n")
	}
	two := []string{logFile(t, log.String()), logFile(t, hitRow+missRow)}
	_, out, _ := runParse(t.Context(), nil, append([]string{"--all"}, two...)...)
	var want counts
	buckets := map[string]*counts{}
	for _, row := range printedRows(t, out) {
		into := []*counts{&want}
		if row.Bucket != "" {
			if buckets[row.Bucket] == nil {
				buckets[row.Bucket] = &counts{}
			}
			into = append(into, buckets[row.Bucket])
		}
		for _, c := range into {
			c.Rows++
			*map[string]*int64{"miss": &c.Miss, "maybe": &c.Maybe, "skip": &c.Skip, "unparsed": &c.Unparsed}[row.Verdict]++
		}
	}
	if want.Rows != 71 || want.Miss == 0 || want.Maybe == 0 || want.Skip == 0 || want.Unparsed == 0 || len(buckets) < 3 {
		t.Fatalf("--all printed %+v", want)
	}
	code, out, _ := runParse(t.Context(), nil, append([]string{"--summary"}, two...)...)
	var got struct {
		counts
		Buckets map[string]*counts
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.counts); diff != "" || code != exitDone || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d\n%s", code, diff)
	}
	if diff := cmp.Diff(buckets, got.Buckets); diff != "" {
		t.Error(diff)
	}
}

func TestParseOfNothingHasASummary(t *testing.T) {
	code, out, _ := runParse(t.Context(), strings.NewReader(""), "--summary")
	if want := `{"rows":0,"miss":0,"maybe":0,"skip":0,"unparsed":0,"buckets":{}}` + "\n"; out != want || code != exitDone {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestParseNamesAnUnreadableFileAndReadsTheOthers(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.log")
	good, directory := logFile(t, missRow), t.TempDir()
	for _, args := range [][]string{nil, {"--summary"}} {
		code, out, errOut := runParse(t.Context(), nil, append(args, missing, directory, good)...)
		if code != exitFailed || !strings.Contains(errOut, missing) || !strings.Contains(errOut, directory) || strings.Contains(errOut, good) {
			t.Errorf("exit %d, %s", code, errOut)
		}
		if !strings.Contains(out, `"miss"`) {
			t.Errorf("printed %q", out)
		}
	}
}

func TestParseOfABrokenGzipPrintsWhatItReadAndSaysSo(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, missRow+missRow); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := logFile(t, b.String()[:b.Len()-4])
	code, out, errOut := runParse(t.Context(), nil, name)
	if rows := printedRows(t, out); len(rows) != 2 || code != exitFailed || !strings.Contains(errOut, "broken gzip") || !strings.Contains(errOut, name) {
		t.Errorf("exit %d, %d rows, %s", code, len(rows), errOut)
	}
}

func TestParseFlagsThatExcludeEachOtherAreAUsageError(t *testing.T) {
	if code, out, errOut := runParse(t.Context(), strings.NewReader(missRow), "--all", "--summary"); code != exitUsage || out != "" || !strings.Contains(errOut, "--summary") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

func TestParseIsQuietWhenItsReaderLeaves(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	root := newRootCommand()
	root.SetIn(strings.NewReader(strings.Repeat(missRow, 1000)))
	root.SetOut(w)
	root.SetArgs([]string{"parse"})
	if _, err := w.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), syscall.EPIPE.Error()) {
		t.Fatalf("the pipe is not broken: %v", err)
	}
	var errOut bytes.Buffer
	if code := exitCode(root.ExecuteContext(t.Context()), &errOut); code != exitDone || errOut.Len() != 0 {
		t.Errorf("exit %d, %s", code, errOut.String())
	}
}

// A summary of half a log would pass for one of the whole.
func TestParseThatIsInterruptedPrintsNoSummary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, errOut := runParse(ctx, strings.NewReader(missRow), "--summary", "-", logFile(t, missRow))
	if code != exitFailed || out != "" || !strings.Contains(errOut, "interrupted") {
		t.Errorf("exit %d, %s, printed %s", code, errOut, out)
	}
}

type parseCase struct {
	Line string
	Want map[string]any
}

func parseCases(t *testing.T) []parseCase {
	t.Helper()
	text, err := os.ReadFile("../../pkg/accesslog/testdata/loglines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []parseCase
	for line := range bytes.Lines(text) {
		var c parseCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}
