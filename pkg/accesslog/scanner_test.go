package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
)

// scan reads a log to its end and returns each row's line and why.
func scan(r io.Reader) (rows []string, err error) {
	s := NewScanner(r)
	for s.Next() {
		rows = append(rows, fmt.Sprintf("%d %s %s %s", s.Line(), s.Row().Verdict, s.Row().Why, s.Row().Key()))
	}
	return rows, s.Err()
}

func packed(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func miss(key string) string { return missOf(key, "GET /"+key+" HTTP/1.1") }

func TestBlankLinesAreNoRows(t *testing.T) {
	rows, err := scan(strings.NewReader("\n\r\n" + miss("a") + "\r\n\n\n" + miss("b") + "\n\r"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"3 miss NoSuchKey a", "6 miss NoSuchKey b"}, rows); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyLogHasNoRows(t *testing.T) {
	for _, text := range []string{"", "\n", "\xef\xbb\xbf", "\r"} {
		if rows, err := scan(strings.NewReader(text)); err != nil || rows != nil {
			t.Errorf("%q: %v, %v", text, rows, err)
		}
	}
	if rows, err := scan(bytes.NewReader(packed(t, ""))); err != nil || rows != nil {
		t.Errorf("gzip: %v, %v", rows, err)
	}
}

func TestLastLineNeedsNoLineEnd(t *testing.T) {
	rows, err := scan(strings.NewReader("x\n" + miss("a")))
	if err != nil || len(rows) != 2 || rows[1] != "2 miss NoSuchKey a" {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestBadLineCostsOneRow(t *testing.T) {
	var want []string
	log := ""
	for i, bad := range []string{"x", `{"a":1}`, miss("a")[:150], miss("bad%zz"), strings.Repeat(`"`, 5000), "\x1f\x8b"} {
		log += miss("a") + "\n" + bad + "\n"
		want = append(want, fmt.Sprintf("%d miss", 2*i+1), fmt.Sprintf("%d unparsed", 2*i+2))
	}
	rows, err := scan(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		rows[i] = strings.Join(strings.Fields(rows[i])[:2], " ")
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func TestLongLineCostsOneRow(t *testing.T) {
	fit := miss("a")
	fit += strings.Repeat("x", MaxLine-len(fit))
	for name, test := range map[string]struct {
		line string
		want string
	}{
		"at the limit":    {fit, "2 miss NoSuchKey a"},
		"with a CR":       {fit[1:] + "\r", "2 miss NoSuchKey a"},
		"one byte over":   {fit + "x", "2 unparsed too long "},
		"twice the limit": {fit + fit, "2 unparsed too long "},
		"ten times":       {strings.Repeat(fit, 10), "2 unparsed too long "},
	} {
		for _, end := range []string{"", "\n"} {
			rows, err := scan(strings.NewReader(miss("b") + "\n" + test.line + end))
			if diff := cmp.Diff([]string{"1 miss NoSuchKey b", test.want}, rows); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", name, err, diff)
			}
		}
		rows, err := scan(strings.NewReader(test.line + "\n" + miss("b") + "\n"))
		if len(rows) != 2 || rows[1] != "2 miss NoSuchKey b" || err != nil {
			t.Errorf("%s, first: %v, %v", name, rows, err)
		}
	}
}

// endless is a line without an end, of n bytes.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.n -= n
	return n, nil
}

func TestMemoryDoesNotGrowWithALine(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows, err := scan(io.MultiReader(&endless{100 << 20}, strings.NewReader("\n"+miss("a"))))
	runtime.ReadMemStats(&after)
	if diff := cmp.Diff([]string{"1 unparsed too long ", "2 miss NoSuchKey a"}, rows); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestGzipIsDetectedByItsMagic(t *testing.T) {
	text := miss("a") + "\n" + miss("b") + "\n"
	for name, log := range map[string][]byte{
		"one member":             packed(t, text),
		"several members":        join(packed(t, text[:100]), packed(t, ""), packed(t, text[100:])),
		"with a byte-order mark": packed(t, "\uFEFF"+text),
	} {
		rows, err := scan(bytes.NewReader(log))
		if diff := cmp.Diff([]string{"1 miss NoSuchKey a", "2 miss NoSuchKey b"}, rows); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestBrokenGzipSaysSoAfterTheRowsSoFar(t *testing.T) {
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text.WriteString(miss(fmt.Sprint(random.Uint64())) + "\n")
	}
	whole := packed(t, text.String())
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	for name, test := range map[string]struct {
		log      []byte
		min, max int
	}{
		"cut in the middle":  {whole[:len(whole)/2], 1000, 4000},
		"cut in the trailer": {whole[:len(whole)-4], 4000, 5000},
		"wrong checksum":     {flipped, 4000, 5000},
		"header only":        {whole[:2], 0, 0},
		"cut in the header":  {whole[:7], 0, 0},
		"not gzip after all": {[]byte("\x1f\x8bnonsense of some length"), 0, 0},
		"text behind it":     {append(bytes.Clone(whole), "more"...), 5000, 5000},
	} {
		rows, err := scan(bytes.NewReader(test.log))
		if !errors.Is(err, ErrGzip) || !strings.Contains(err.Error(), "broken gzip") {
			t.Errorf("%s: %v", name, err)
		}
		if len(rows) < test.min || len(rows) > test.max {
			t.Errorf("%s: %d rows", name, len(rows))
		}
		for _, row := range rows {
			if !strings.Contains(row, " miss ") {
				t.Errorf("%s: %s", name, row) // the line that was cut short
			}
		}
	}
}

func TestFailureOfTheReaderIsNotABrokenGzip(t *testing.T) {
	lost := errors.New("connection lost")
	for name, log := range map[string][]byte{
		"plain":  []byte(miss("a") + "\n" + miss("b")),
		"gzip":   packed(t, miss("a"))[:40],
		"magic":  packed(t, miss("a"))[:2],
		"a byte": {0x1f},
		"empty":  nil,
	} {
		rows, err := scan(io.MultiReader(bytes.NewReader(log), iotest.ErrReader(lost)))
		if !errors.Is(err, lost) || errors.Is(err, ErrGzip) {
			t.Errorf("%s: %v", name, err)
		}
		if len(rows) > 1 {
			t.Errorf("%s: a line that was cut short is a row: %q", name, rows)
		}
	}
}

// Some readers report a failure once and then an end.
func TestFailureThatIsReportedOnceIsKept(t *testing.T) {
	lost := errors.New("connection lost")
	for _, text := range []string{"", "x", missOf("a", "-")} {
		if _, err := scan(&failingOnce{text: text, err: lost}); !errors.Is(err, lost) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

type failingOnce struct {
	text string
	err  error
}

func (r *failingOnce) Read(p []byte) (int, error) {
	if r.text != "" {
		n := copy(p, r.text)
		r.text = r.text[n:]
		return n, nil
	}
	err := r.err
	r.err = io.EOF
	return 0, err
}

func TestReaderThatBringsNothingEnds(t *testing.T) {
	if _, err := scan(stuck{}); err == nil {
		t.Error("no error")
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestRowsDoNotDependOnHowTheyAreRead(t *testing.T) {
	var log strings.Builder
	for _, c := range cases(t) {
		log.WriteString(c.Line + "\n")
	}
	want, err := scan(strings.NewReader(log.String()))
	if err != nil || len(want) != 69 { // two of 71 are blank
		t.Fatalf("%d rows, %v", len(want), err)
	}
	text := log.String()
	for name, r := range map[string]io.Reader{
		"byte by byte":      iotest.OneByteReader(strings.NewReader(text)),
		"halves":            iotest.HalfReader(strings.NewReader(text)),
		"data with EOF":     iotest.DataErrReader(strings.NewReader(text)),
		"gzip, in bytes":    iotest.OneByteReader(bytes.NewReader(packed(t, text))),
		"gzip, with EOF":    iotest.DataErrReader(bytes.NewReader(packed(t, text))),
		"one after another": io.MultiReader(strings.NewReader(text[:1]), strings.NewReader(text[1:700]), strings.NewReader(text[700:])),
	} {
		got, err := scan(r)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestScannerCostsNoAllocationPerRow(t *testing.T) {
	var log []byte
	for _, c := range cases(t) {
		log = append(append(log, c.Line...), '\n')
	}
	allocations := func(times int) float64 {
		text := bytes.Repeat(log, times)
		return testing.AllocsPerRun(5, func() {
			for s := NewScanner(bytes.NewReader(text)); s.Next(); {
			}
		})
	}
	if few, many := allocations(5), allocations(50); many > few {
		t.Errorf("%v allocations for 5 times the cases, %v for 50 times", few, many)
	}
}

// A log, read in pieces of any size, has the rows that its lines have.
func FuzzScanner(f *testing.F) {
	for _, c := range cases(f) {
		f.Add([]byte(c.Line+"\n"+c.Line), uint16(100))
	}
	f.Add([]byte("\x1f\x8b"), uint16(1))
	f.Add(packed(f, miss("a")), uint16(7))
	f.Fuzz(func(t *testing.T, log []byte, piece uint16) {
		rows, err := scan(&inPieces{log, 1 + int(piece)})
		if err != nil {
			if !errors.Is(err, ErrGzip) || !bytes.HasPrefix(log, []byte("\x1f\x8b")) {
				t.Fatal(err)
			}
			return
		}
		if bytes.HasPrefix(log, []byte("\x1f\x8b")) {
			return
		}
		var want []string
		var row Row
		for i, line := range bytes.Split(log, []byte("\n")) {
			if row.Parse(line); row.Verdict != Ignored {
				want = append(want, fmt.Sprintf("%d %s %s %s", i+1, row.Verdict, row.Why, row.Key()))
			}
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Error(diff)
		}
	})
}

type inPieces struct {
	rest []byte
	size int
}

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.size)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
