// Package ferry runs the real objectferry binary as a process of its own, for the
// tests that cross packages.
package ferry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
)

var binary struct {
	sync.Once
	path string
	err  error
}

// Binary builds cmd/objectferry, once a test process, and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	binary.Do(func() {
		if binary.err = lookAtSources(); binary.err != nil {
			return
		}
		dir, err := os.MkdirTemp("", "objectferry-test-")
		if err != nil {
			binary.err = err
			return
		}
		binary.path = filepath.Join(dir, "objectferry")
		out, err := exec.Command("go", "build", "-o", binary.path, "github.com/objectferry/objectferry/cmd/objectferry").CombinedOutput()
		if err != nil {
			binary.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatalf("build the binary: %v", binary.err)
	}
	return binary.path
}

// lookAtSources asks for each file that the binary is built from, because `go test`
// runs a test again only when a file has changed that the test itself looked at.
func lookAtSources() error {
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look at the sources: %w", err)
		}
	}
	return nil
}

// Main is the TestMain of a package that uses Binary: it removes what was built,
// and does what else has to be done after the tests.
func Main(m *testing.M, after ...func()) {
	code := m.Run()
	for _, do := range after {
		do()
	}
	if binary.path != "" {
		os.RemoveAll(filepath.Dir(binary.path))
	}
	os.Exit(code)
}

// Options are how a process is run.
type Options struct {
	YAML string            // the configuration; admin is added
	Args []string          // after "run --config FILE"
	Env  map[string]string // on top of Environ; AWS variables of the test's own process are not passed on
}

// Process is a running `objectferry run`.
type Process struct {
	Admin string // http://host:port

	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait, once done

	mu  sync.Mutex
	log bytes.Buffer
}

// Start runs the service and waits until it says that it has started. The
// process is killed at the end of the test if it still runs.
func Start(t testing.TB, site *localcloud.Site, o Options) *Process {
	t.Helper()
	p, err := start(t, site, o)
	if err != nil {
		t.Fatalf("start objectferry: %v", err)
	}
	return p
}

func start(t testing.TB, site *localcloud.Site, o Options) (*Process, error) {
	file := Config(t, o.YAML)
	p := &Process{cmd: exec.Command(Binary(t), append([]string{"run", "--config", file}, o.Args...)...), done: make(chan struct{})}
	p.cmd.Env = Environ(site, o.Env)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	admin := make(chan string, 1)
	go func() {
		p.read(stderr, admin)
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.Kill)
	select {
	case addr := <-admin:
		p.Admin = "http://" + addr
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%w\n%s", p.err, p.Log())
	case <-time.After(30 * time.Second):
		return nil, fmt.Errorf("it has not said that it started:\n%s", p.Log())
	}
}

// Config writes a configuration file with an admin listener on a free port,
// unless the YAML has one.
func Config(t testing.TB, yaml string) string {
	t.Helper()
	if !strings.Contains(yaml, "\nadmin:") {
		yaml += "admin: {listen: \"127.0.0.1:0\"}\n"
	}
	file := filepath.Join(t.TempDir(), "objectferry.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Environ is the environment of a process on the site: nothing of AWS's or of
// OpenTelemetry's is taken over from the test's own.
func Environ(site *localcloud.Site, more map[string]string) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AWS_") && !strings.HasPrefix(e, "OTEL_") && !strings.HasPrefix(e, "OBJECTFERRY_") {
			env = append(env, e)
		}
	}
	all := map[string]string{}
	if site != nil {
		maps.Copy(all, site.Environ())
	}
	maps.Copy(all, more)
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	return env
}

// read keeps the process's log and finds its admin address in it.
func (p *Process) read(stderr io.Reader, admin chan<- string) {
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.log.Write(line)
		p.mu.Unlock()
		var started struct{ Message, Admin string }
		if json.Unmarshal(line, &started) == nil && started.Message == "started" {
			select {
			case admin <- started.Admin:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// Log is what the process has written so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process as kill -9 does and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// Signal sends a signal, such as SIGTERM.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Stop sends SIGTERM and waits for the drain. It returns an error when the
// process does not end within the time or does not end with 0.
func (p *Process) Stop(within time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(within):
		return errors.New("it has not ended within " + within.String())
	}
}

// Get fetches a page of the admin server.
func (p *Process) Get(ctx context.Context, path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Admin+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// PeakMemory is the most memory the process has had resident, in bytes.
func (p *Process) PeakMemory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			return kb << 10, nil
		}
	}
	return 0, errors.New("no VmHWM in /proc")
}

// Until waits for a condition and fails the test when it does not come true in time.
func Until(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
