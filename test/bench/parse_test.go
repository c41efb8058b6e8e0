//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	logSize  = 310 << 20 // bytes
	runs     = 7         // pairs of ours and grep's
	minRatio = 0.4       // what the project promises; far better is the aim
)

type rowCounts struct {
	Rows, Miss, Maybe, Skip, Unparsed int64
}

// TestParseSummaryKeepsUpWithGrep compares `parse --summary` with grep looking
// for the text of a miss, both on one core, in turn, with the log in the page
// cache. What counts is the processor time: the wall clock also sees the
// neighbours.
func TestParseSummaryKeepsUpWithGrep(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "objectferry")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/objectferry").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	log := filepath.Join(dir, "access.log")
	want := writeLog(t, log)
	t.Logf("log: %d bytes, %+v", logSize, want)

	var summary rowCounts
	if err := json.Unmarshal(output(t, binary, "parse", "--summary", log), &summary); err != nil {
		t.Fatal(err)
	}
	if summary != want {
		t.Errorf("--summary counts %+v, the log holds %+v", summary, want)
	}
	if all := countAll(t, binary, log); all != want {
		t.Errorf("--all counts %+v, the log holds %+v", all, want)
	}

	ours := []string{binary, "parse", "--summary", log}
	grep := []string{"grep", "-c", " 404 NoSuchKey ", log}
	timed(t, grep) // warm
	timed(t, ours)
	var cpu, wall, speed []float64
	for range runs {
		a, b := timed(t, ours), timed(t, grep)
		cpu = append(cpu, b.cpu.Seconds()/a.cpu.Seconds())
		wall = append(wall, b.wall.Seconds()/a.wall.Seconds())
		speed = append(speed, logSize/a.cpu.Seconds()/1e9)
	}
	t.Logf("parse --summary: %.2f GB/s; %.2f times grep -c by processor time, %.2f by the clock (medians of %d pairs: %.2f)",
		median(speed), median(cpu), median(wall), runs, cpu)
	if median(cpu) < minRatio {
		t.Errorf("%.2f times grep -c, want %.2f", median(cpu), minRatio)
	}
}

func output(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// countAll counts the verdicts that --all prints.
func countAll(t *testing.T, binary, log string) rowCounts {
	t.Helper()
	cmd := exec.Command(binary, "parse", "--all", log)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got rowCounts
	lines := bufio.NewReaderSize(pipe, 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Rows++
		_, after, _ := bytes.Cut(line, []byte(`"verdict":"`)) // stands before all that a client could have written
		switch verdict, _, _ := bytes.Cut(after, []byte(`"`)); string(verdict) {
		case "miss":
			got.Miss++
		case "maybe":
			got.Maybe++
		case "skip":
			got.Skip++
		case "unparsed":
			got.Unparsed++
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return got
}

type usage struct{ cpu, wall time.Duration }

// timed runs a command on one core.
func timed(t *testing.T, args []string) usage {
	t.Helper()
	if taskset, err := exec.LookPath("taskset"); err == nil {
		args = append([]string{taskset, "-c", "0"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GOMAXPROCS=1")
	start := time.Now()
	if _, err := cmd.Output(); err != nil { // grep stops at the first match when it may write to /dev/null
		t.Fatalf("%v: %v", args, err)
	}
	return usage{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start)}
}

func median(x []float64) float64 {
	return slices.Sorted(slices.Values(x))[len(x)/2]
}

// writeLog writes a log with 5 % misses and 1 % odd rows, the same each time, and
// returns what it holds.
func writeLog(t *testing.T, name string) rowCounts {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	g := generator{rand.New(rand.NewPCG(1, 2)), time.Date(2026, 9, 4, 8, 0, 0, 0, time.UTC)}
	var want rowCounts
	for size := 0; size < logSize; {
		line, verdict := g.hit(), "skip"
		switch n := g.IntN(100); {
		case n < 5:
			line, verdict = g.miss(), "miss"
		case n < 6:
			line, verdict = g.odd()
		}
		n, err := out.WriteString(line + "\n")
		if err != nil {
			t.Fatal(err)
		}
		size += n
		switch verdict {
		case "miss":
			want.Miss++
		case "maybe":
			want.Maybe++
		case "skip":
			want.Skip++
		case "unparsed":
			want.Unparsed++
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	want.Rows = want.Miss + want.Maybe + want.Skip + want.Unparsed
	return want
}

type generator struct {
	*rand.Rand
	now time.Time
}

const browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36"

func (g *generator) hit() string {
	size := g.IntN(1 << 22)
	return g.row("-", "REST.GET.OBJECT", g.key(), "", fmt.Sprintf("200 - %d %d %d %d", size, size, g.IntN(200), g.IntN(50)), browser)
}

func (g *generator) miss() string {
	return g.row("-", "REST.GET.OBJECT", g.key(), "", "404 NoSuchKey 287 - 9 -", browser)
}

// odd returns a row of the kinds that mislead readers of these logs.
func (g *generator) odd() (line, verdict string) {
	const signed = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/i-0123456789abcdef0"
	key := g.key()
	switch g.IntN(13) {
	case 0: // the user agent imitates a miss
		return g.row("-", "REST.GET.OBJECT", key, "", "200 - 10 10 5 4", `x" "y" - - HTTP/1.1" 404 NoSuchKey 1 1 1 1 "z" "curl/8.4.0`), "skip"
	case 1: // the requester holds spaces
		return g.row("arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E2EXAMPLEID", "REST.GET.OBJECT", key, "", "404 NoSuchKey 287 - 9 -", "Amazon CloudFront"), "miss"
	case 2: // quotes in the request-URI
		return g.row("-", "REST.GET.OBJECT", key, `?response-content-disposition=attachment;%20filename="404.json"`, "404 NoSuchKey 287 - 9 -", browser), "miss"
	case 3:
		return g.row("-", "REST.GET.OBJECT", key, "", "403 AccessDenied 243 - 9 -", browser), "maybe"
	case 4: // our own
		return g.row(signed, "REST.HEAD.OBJECT", key, "", "404 NoSuchKey - - 8 -", "aws-sdk-go-v2/1.48.0 api/s3#1.114.10 app/objectferry m/E,Z,e"), "skip"
	case 5: // a stranger who says so
		return g.row("-", "REST.HEAD.OBJECT", key, "", "404 NoSuchKey - - 8 -", "app/objectferry"), "miss"
	case 6: // the reading half of a copy
		return g.head(signed, "REST.COPY.OBJECT_GET", key) + " - 404 NoSuchKey - - - - - - -", "miss"
	case 7:
		return g.row("-", "REST.GET.OBJECT", "bad%zz.jpg", "", "404 NoSuchKey 287 - 9 -", browser), "unparsed"
	case 8: // cut off
		return g.head("-", "REST.GET.OBJECT", key) + ` "GET /` + key + ` HTTP/1.1"`, "unparsed"
	case 9: // doubly encoded
		return g.row("-", "REST.GET.OBJECT", "%25E4%25BD%25A0%25E5%25A5%25BD/a%2Bb%2520c.jpg", "", "404 NoSuchKey 287 - 9 -", browser), "miss"
	case 10: // a line end of another system, and a layout yet to come
		return g.row("-", "REST.GET.OBJECT", key, "", "404 NoSuchKey 287 - 9 -", browser) + ` later "later still"` + "\r", "miss"
	case 11:
		return g.row(signed, "REST.PUT.OBJECT", key, "", "404 NoSuchUpload 287 - 9 -", "404 NoSuchKey "), "skip"
	default:
		return "", "" // blank
	}
}

func (g *generator) row(requester, operation, key, query, block, agent string) string {
	method := strings.Split(operation, ".")[1]
	return g.head(requester, operation, key) + fmt.Sprintf(` "%s /%s%s HTTP/1.1" %s "https://www.example.com/watch?v=%d" "%s" - %s= - ECDHE-RSA-AES128-GCM-SHA256 - overseas-media.s3.ap-southeast-1.amazonaws.com TLSv1.2 - - -`,
		method, key, query, block, g.IntN(1000), agent, g.id(75))
}

func (g *generator) head(requester, operation, key string) string {
	g.now = g.now.Add(time.Duration(g.IntN(300)) * time.Millisecond)
	return fmt.Sprintf("79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be overseas-media [%s] 203.0.113.%d %s %s %s %s",
		g.now.Format("02/Jan/2006:15:04:05 -0700"), g.IntN(256), requester, g.id(16), operation, key)
}

func (g *generator) key() string {
	return fmt.Sprintf("media/2026/%02d/%s/clip-%06d.mp4", 1+g.IntN(12), g.id(8), g.IntN(1e6))
}

func (g *generator) id(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}
