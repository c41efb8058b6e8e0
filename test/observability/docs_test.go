package observability

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheDocumentedMetricsAreTheRealOnes: name and labels, neither more nor fewer.
func TestTheDocumentedMetricsAreTheRealOnes(t *testing.T) {
	want := map[string][]string{}
	part := regexp.MustCompile(`_(bucket|count|sum)$`) // of a histogram
	for name, labels := range metrics(t) {
		if strings.HasPrefix(name, "objectferry_") {
			labels = slices.DeleteFunc(labels, func(l string) bool { return l == "le" || l == "instance" || l == "job" })
			want[part.ReplaceAllString(name, "")] = labels
		}
	}
	got := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(objectferry_\\w+)` \\| ([^|]*)\\| ([^|]+) \\| ([^|]+) \\|$")
	for _, m := range row.FindAllStringSubmatch(read(t, docs+"OBSERVABILITY.md"), -1) {
		got[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/OBSERVABILITY.md (-metrics +documented):\n%s", diff)
	}
}
