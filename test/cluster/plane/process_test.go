package plane

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is started ends when the pipe to it closes, which the kernel does should we
// be killed.
func TestAProgramEndsWithThePipe(t *testing.T) {
	dir := t.TempDir()
	p, err := run(dir, "sleeper", nil, "sh", "-c", "echo $$; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for deadline := time.Now().Add(20 * time.Second); pid == 0; time.Sleep(10 * time.Millisecond) {
		log, _ := os.ReadFile(filepath.Join(dir, "sleeper.log"))
		if pid, _ = strconv.Atoi(strings.TrimSpace(string(log))); pid == 0 && time.Now().After(deadline) {
			t.Fatalf("it has not started: %s", log)
		}
	}
	p.kill()
	for deadline := time.Now().Add(20 * time.Second); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on", pid)
		}
	}
}

func TestAProgramThatDiesIsNotWaitedFor(t *testing.T) {
	p, err := run(t.TempDir(), "broken", nil, "sh", "-c", "echo no such flag; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	began := time.Now()
	err = p.ready(t.Context(), http.DefaultClient, "http://127.0.0.1:1/")
	if err == nil || !strings.Contains(err.Error(), "no such flag") || time.Since(began) > time.Minute {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// Kubernetes's own go.mod points beside itself for the modules that it publishes.
func TestStagingModulesComeFromWhereTheyArePublished(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/client-go => ./staging/src/k8s.io/client-go\n)\n",
		"go.sum": "a\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := publishedModules(source, dir)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "k8s.io/api => k8s.io/api v0.35.4\n\tk8s.io/client-go => k8s.io/client-go v0.35.4\n"
	if !strings.Contains(string(mod), want) {
		t.Errorf("the go.mod is\n%s", mod)
	}
}
