package stranger

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/objectferry/objectferry/test/ferry"
)

// startService stands for the pods: for each Deployment a plain binary, with the
// arguments and the configuration that its pods are given.
func (h *hour) startService() {
	h.Helper()
	env := h.cloud()
	env["OBJECTFERRY_ADMIN_LISTEN"] = "127.0.0.1:0"
	env["OBJECTFERRY_RETRY_WAIT"] = "1s" // a long poll that runs is waited for when they are stopped
	all := h.manifests()
	for _, m := range all {
		if m.Kind != "Deployment" {
			continue
		}
		// In a pod the credentials are a mounted Secret.
		yaml := strings.ReplaceAll(all.config(m), "/etc/cos/", h.checkout+"/"+mine+"/")
		args := m.Spec.Template.Spec.Containers[0].Args
		if len(args) < 2 || args[0] != "run" || !strings.HasPrefix(args[1], "--config=") {
			h.Fatalf("%s runs %q", m.Metadata.Name, args)
		}
		p := ferry.Start(h.T, nil, ferry.Options{YAML: yaml, Args: args[2:], Env: env})
		h.services[m.Metadata.Name] = p
		h.Logf("for %s: objectferry run %s", m.Metadata.Name, strings.Join(args[2:], " "))
	}
}

// restartService is a rollout.
func (h *hour) restartService() {
	h.Helper()
	h.stopService()
	h.startService()
}

// stopService drains.
func (h *hour) stopService() {
	h.Helper()
	for _, p := range h.services {
		if err := p.Stop(time.Minute); err != nil {
			h.Errorf("drain: %v\n%s", err, p.Log())
		}
	}
	clear(h.services)
}

// console serves the page for on-call and looks at it.
func (h *hour) console() {
	h.Helper()
	args := []string{"console", "--config", mine + "/here.yaml", "--listen", "127.0.0.1:0"}
	for _, p := range h.services {
		args = append(args, "--pod", p.Admin)
	}
	cmd := exec.CommandContext(h.Context(), filepath.Join(h.checkout, "bin", "objectferry"), args...)
	cmd.Dir, cmd.Env = h.checkout, ferry.Environ(nil, h.cloud())
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // Ctrl-C; it may have ended by itself
		if err := cmd.Wait(); err != nil {
			h.Errorf("the console: %v", err)
		}
	}()
	var started struct{ Console string }
	if err := json.NewDecoder(stderr).Decode(&started); err != nil || started.Console == "" {
		h.Fatalf("the console does not say where it serves: %v", err)
	}
	resp, err := http.Get(started.Console)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(page), "objectferry-sync_media") {
		h.Errorf("the console's page: %s, %v\n%s", resp.Status, err, page)
	}
}

// drill sends the message that nobody can read, and waits for its letter.
func (h *hour) drill() {
	h.Helper()
	const queue, dead = "/111122223333/objectferry-sync_media", "/111122223333/objectferry-sync-dead_media"
	h.call("sqs", http.MethodPost, queue, "Action=SendMessage&Version=2012-11-05&MessageBody=nobody+can+read+this")
	ferry.Until(h, 2*time.Minute, "the message is a dead letter", func() bool {
		time.Sleep(200 * time.Millisecond) // moto has one core
		answer := h.call("sqs", http.MethodPost, dead,
			"Action=GetQueueAttributes&Version=2012-11-05&AttributeName.1=ApproximateNumberOfMessages")
		return strings.Contains(answer, "<Value>1</Value>")
	})
}
