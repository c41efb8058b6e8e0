package observability

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ RefID, Expr, LegendFormat string }
	Repeat  string
}

func (p *panel) overlaps(o *panel) bool {
	a, b := p.GridPos, o.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func dashboard(t *testing.T) (panels []*panel, variables map[string]string) {
	t.Helper()
	var d struct {
		Panels     []*panel
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
				Definition string
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, infra+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	variables = map[string]string{}
	for _, v := range d.Templating.List {
		if variables[v.Name] = v.Definition; v.Type == "datasource" {
			variables[v.Name] = fmt.Sprint(v.Query)
		}
	}
	return d.Panels, variables
}

// TestRowsFollowTheLifeOfAMiss: and end in the number that the business asks for.
func TestRowsFollowTheLifeOfAMiss(t *testing.T) {
	panels, _ := dashboard(t)
	var rows []string
	for _, p := range panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
	}
	want := []string{"1. Logs arrive", "2. Rows and misses", "3. Sync queues", "4. Copying", "5. Ends and dead letters", "6. Guards", "7. From miss to heal",
		"8. The share of requests that S3 answered itself, by log time"}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	last := panels[len(panels)-1]
	if last.Repeat != "bucket" || !strings.Contains(last.Targets[0].Expr, "by (hour)") {
		t.Errorf("the last panel is not by hour of the log, for each bucket: %+v", last)
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	panels, _ := dashboard(t)
	ids := map[int]bool{}
	for i, p := range panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, other := range panels[:i] {
			if p.overlaps(other) {
				t.Errorf("%s lies over %s", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q needs a title, a description, a unit and a query", p.ID, p.Title)
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("%s: the datasource %q is not the variable", p.Title, p.Datasource.UID)
		}
	}
}

// TestPanelsShowWhatThereIs: every query is PromQL over metrics and labels that the
// service has, and every legend names a label that is left.
func TestPanelsShowWhatThereIs(t *testing.T) {
	panels, variables := dashboard(t)
	known := metrics(t)
	if variables["datasource"] != "prometheus" {
		t.Errorf("the datasource variable is %q", variables["datasource"])
	}
	values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variables["bucket"])
	if values == nil || !slices.Contains(known[values[1]], values[2]) {
		t.Errorf("the bucket variable is %q", variables["bucket"])
	}
	exprs := map[string]string{}
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1d")
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range panels {
		for _, q := range p.Targets {
			where := p.Title + " " + q.RefID
			if exprs[where] != "" {
				t.Errorf("%s: two queries of one name", where)
			}
			exprs[where] = grafana.Replace(q.Expr)
			for _, name := range foreign(known, exprs[where]) {
				t.Errorf("%s: no metric has %s", where, name)
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b`).MatchString(q.Expr) {
					t.Errorf("%s: the legend's label %s is grouped away", where, l[1])
				}
			}
		}
	}
	mustParse(t, exprs)
}

// TestEveryMetricIsShown: what is measured and on no panel is found by nobody at
// night.
func TestEveryMetricIsShown(t *testing.T) {
	panels, _ := dashboard(t)
	var all strings.Builder
	for _, p := range panels {
		for _, q := range p.Targets {
			all.WriteString(q.Expr + "\n")
		}
	}
	part := regexp.MustCompile(`_(bucket|count|sum)$`)
	for name := range metrics(t) {
		if base := part.ReplaceAllString(name, ""); strings.HasPrefix(name, "objectferry_") && !strings.Contains(all.String(), base) {
			t.Errorf("no panel shows %s", name)
		}
	}
}
