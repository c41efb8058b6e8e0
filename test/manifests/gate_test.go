package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/objectferry/objectferry/test/ferry"
)

// TestTheGateIsTheShareOfItsOwnCopiers asks Prometheus's own engine what the query
// of the manifest answers: any closed gate of a copier counts once, copiers of
// other queues and parsers do not count, and one that has never closed counts as
// open.
func TestTheGateIsTheShareOfItsOwnCopiers(t *testing.T) {
	promtool := ferry.Tool(t, "promtool")
	for url, o := range fleets(t, render(t, filepath.Join(root, "base"))) {
		dir := t.TempDir()
		rule, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "g", "rules": []any{
			map[string]any{"record": "closed", "expr": trigger(t, o, "closed")["query"]}}}}})
		if err != nil {
			t.Fatal(err)
		}
		cases := fmt.Sprintf(`
rule_files: [rule.yml]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - {series: 'objectferry_messages_held{instance="a",queue=%[1]q}', values: '3 0 0 0'}
      - {series: 'objectferry_messages_held{instance="b",queue=%[1]q}', values: '3 0 0 0'}
      - {series: 'objectferry_messages_held{instance="parser",queue="logs"}', values: '3 0 0 0'}
      - {series: 'objectferry_messages_held{instance="other",queue="other"}', values: '3 0 0 0'}
      - {series: 'objectferry_guard_closed{instance="a",guard="source x",reason="unavailable"}', values: '0 1 1 0'}
      - {series: 'objectferry_guard_closed{instance="a",guard="destination x",reason="refused"}', values: '0 1 0 0'}
      - {series: 'objectferry_guard_closed{instance="b",guard="source x",reason="unavailable"}', values: '_ _ 1 0'}
      - {series: 'objectferry_guard_closed{instance="parser",guard="queue x",reason="unavailable"}', values: '1 1 1 1'}
      - {series: 'objectferry_guard_closed{instance="other",guard="source y",reason="unavailable"}', values: '1 1 1 1'}
    promql_expr_test:
      - {expr: closed, eval_time: 0s, exp_samples: [{labels: closed, value: 0}]}
      - {expr: closed, eval_time: 15s, exp_samples: [{labels: closed, value: 0.5}]}
      - {expr: closed, eval_time: 30s, exp_samples: [{labels: closed, value: 1}]}
      - {expr: closed, eval_time: 45s, exp_samples: [{labels: closed, value: 0}]}
`, filepath.Base(url))
		for name, text := range map[string]string{"rule.yml": string(rule), "cases.yml": cases} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(promtool, "test", "rules", "cases.yml")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
