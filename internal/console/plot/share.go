// Package plot draws the console's plots as SVG on the server. The charts module
// does the drawing; this package says what is drawn and in which colours. Its
// functions may be called by many goroutines.
package plot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-analyze/charts"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// Look is how a plot is drawn: for a light or a dark page, wide or for a phone.
type Look struct{ Dark, Narrow bool }

// maxSeries is how many buckets one plot shows, the busiest ones.
const maxSeries = 6

// maxHours bounds the hours of a plot, whatever a pod says that it has seen.
const maxHours = 14 * 24

const textOnLight, textOnDark = "#3c4450", "#c3cad6"

// Colours of series, apart in hue and in lightness, 3:1 or more against their
// background.
var (
	onLight = []string{"#0f6e84", "#b4541a", "#5b4bb5", "#3d7a2a", "#a8326e", "#5c5f66"}
	onDark  = []string{"#5cc8de", "#f0a060", "#aca0f5", "#8fd07a", "#f08cbc", "#b8bcc4"}
)

// Share draws per bucket which share of the requests S3 itself answered, by the
// hour of the log row. An hour without a request is a gap. It draws the buckets
// that Shown names; without any there is no plot.
func Share(answers []telemetry.Answers, look Look) (svg []byte, err error) {
	if len(answers) == 0 {
		return nil, nil
	}
	shown := Shown(answers)
	first, last := answers[0].Hour, answers[0].Hour
	for _, a := range answers {
		first, last = min(first, a.Hour), max(last, a.Hour)
	}
	first = max(first, last-maxHours+1)
	first = min(first, last-5) // a plot of a single hour would be a dot without an axis
	hours := int(last - first + 1)
	values := make([][]float64, len(shown))
	for i := range values {
		values[i] = slices.Repeat([]float64{charts.GetNullValue()}, hours)
	}
	for _, a := range answers {
		if i := slices.Index(shown, a.Bucket); i >= 0 && a.Hour >= first && a.S3+a.Miss > 0 {
			values[i][a.Hour-first] = 100 * float64(a.S3) / float64(a.S3+a.Miss)
		}
	}
	return draw(shown, labels(first, hours, look), values, look)
}

// Shown are the buckets with most requests, in the order of their names.
func Shown(answers []telemetry.Answers) []string {
	requests := map[string]int64{}
	for _, a := range answers {
		requests[a.Bucket] += a.S3 + a.Miss
	}
	names := slices.SortedFunc(maps.Keys(requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(requests[b], requests[a]), cmp.Compare(a, b))
	})
	names = names[:min(len(names), maxSeries)]
	slices.Sort(names)
	return names
}

// labels names so many hours that there is room for them, full ones of a day: at
// midnight the day.
func labels(first telemetry.Hour, hours int, look Look) []string {
	room := 12
	if look.Narrow {
		room = 4
	}
	step := 1
	for _, step = range []int{1, 2, 3, 6, 12, 24} {
		if hours/step <= room {
			break
		}
	}
	list := make([]string, hours)
	for i := range list {
		t := time.Unix(int64(first+telemetry.Hour(i))*3600, 0).UTC()
		switch {
		case t.Hour()%step != 0:
		case t.Hour() == 0:
			list[i] = t.Format("Jan 2")
		default:
			list[i] = t.Format("15:04")
		}
	}
	return list
}

func draw(names, labels []string, values [][]float64, look Look) ([]byte, error) {
	width, height := 1120, 230
	if look.Narrow {
		width, height = 420, 230
	}
	text, axis, grid, palette := textOnLight, "#8a929e", "#e3e6ea", onLight
	if look.Dark {
		text, axis, grid, palette = textOnDark, "#6b7484", "#2c3440", onDark
	}
	theme := charts.ThemeOption{IsDarkMode: look.Dark, BackgroundColor: charts.ColorTransparent,
		TextColor: charts.ColorFromHex(text), AxisStrokeColor: charts.ColorFromHex(axis), AxisSplitLineColor: charts.ColorFromHex(grid)}
	for _, c := range palette {
		theme.SeriesColors = append(theme.SeriesColors, charts.ColorFromHex(c))
	}
	colours := charts.MakeTheme(theme)
	font := charts.FontStyle{FontSize: 10}
	o := charts.NewLineChartOptionWithData(values)
	o.Theme = colours
	o.Padding = charts.NewBox(4, 4, 12, 4)
	o.XAxis.Labels, o.XAxis.LabelCount, o.XAxis.LabelFontStyle = labels, len(labels), font
	o.XAxis.BoundaryGap = charts.Ptr(false)
	o.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Max: charts.Ptr(100.0), LabelCount: 5, LabelFontStyle: font,
		ValueFormatter: func(v float64) string { return fmt.Sprintf("%.0f %%", v) }}}
	o.Legend.SeriesNames, o.Legend.FontStyle = names, font
	o.Legend.Show = charts.Ptr(len(names) > 1)
	o.LineStrokeWidth = 2
	o.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: height, Theme: colours})
	if err := p.LineChart(o); err != nil {
		return nil, fmt.Errorf("draw the share from S3: %w", err)
	}
	svg, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("draw the share from S3: %w", err)
	}
	return svg, nil
}
