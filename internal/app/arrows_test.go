package app

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestArrows holds the architecture where no linter is at hand: arrows point
// down only, parse and copier do not know each other, SDK types end at the
// adapters, and the production binary links nothing of the embedded cloud.
func TestArrows(t *testing.T) {
	const module = "github.com/objectferry/objectferry/"
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("list packages: %v\n%s", err, out)
	}
	leaf := []string{}
	may := map[string][]string{
		"internal/object":     leaf,
		"internal/telemetry":  leaf,
		"internal/recent":     leaf,
		"internal/glob":       leaf,
		"pkg/accesslog":       leaf,
		"pkg/s3event":         leaf,
		"pkg/syncrequest":     leaf,
		"internal/config":     {"internal/glob", "pkg/accesslog"},
		"internal/route":      {"internal/config", "internal/glob"},
		"internal/queue":      {"internal/object", "internal/telemetry"},
		"internal/guard":      {"internal/object", "internal/telemetry"},
		"internal/cos":        {"internal/object"},
		"internal/s3store":    {"internal/object"},
		"internal/parse":      {"internal/queue", "internal/guard", "internal/route", "internal/config", "internal/recent", "internal/object", "internal/telemetry", "pkg/accesslog", "pkg/s3event", "pkg/syncrequest"},
		"internal/copier":     {"internal/queue", "internal/guard", "internal/route", "internal/config", "internal/recent", "internal/object", "internal/telemetry", "pkg/syncrequest"},
		"internal/deadletter": {"internal/queue", "internal/glob", "internal/object", "internal/telemetry", "pkg/s3event", "pkg/syncrequest"},
		"internal/check":      {"internal/queue", "internal/route", "internal/config", "internal/object", "internal/cos", "internal/s3store", "internal/telemetry"},
		"internal/explain":    {"internal/copier", "internal/queue", "internal/route", "internal/glob", "internal/config", "internal/object", "internal/telemetry", "pkg/syncrequest"},
		"internal/reconcile":  {"internal/queue", "internal/route", "internal/config", "internal/object", "pkg/syncrequest"},
		"internal/report":     {"internal/parse", "internal/route", "internal/config", "internal/object", "pkg/accesslog"},
		"internal/app": {"internal/parse", "internal/copier", "internal/queue", "internal/guard", "internal/cos", "internal/s3store", "internal/route", "internal/config",
			"internal/object", "internal/telemetry"},
		"internal/console": {"internal/console/fleet", "internal/console/plot", "internal/deadletter", "internal/guard", "internal/queue", "internal/object",
			"internal/telemetry"},
		"internal/console/fleet": {"internal/app", "internal/guard", "internal/telemetry"},
		"internal/console/plot":  {"internal/telemetry"},
		"cmd/objectferry": {"internal/app", "internal/console", "internal/console/fleet", "internal/check", "internal/deadletter", "internal/explain", "internal/reconcile", "internal/report", "internal/parse", "internal/guard", "internal/config", "internal/queue", "internal/route", "internal/object", "internal/s3store",
			"internal/telemetry", "pkg/accesslog", "pkg/s3event", "pkg/syncrequest"},
		"cmd/objectferry-demo": {"internal/app", "internal/config", "internal/telemetry", "internal/localcloud", "internal/localcloud/cosd", "internal/localcloud/edge",
			"internal/localcloud/strictaws", "internal/localcloud/visitors"},
	}
	sdk := map[string][]string{
		"github.com/aws/aws-sdk-go-v2/service/": {"internal/queue", "internal/s3store", "internal/deadletter", "internal/app", "internal/check", "cmd/objectferry"},
		"github.com/tencentyun/":                {"internal/cos"},
		"github.com/sony/gobreaker":             {"internal/guard"},
		"github.com/go-analyze/":                {"internal/console/plot"},
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg, ours := strings.CutPrefix(words[0], module)
		if !ours || strings.HasPrefix(pkg, "internal/localcloud") || strings.HasPrefix(pkg, "test/") {
			continue
		}
		allowed, known := may[pkg]
		if !known {
			t.Errorf("package %s is not in the architecture; add it here, to .golangci.yml and to docs/ARCHITECTURE.md", pkg)
			continue
		}
		seen++
		for _, imported := range words[1:] {
			if dep, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(allowed, dep) {
				t.Errorf("%s may not import %s", pkg, dep)
			}
			for prefix, users := range sdk {
				if strings.HasPrefix(imported, prefix) && !slices.Contains(users, pkg) {
					t.Errorf("%s may not import %s", pkg, imported)
				}
			}
		}
	}
	if seen != len(may) {
		t.Errorf("%d packages of the architecture exist, it names %d", seen, len(may))
	}
}
