package stranger

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) { ferry.Main(m) }

// missed are the keys that visitors ask for on the page.
var missed = []string{"img/first.jpg", "img/second.jpg"}

// stepTime is how long a step may take; on a quiet machine most take a second.
const stepTime = 5 * time.Minute

// mine is where the page keeps what is the stranger's own.
const mine = "infra/k8s/overlays/mine"

// hour is a stranger at work.
type hour struct {
	*testing.T
	full     bool
	checkout string // where the page's commands are run
	moto     *moto
	cos      *cosd.Server
	kube     string                    // a kubeconfig, in the full run
	services map[string]*ferry.Process // by Deployment
	log      int                       // how many access logs S3 has delivered

	instead map[string]func() string // what the script does in a step's place; it returns what was printed, if anything
	world   map[string]func()        // what happens elsewhere before a step: visitors, S3
	own     map[string]func()        // what the stranger changes after a step: values of their own
}

// TestStrangersHour is the quick part: all but what needs a control plane.
func TestStrangersHour(t *testing.T) {
	t.Parallel()
	newHour(t, "").follow()
}

// newHour gives the stranger what the page asks for under "What you need"; the
// cluster is that of the kubeconfig, "" for none.
func newHour(t *testing.T, kubeconfig string) *hour {
	t.Helper()
	for _, tool := range []string{ferry.MotoProgram, "aws", "kubectl", "bash"} {
		ferry.Tool(t, tool)
	}
	h := &hour{T: t, services: map[string]*ferry.Process{}, full: kubeconfig != "", kube: kubeconfig, checkout: checkout(t), moto: startMoto(t)}
	h.cos = cosd.New(cosd.Config{Principals: []cosd.Principal{{ID: "AKIDexample", Key: "example"}}})
	if err := h.cos.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.cos.Close)
	for _, key := range missed {
		h.cos.Put(key, []byte("picture "+key), cosd.Attributes{ContentType: "image/jpeg", CacheControl: "max-age=60"})
	}
	silent := func(f func()) func() string { return func() string { f(); return "" } }
	h.instead = map[string]func() string{
		"rollout": silent(h.startService), "rollout-again": silent(h.restartService),
		"visit": silent(func() { h.visit(missed[0]) }), "visit-again": silent(func() { h.visit(missed[1]) }),
		"observed": h.observed, "console": silent(h.console), "drill": silent(h.drill),
	}
	h.world = map[string]func(){"logs": func() { h.visit("img/nowhere.jpg") }, "remove-logging": h.stopService}
	h.own = map[string]func(){"settings": h.ownSettings}
	h.binary()
	h.call("s3", http.MethodPut, "/overseas-media", `<CreateBucketConfiguration><LocationConstraint>us-west-2</LocationConstraint></CreateBucketConfiguration>`)
	h.call("iam", http.MethodPost, "/", "Action=CreateRole&Version=2010-05-08&RoleName=keda-operator&AssumeRolePolicyDocument=%7B%7D")
	return h
}

// checkout is a copy of what is in the repository, without what was built there.
func checkout(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "objectferry")
	for _, dir := range []string{"cmd", "internal", "pkg", "infra", "docs"} {
		if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(filepath.Join("..", "..", dir))); err != nil {
			t.Fatalf("copy the checkout: %v", err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "Makefile", "Dockerfile"} {
		b, err := os.ReadFile(filepath.Join("..", "..", file))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file), b, 0o644)
		}
		if err != nil {
			t.Fatalf("copy the checkout: %v", err)
		}
	}
	return to
}

// follow does what the page says, from top to bottom.
func (h *hour) follow() {
	text := page(h.T)
	all, err := steps(text)
	if err != nil {
		h.Fatalf("docs/DEPLOY.md: %v", err)
	}
	k := count(all)
	said := fmt.Sprintf("%d are run, %d more in the full run, %d are replaced by the script, %d are not run", k.run, k.full, k.instead, k.notRun)
	if !strings.Contains(strings.Join(strings.Fields(text), " "), said) {
		h.Errorf("docs/DEPLOY.md must say of its shell blocks that %s", said)
	}
	begin := time.Now()
	for _, s := range all {
		h.step(s)
	}
	for _, key := range missed {
		if body := h.call("s3", http.MethodGet, "/overseas-media/"+key, ""); body != "picture "+key {
			h.Errorf("%s was healed, and is %q", key, body)
		}
	}
	h.Logf("%s; it took %s", said, time.Since(begin).Round(time.Second))
}

func (h *hour) step(s step) {
	h.Helper()
	name := fmt.Sprintf("line %d, %s", s.line, s.name)
	substitute := h.instead[s.name]
	switch {
	case s.notRun != "":
		h.Logf("line %d: not run: %s", s.line, s.notRun)
		return
	case (s.instead != "") != (substitute != nil):
		h.Fatalf("%s: the page and the script must agree on what is replaced", name)
	case s.full && !h.full:
		h.Logf("%s: left to the full run (make stranger)", name)
		return
	}
	if happens := h.world[s.name]; happens != nil {
		happens()
	}
	begin := time.Now()
	var output string
	if s.instead != "" {
		h.Logf("%s: instead, %s", name, s.instead)
		output = substitute()
	} else {
		output = h.bash(s.script)
	}
	if output != "" {
		h.Logf("%s printed\n%s", name, output)
	}
	if s.expect != nil && !printed(output, *s.expect) {
		h.Fatalf("docs/DEPLOY.md, %s: it printed\n%s\nbut the page says\n%s", name, output, *s.expect)
	}
	if change := h.own[s.name]; change != nil {
		change()
	}
	h.Logf("%s: %.1f s", name, time.Since(begin).Seconds())
}

// bash runs a block of the page in the checkout, as in a terminal where the
// settings were read, and returns all that it prints.
func (h *hour) bash(script string) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), stepTime)
	defer cancel()
	settings := "[ ! -e " + mine + "/settings.sh ] || . " + mine + "/settings.sh\n"
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", settings+script)
	cmd.Dir = h.checkout
	cmd.Env = h.environ()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		for _, p := range h.services {
			log := p.Log()
			h.Logf("the service, at last:\n%s", log[max(0, len(log)-4000):])
		}
		h.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// environ is that of a terminal.
func (h *hour) environ() []string {
	env := h.cloud()
	env["KUBECONFIG"], env["AWS_PAGER"] = "/dev/null", ""
	env["PATH"] = filepath.Join(h.checkout, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	if h.kube != "" {
		env["KUBECONFIG"] = h.kube
	}
	return ferry.Environ(nil, env)
}

// cloud points aws and objectferry at what is on this machine.
func (h *hour) cloud() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": h.moto.url, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "example",
		"AWS_DEFAULT_REGION": "us-west-2", "AWS_REGION": "us-west-2", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"OBJECTFERRY_S3_PATH_STYLE": "true",
	}
}
