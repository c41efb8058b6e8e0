package observability

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rule is one of alerts.yaml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	decode(t, infra+"alerts.yaml", &file)
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alert")
	}
	return all
}

// atOnce are the alerts whose event is final when it is counted.
var atOnce = []string{"ObjectferryDeadLetters", "ObjectferryPoison"}

func TestAlertsSayWhatIsWrongAndWhereToLook(t *testing.T) {
	known := metrics(t)
	for _, r := range rules(t) {
		for _, name := range foreign(known, r.Expr) {
			t.Errorf("%s: no metric has %s", r.Alert, name)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: needs a summary and a description", r.Alert)
		}
		if (r.For == "") != slices.Contains(atOnce, r.Alert) {
			t.Errorf("%s: for %q", r.Alert, r.For)
		}
	}
	promtool(t, "check", "rules", infra+"alerts.yaml")
}

// TestEachAlertHasARunbookEntry: under the heading that its runbook_url leads to,
// with something to type. No entry is left of an alert that is gone.
func TestEachAlertHasARunbookEntry(t *testing.T) {
	entries := map[string]string{}
	for _, part := range strings.Split(read(t, docs+"RUNBOOK.md"), "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		entries[name] = body
	}
	command := regexp.MustCompile("`(objectferry|kubectl|aws|curl|statusz)\\b")
	for _, r := range rules(t) {
		if !command.MatchString(entries[r.Alert]) {
			t.Errorf("%s has no entry in the runbook with a command to run", r.Alert)
		}
		delete(entries, r.Alert)
		url, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if !strings.HasSuffix(url, "/docs/RUNBOOK.md") || anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
	for name := range entries {
		if strings.HasPrefix(name, "Objectferry") {
			t.Errorf("the runbook has an entry of no alert: %s", name)
		}
	}
}

// TestEachAlertFiresAndKeepsQuiet: promtool runs the cases; there is one of either
// kind for each alert.
func TestEachAlertFiresAndKeepsQuiet(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(infra + "alerts*_test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	known := metrics(t)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		var file struct {
			RuleFiles []string `yaml:"rule_files"`
			Interval  string   `yaml:"evaluation_interval"`
			Tests     []struct {
				Name     string              `yaml:"name"`
				Interval string              `yaml:"interval"`
				Series   []map[string]string `yaml:"input_series"`
				Alerts   []struct {
					Name string           `yaml:"alertname"`
					At   string           `yaml:"eval_time"`
					Want []map[string]any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		decode(t, name, &file)
		for _, c := range file.Tests {
			for _, s := range c.Series {
				for _, bad := range foreign(known, s["series"]) {
					t.Errorf("%s: no metric has %s", c.Name, bad)
				}
			}
			fired := map[string]bool{}
			for _, a := range c.Alerts {
				fired[a.Name] = fired[a.Name] || len(a.Want) > 0
			}
			for alert, yes := range fired {
				fires[alert] = fires[alert] || yes
				quiet[alert] = quiet[alert] || !yes
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s: a case that fires: %v, one that does not: %v", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
	promtool(t, append([]string{"test", "rules"}, files...)...)
}
