package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What moto cannot judge is read by people who do not run the tests.
func TestWhatMotoCannotJudgeIsListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "infra", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, line := range unjudged {
		if !strings.Contains(page, "- "+line) {
			t.Errorf("infra/README.md does not say: %s", line)
		}
	}
}

// What docs/PERMISSIONS.md tells people to give is what the templates give.
func TestPermissionsPageAndTemplatesGiveTheSame(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "PERMISSIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := map[string][]grant{}
	for _, m := range regexp.MustCompile("(?s)<summary>([^\n]*)</summary>\n\n```json\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var policy any
		if err := json.Unmarshal([]byte(m[2]), &policy); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		var all []statement
		for _, s := range at(policy, "Statement").([]any) {
			all = append(all, statement{Actions: list(at(s, "Action")), Resources: list(at(s, "Resource"))})
		}
		page[m[1]] = granted(map[string][]statement{"": all})
	}

	bucket := maps.Clone(ofBucket)
	bucket["OwnQueue"] = "false"
	service := maps.Clone(ofService)
	service["KedaRole"] = "objectferry-keda"
	both := resolved(t, service, bucket)
	given := map[string][]grant{}
	for summary, role := range map[string]string{"<code>--role parse</code>": "parse", "<code>--role copy</code>": "copy", "<code>sweep</code>": "sweep", "on-call": "oncall", "KEDA's own role": "keda"} {
		all := slices.DeleteFunc(granted(policies(t, "objectferry-"+role, both.Service, both.Bucket)), func(g grant) bool {
			return ofMedia(g.resource) != g.resource // the page has one sync queue, and says that others are like it
		})
		for i := range all {
			all[i].resource = strings.Replace(all[i].resource, logs, "log-bucket", 1)
		}
		given[summary] = all
	}
	if diff := cmp.Diff(given, page, cmp.AllowUnexported(grant{})); diff != "" {
		t.Errorf("grants (-templates +page):\n%s", diff)
	}
}
