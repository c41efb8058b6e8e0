package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// day is a day of answers for a bucket, without the hours in gaps.
func day(bucket string, requests int64, gaps ...int) (list []telemetry.Answers) {
	first := telemetry.HourOf(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	for i := range 24 {
		if !slices.Contains(gaps, i) {
			list = append(list, telemetry.Answers{Bucket: bucket, Hour: first + telemetry.Hour(i), S3: requests / 2, Miss: requests - requests/2})
		}
	}
	return list
}

func draws(t *testing.T, answers []telemetry.Answers, look Look) string {
	t.Helper()
	svg, err := Share(answers, look)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return string(svg)
		} else if err != nil {
			t.Fatalf("the plot is no XML: %v\n%s", err, svg)
		}
	}
}

// lines is how many pieces of a series' line are in a plot.
func lines(svg, colour string) int {
	return strings.Count(svg, "stroke-width:2;stroke:"+colour)
}

func TestAnHourWithoutRequestsIsAGap(t *testing.T) {
	const first = "rgb(15,110,132)" // of the first series on a light page
	whole, gap := lines(draws(t, day("m", 10), Look{}), first), lines(draws(t, day("m", 10, 7, 8), Look{}), first)
	if gap != whole+1 {
		t.Errorf("a line with a gap is in %d pieces, one without in %d", gap, whole)
	}
}

func TestNamesOfBucketsAreText(t *testing.T) {
	svg := draws(t, append(day("a<script>&", 10), day("b", 10)...), Look{})
	if strings.Contains(svg, "<script>") || !strings.Contains(svg, "a&lt;script&gt;&amp;") {
		t.Errorf("the name stands as it is: %s", svg)
	}
}

func TestTheBusiestBucketsAreShown(t *testing.T) {
	var all []telemetry.Answers
	var want []string
	for i := range maxSeries + 3 {
		name := fmt.Sprintf("bucket-%02d", i)
		all = append(all, day(name, int64(i+1)*10)...)
		if i >= 3 {
			want = append(want, name)
		}
	}
	if got := Shown(all); !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
	svg := draws(t, all, Look{})
	if strings.Contains(svg, "bucket-00") || !strings.Contains(svg, want[0]) {
		t.Error("the plot does not show them")
	}
}

func TestEachLookHasItsColoursAndSize(t *testing.T) {
	seen := map[string]Look{}
	for _, look := range []Look{{}, {Dark: true}, {Narrow: true}, {Dark: true, Narrow: true}} {
		svg := draws(t, day("m", 10), look)
		if other, ok := seen[svg]; ok {
			t.Errorf("%+v and %+v are drawn alike", look, other)
		}
		seen[svg] = look
		if !strings.Contains(svg, "Nov 30") || !strings.Contains(svg, "100 %") {
			t.Errorf("%+v: the axes have no day or no share", look)
		}
	}
}

// TestColoursStandOut against the panels of console.css, as WCAG 2 asks of text and
// of lines.
func TestColoursStandOut(t *testing.T) {
	light := func(hex string) (sum float64) {
		for i, weight := range []float64{.2126, .7152, .0722} {
			n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			v := float64(n) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	for _, c := range []struct {
		panel, text string
		series      []string
	}{{"#ffffff", textOnLight, onLight}, {"#1a2028", textOnDark, onDark}} {
		contrast := func(colour string) float64 {
			a, b := light(colour), light(c.panel)
			return (max(a, b) + .05) / (min(a, b) + .05)
		}
		if got := contrast(c.text); got < 4.5 {
			t.Errorf("text on %s has a contrast of %.1f", c.panel, got)
		}
		for _, s := range c.series {
			if got := contrast(s); got < 3 {
				t.Errorf("series %s on %s has a contrast of %.1f", s, c.panel, got)
			}
		}
		if len(c.series) < maxSeries {
			t.Errorf("%d colours for %d series", len(c.series), maxSeries)
		}
	}
}

func TestLittleIsPlottedToo(t *testing.T) {
	if svg, err := Share(nil, Look{}); svg != nil || err != nil {
		t.Errorf("of nothing there is %d bytes, %v", len(svg), err)
	}
	if svg := draws(t, day("m", 10)[:1], Look{}); !strings.Contains(svg, "<circle") {
		t.Error("a single hour is not seen")
	}
}

// TestHoursOfAPlotAreBounded: a pod may say anything of when a row was logged.
func TestHoursOfAPlotAreBounded(t *testing.T) {
	svg, err := Share([]telemetry.Answers{{Bucket: "m", Hour: 0, S3: 1}, {Bucket: "m", Hour: 500_000, S3: 1}, {Bucket: "m", Hour: 500_001, Miss: 1}}, Look{})
	if err != nil || len(svg) == 0 || len(svg) > 1<<20 {
		t.Errorf("the plot has %d bytes, %v", len(svg), err)
	}
}
