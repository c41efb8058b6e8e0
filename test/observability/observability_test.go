// Package observability holds the dashboard, the alerts, the collector's example and
// their documentation to what the service really shows.
package observability

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/objectferry/objectferry/test/ferry"
)

const (
	infra  = "../../infra/observability/"
	golden = "../../internal/telemetry/testdata/metrics.txt"
	docs   = "../../docs/"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decode reads YAML; a field that the type does not have is an error.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(read(t, file)), yaml.Strict()).Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// promtool runs it and fails the test with what it says.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(ferry.Tool(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// metrics are the service's metrics with their labels, and the two that Prometheus
// itself adds for each target.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"up": {}}
	for line := range strings.Lines(read(t, golden)) {
		name, labels, _ := strings.Cut(strings.TrimRight(line, "}\n"), "{")
		all[name] = strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })
	}
	for name := range all {
		all[name] = append(all[name], "instance", "job")
	}
	return all
}

var (
	text     = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	span     = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\w+|\b[0-9][\w.]*`)
	grouping = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	selector = regexp.MustCompile(`(\w+)\s*\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*[=!]`)
	name     = regexp.MustCompile(`[a-zA-Z_]\w*(\s*\()?`)
	keywords = []string{"and", "or", "unless", "by", "on", "group_left", "group_right", "bool"}
)

// foreign lists the metrics and labels of a PromQL expression that nobody has.
// Whether the expression is one, promtool judges.
func foreign(known map[string][]string, expr string) (bad []string) {
	expr = span.ReplaceAllString(text.ReplaceAllString(expr, ""), "")
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(known[m[1]], label[1]) {
				bad = append(bad, m[1]+"{"+label[1]+"}")
			}
		}
	}
	expr = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(expr, "")
	groups := grouping.FindAllStringSubmatch(expr, -1)
	expr = grouping.ReplaceAllString(expr, "")
	var labels []string // of all metrics of the expression
	for _, n := range name.FindAllString(expr, -1) {
		switch own, ok := known[n]; {
		case ok:
			labels = append(labels, own...)
		case !strings.HasSuffix(n, "(") && !slices.Contains(keywords, n):
			bad = append(bad, n)
		}
	}
	for _, g := range groups {
		for label := range strings.SplitSeq(g[2], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
				bad = append(bad, label)
			}
		}
	}
	return bad
}

// TestForeignNamesAreFound: a typing error must not make a panel empty or an alert
// silent.
func TestForeignNamesAreFound(t *testing.T) {
	known := map[string][]string{"objectferry_a": {"bucket", "le"}, "objectferry_b": {"queue"}}
	for expr, want := range map[string]string{
		`sum by (bucket) (rate(objectferry_a{bucket=~"x|y"}[5m])) > 0.1`:        "",
		`max(objectferry_b offset 1d) unless on (queue) objectferry_b == 1e3`:   "",
		`sum(rate(objectferry_c[5m]))`:                                          "objectferry_c",
		`objectferry_b{bucket="x"}`:                                             "objectferry_b{bucket}",
		`sum by (queue) (objectferry_a)`:                                        "queue",
		`objectferry_a / on (bucket) group_left (queue) objectferry_a{le!="1"}`: "queue",
		`histogram_quantile(0.9, sum by (le, bucket) (objectferry_a)) > 4 * 60`: "",
		`bjectferry_a > 3`: "bjectferry_a",
		`label_replace(objectferry_a, "x", "$1", "bucket", "(no_such_metric.*)")`: "",
	} {
		if got := strings.Join(foreign(known, expr), " "); got != want {
			t.Errorf("%s: %q is foreign, want %q", expr, got, want)
		}
	}
}

// mustParse has promtool read expressions, by where they stand.
func mustParse(t *testing.T, exprs map[string]string) {
	t.Helper()
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	var all []group // of one rule each, so that an error names the place
	for _, where := range slices.Sorted(maps.Keys(exprs)) {
		all = append(all, group{where, []rule{{"x", exprs[where]}}})
	}
	b, err := yaml.Marshal(map[string]any{"groups": all})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
