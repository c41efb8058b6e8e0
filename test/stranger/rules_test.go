package stranger

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is docs/DEPLOY.md.
func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "DEPLOY.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNoShellBlockIsLeftOut has each kind of block, and blocks that say nothing
// of themselves, which must be refused: a command that nobody tries goes stale.
func TestNoShellBlockIsLeftOut(t *testing.T) {
	got, err := steps(strings.Join([]string{
		"text", "```sh step=one", "echo 1", "echo 2", "```", "between", "```text expect", "1", "…", "```",
		"```sh step=two full", "echo", "```", "```json", "{}", "```", "```sh step=three instead=\"it does that\"", "echo", "```",
		"```sh not-run=\"no network\"", "echo", "```",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	said := "1\n…\n"
	want := []step{
		{line: 2, name: "one", script: "echo 1\necho 2\n", expect: &said},
		{line: 11, name: "two", full: true, script: "echo\n"},
		{line: 17, name: "three", instead: "it does that", script: "echo\n"},
		{line: 20, notRun: "no network", script: "echo\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if k := count(got); k != (kinds{1, 1, 1, 1}) {
		t.Errorf("kinds %+v", k)
	}
	for name, text := range map[string]string{
		"a block that says nothing": "```sh\necho\n```",
		"a step twice":              "```sh step=a\n```\n```sh step=a\n```",
		"a word of no meaning":      "```sh step=a quick\n```",
		"a step that is not run":    "```sh step=a not-run=b\n```",
		"expected of nothing":       "```json\n```\n```text expect\n```",
		"a block without an end":    "```sh step=a\n",
	} {
		if got, err := steps(text); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLinksLeadSomewhere follows the links between the README and the pages.
func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "infra", "README.md"), filepath.Join(root, "infra", "k8s", "README.md")) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(from), m[1])); err != nil {
				t.Errorf("%s: %v", from, err)
			}
		}
	}
}

// TestSourcePolicyAllowsWhatIsCarried holds the policy that the page gives the
// source's account against the keys that the page carries over.
func TestSourcePolicyAllowsWhatIsCarried(t *testing.T) {
	text := page(t)
	list, err := blocks(text)
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
		}
	}
	for _, b := range list {
		if b.info == "json" {
			if err := json.Unmarshal([]byte(b.text), &policy); err != nil {
				t.Fatalf("line %d: %v", b.line, err)
			}
		}
	}
	source := regexp.MustCompile(`SOURCE=https://([a-z]+)-([0-9]+)\.cos\.([a-z-]+)\.`).FindStringSubmatch(text)
	include := regexp.MustCompile(`INCLUDE='([^']+)'`).FindStringSubmatch(text)
	if len(policy.Statement) != 1 || source == nil || include == nil {
		t.Fatalf("the page has policy %+v, source %q and include %q", policy, source, include)
	}
	var want []string
	for glob := range strings.SplitSeq(include[1], ",") {
		want = append(want, fmt.Sprintf("qcs::cos:%[3]s:uid/%[2]s:%[1]s-%[2]s/%[4]s", source[1], source[2], source[3], strings.ReplaceAll(glob, "**", "*")))
	}
	s := policy.Statement[0]
	if diff := cmp.Diff(want, s.Resource); diff != "" || s.Effect != "allow" {
		t.Errorf("%s (-carried +allowed):\n%s", s.Effect, diff)
	}
	if diff := cmp.Diff([]string{"name/cos:GetObject"}, s.Action); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestOutputIsHeldToThePage has outputs that are what a page says and outputs
// that are not.
func TestOutputIsHeldToThePage(t *testing.T) {
	for _, c := range []struct {
		output, expect string
		want           bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"\n\na  \nb", "a\nb\n", true},
		{"a\nx\ny\nb\n", "a\n…\nb\n", true},
		{"a\nb\n", "a\n…\nb\n", true},
		{"sent 3 of 4 (x)\n", "sent … of 4 (x)\n", true},
		{"", "\n", true},
		{"warning\na\nb\n", "a\nb\n", false},
		{"a\nb\nfailed\n", "a\nb\n", false},
		{"a\nc\n", "a\n…\nb\n", false},
		{"sent 3\nof 4\n", "sent … of 4\n", false},
		{"NAME  X\nlonger  1\n", "NAME    X\nlonger  1\n", true},
		{"a  b", "a b", false},
		{"1.5", "1…5", true},
		{"125", "1.5", false},
	} {
		if got := printed(c.output, c.expect); got != c.want {
			t.Errorf("output %q for %q: %t", c.output, c.expect, got)
		}
	}
}
